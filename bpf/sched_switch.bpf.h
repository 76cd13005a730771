/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a switch and a wake-up are to the accounting, with stacks or without: see sched.bpf.c, offcpu.bpf.c. */
#ifndef BPF_SCHED_SWITCH_BPF_H
#define BPF_SCHED_SWITCH_BPF_H

#include "bpf/sched.bpf.h"
#include "bpf/sched_reason.bpf.h"
#include "bpf/sched_throttle.bpf.h"

extern const volatile bool switch_tells_state; /* sched_switch has a fourth argument (5.18) */
extern volatile __u32 epoch;         /* of the longest delays */
extern volatile __u32 seeded;        /* the seeding is over */
extern volatile __u64 attached_ns;   /* CLOCK_BOOTTIME: who came later was seen at birth */
extern volatile __u32 seed_was_full; /* some of those that were there before found no room */

static __always_inline __u32 task_state(struct task_struct *task)
{
	struct task_struct___state *old = (void *)task;

	if (bpf_core_field_exists(task->__state))
		return task->__state;
	return old->state;
}

/*
 * What the previous task is from now on; `told` is the state that the scheduler decided by. The
 * task's own state is asked too: before 6.15 a task that a signal kept from sleeping is told as
 * blocked, yet stays on the run queue, its state set back to running.
 */
static __always_inline __u32 state_after(struct task_struct *prev, bool preempt, __u32 told,
					 __u32 last)
{
	if (preempt || !told || !task_state(prev))
		return is_throttled(prev) ? SONDE_SCHED_THROTTLED : SONDE_SCHED_PREEMPTED;
	return reason_of_block(prev, told, last);
}

/*
 * Before the seeding is over, a thread without a record will get one. Of those that were there
 * before and did find room, none is without one but what the seeding does not see: threads that
 * were half gone, and those of other pid namespaces. Their ends had no beginning.
 */
static __always_inline void untracked_leaves(struct task_struct *prev, struct sonde_sched_cpu *cpu,
					     bool dead, __u64 now)
{
	if (!seeded || (!seed_was_full && prev->start_boottime < attached_ns))
		return;
	if (cpu->untracked_at)
		cpu->untracked_on_cpu_ns += now - cpu->untracked_at;
	if (dead)
		untracked_ends(cpu, now);
}

/* Counts the run that began at `now`; some are timed. */
static __always_inline void run_ends(struct sonde_sched_cpu *cpu, __u64 now)
{
	if ((cpu->runs++ & (SONDE_SCHED_TIMED - 1)) == 0)
		cpu->timed_ns += bpf_ktime_get_ns() - now;
}

/* The first half of leaving a CPU, its row being settled: what the thread will be. */
static __always_inline __u32 state_to_be(struct sonde_sched_thread *t, struct task_struct *prev,
					 bool preempt, __u32 told)
{
	return told & TASK_DEAD ? SONDE_SCHED_OTHER : state_after(prev, preempt, told, t->reason);
}

/* The second, at `now`. False: that was its end, and its record is gone. */
static __always_inline bool switch_out(struct sonde_sched_thread *t, struct task_struct *prev,
				       __u32 state, __u32 told, __u64 now,
				       struct sonde_sched_cpu *cpu)
{
	bool dead = told & TASK_DEAD;

	thread_leaves(t, state, prev->se.sum_exec_runtime, now, cpu);
	if (dead)
		thread_end(t, prev, cpu);
	else if (!is_blocked(state))
		throttle_begin(t, prev);
	return !dead;
}

/* For how long the task has been on a run queue, by the scheduler's own books; 0: not told. */
static __always_inline __u64 queued_ns(struct task_struct *task)
{
	__u64 since;

	if (!bpf_core_field_exists(task->sched_info) || !bpf_core_field_exists(task->se.cfs_rq))
		return 0;
	since = task->sched_info.last_queued;
	return since ? task->se.cfs_rq->rq->clock - since : 0;
}

static __always_inline void switch_in(struct sonde_sched_thread *t, struct task_struct *next,
				      __u64 now, struct sonde_sched_cpu *cpu)
{
	if (is_blocked(t->state))
		wake_unseen(t, queued_ns(next), now, cpu);
	thread_enters(t, throttle_end(t, next, now), now, epoch, cpu);
	t->migrations = next->se.nr_migrations;
}

#endif
