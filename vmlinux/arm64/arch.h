/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Registers of arm64 as the kernel hands them to perf-event programs (user-visible ABI). */
#ifndef VMLINUX_ARCH_H
#define VMLINUX_ARCH_H

struct arch_regs {
	unsigned long regs[31];
	unsigned long sp;
	unsigned long pc;
	unsigned long pstate;
};

#endif
