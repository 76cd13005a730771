/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The user registers of a sampled task: the one place that knows an architecture. */
#ifndef BPF_REGS_BPF_H
#define BPF_REGS_BPF_H

#include <bpf/bpf_core_read.h>

#include "bpf/state.bpf.h"

/* Where the arch keeps the user registers of a task in the kernel, when no helper tells. */
#define KERNEL_STACK_SIZE 16384

#if defined(__TARGET_ARCH_x86)

static __always_inline bool regs_are_user(const struct bpf_perf_event_data *ctx)
{
	/* All 64 bits: newer kernels say "u16 cs", yet refuse a 2-byte read of the context. */
	return *(const volatile __u64 *)&ctx->regs.cs & 3;
}

static __always_inline void regs_load(struct walk_state *s, const struct arch_regs *regs)
{
	s->pc = regs->ip;
	s->sp = regs->sp;
	s->fp = regs->bp;
	s->gprs[0] = regs->ax;
	s->gprs[1] = regs->dx;
	s->gprs[2] = regs->cx;
	s->gprs[3] = regs->bx;
	s->gprs[4] = regs->si;
	s->gprs[5] = regs->di;
	s->gprs[6] = regs->bp;
	s->gprs[7] = regs->sp;
	s->gprs[8] = regs->r8;
	s->gprs[9] = regs->r9;
	s->gprs[10] = regs->r10;
	s->gprs[11] = regs->r11;
	s->gprs[12] = regs->r12;
	s->gprs[13] = regs->r13;
	s->gprs[14] = regs->r14;
	s->gprs[15] = regs->r15;
}

/* Where the thread's local storage begins, as the kernel knows it: what arch_prctl and clone have set. */
static __always_inline __u64 thread_base(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	return BPF_CORE_READ(task, thread.fsbase);
}

#elif defined(__TARGET_ARCH_arm64)

#define PSR_MODE_MASK 0xf /* EL0 is 0 */
#define ARM64_REGS_SIZE 336

static __always_inline bool regs_are_user(const struct bpf_perf_event_data *ctx)
{
	return (ctx->regs.pstate & PSR_MODE_MASK) == 0;
}

static __always_inline void regs_load(struct walk_state *s, const struct arch_regs *regs)
{
	s->pc = regs->pc;
	s->sp = regs->sp;
	s->fp = regs->regs[29];
}

static __always_inline __u64 thread_base(void)
{
	return 0; /* no rule asks */
}

#else
#error "unknown architecture"
#endif

/*
 * The user registers saved at kernel entry. The helper (5.15) must be preferred: with FRED the
 * registers do not lie at the end of the stack, where the arithmetic expects them.
 */
static __always_inline long regs_of_task(struct arch_regs *to, struct task_struct *task)
{
#if defined(__TARGET_ARCH_arm64)
	const __u64 size = ARM64_REGS_SIZE;
#else
	const __u64 size = sizeof(*to);
#endif

	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return bpf_probe_read_kernel(to, sizeof(*to),
					     (void *)bpf_task_pt_regs(bpf_get_current_task_btf()));
	return bpf_probe_read_kernel(to, sizeof(*to),
				     BPF_CORE_READ(task, stack) + KERNEL_STACK_SIZE - size);
}

#endif
