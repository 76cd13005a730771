/* SPDX-License-Identifier: Apache-2.0 */
/* What host.c, host_tables.c and world.c share. */
#ifndef TESTS_BPF_HOST_HOST_PRIVATE_H
#define TESTS_BPF_HOST_HOST_PRIVATE_H

/* Where bpf_task_pt_regs finds the registers, from the task's kernel stack. */
enum { HOST_PT_REGS_OFFSET = 4096, HOST_KERNEL_STACK_BYTES = 16384 };

void host_maps_reset(void);

#endif
