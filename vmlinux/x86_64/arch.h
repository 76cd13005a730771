/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Registers of x86-64 as the kernel hands them to perf-event programs (user-visible ABI). */
#ifndef VMLINUX_ARCH_H
#define VMLINUX_ARCH_H

struct arch_regs {
	unsigned long r15, r14, r13, r12, bp, bx;
	unsigned long r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long cs; /* 16 bits of it in newer BTF, but programs must read all 64 */
	unsigned long flags;
	unsigned long sp;
	unsigned long ss;
};

#endif
