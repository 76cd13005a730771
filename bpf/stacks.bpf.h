/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The stacks of the current task, walked and sent once under their ids. */
#ifndef BPF_STACKS_BPF_H
#define BPF_STACKS_BPF_H

#include "bpf/count.bpf.h"
#include "bpf/regs.bpf.h"
#include "bpf/unwind.bpf.h"

#ifndef PF_KTHREAD
#define PF_KTHREAD 0x00200000
#endif
#ifndef PF_IO_WORKER
#define PF_IO_WORKER 0x00000010
#endif

/*
 * io_uring and vhost workers have an mm, but no user registers. A user task without an mm is in exit:
 * its samples are marked as those in exec are.
 */
static __always_inline bool has_user_stack(struct task_struct *task)
{
	return !(BPF_CORE_READ(task, flags) & (PF_KTHREAD | PF_IO_WORKER));
}

/* What the walk needs to know of the task's memory. */
static __always_inline void memory_of(struct walk_state *s, struct task_struct *task)
{
	s->mm = (__u64)BPF_CORE_READ(task, mm);
	s->vdso = s->mm ? (__u64)BPF_CORE_READ(task, mm, context.vdso) : 0;
	if (s->vdso <= ~0U)
		s->vdso = 0; /* a 32-bit process has another image */
}

/* The registers with which the task entered the kernel. */
static __always_inline void regs_load_saved(struct walk_state *s, struct task_struct *task)
{
	if (s->mm && regs_of_task(&s->regs, task) == 0)
		regs_load(s, &s->regs);
	else
		s->pc = 0;
}

/* The id of the user stack that these registers begin. False if it could not be sent. */
static __always_inline bool user_stack_send(struct walk_state *s, __u32 context, __u64 *ret_id)
{
	struct sonde_user_stack *stack = &s->stack;

	unwind(s, context);
	if (s->bound_to_process)
		s->hash = hash_step(s->hash, s->process);
	stack->head.type = SONDE_RECORD_USER_STACK;
	*ret_id = s->hash;
	return stack_send(s, &stack->head, s->hash,
			  __builtin_offsetof(struct sonde_user_stack, frames) +
				  (stack->count & (SONDE_MAX_FRAMES * 2 - 1)) *
					  sizeof(struct sonde_frame));
}

/* The same of the kernel stack; no id if there is none. */
static __always_inline bool kernel_stack_send(struct walk_state *s, void *ctx, __u64 *ret_id)
{
	struct sonde_kernel_stack *stack = &s->kernel_stack;
	__u64 hash = settings.seed + 3;
	long bytes;
	__u32 count;

	if (!settings.kernel_stacks)
		return true;
	bytes = bpf_get_stack(ctx, stack->addrs, SONDE_MAX_KERNEL_FRAMES * sizeof(__u64), 0);
	if (bytes <= 0) {
		count_one(s->slot, SONDE_COUNT_KERNEL_STACK_ERROR);
		return true;
	}
	count = ((__u64)bytes / sizeof(__u64)) & SONDE_MAX_KERNEL_FRAMES;
	for (__u32 i = 0; i < SONDE_MAX_KERNEL_FRAMES && i < count; i++)
		hash = hash_step(hash, stack->addrs[i]);
	stack->head.type = SONDE_RECORD_KERNEL_STACK;
	stack->count = count;
	*ret_id = hash;
	return stack_send(s, &stack->head, hash,
			  __builtin_offsetof(struct sonde_kernel_stack, addrs) +
				  count * sizeof(__u64));
}

#endif
