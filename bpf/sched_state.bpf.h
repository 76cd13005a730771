/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state machine of one thread: arithmetic on its record, and nothing of the kernel, so that it
 * is tested on the host. The scheduler itself keeps the calls for one thread apart: all come
 * from under the lock of its run queue, or from its own CPU.
 *
 * Each interval is added to one bucket when it ends; a wait for a CPU is cut in two if part of
 * it was throttled.
 */
#ifndef BPF_SCHED_STATE_BPF_H
#define BPF_SCHED_STATE_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "bpf/sched_abi.h"

#ifndef PF_KTHREAD
#define PF_KTHREAD 0x00200000
#endif

/* floor(log2(n)); 0 for 0. Without a loop: the verifier walks each branch but once. */
static __always_inline __u32 log2_floor(__u64 n)
{
	__u32 high = n >> 32, v = high ? high : (__u32)n, bits = high ? 32 : 0;
	__u32 shift;

	shift = (v > 0xffff) << 4;
	v >>= shift;
	bits += shift;
	shift = (v > 0xff) << 3;
	v >>= shift;
	bits += shift;
	shift = (v > 0xf) << 2;
	v >>= shift;
	bits += shift;
	shift = (v > 0x3) << 1;
	v >>= shift;
	bits += shift;
	return bits + (v >> 1);
}

static __always_inline __u32 sched_bucket(__u64 ns)
{
	__u32 bucket = log2_floor(ns >> (SONDE_SCHED_FIRST_SHIFT - 1));

	return bucket < SONDE_SCHED_BUCKETS ? bucket : SONDE_SCHED_BUCKETS - 1;
}

static __always_inline bool is_blocked(__u32 state)
{
	return state >= SONDE_SCHED_FIRST_BLOCKED;
}

/* The length of the open interval, which ends now: 0 and counted if the clock went back. */
static __always_inline __u64 interval_end(struct sonde_sched_thread *t, __u64 now,
					  struct sonde_sched_cpu *cpu)
{
	__u64 ns = now - t->since;

	if ((__s64)ns < 0) {
		cpu->counters[SONDE_SCHED_COUNT_BACKWARDS]++;
		return 0;
	}
	t->since = now;
	return ns;
}

static __always_inline void state_add(struct sonde_sched_thread *t, __u32 state, __u64 ns)
{
	t->ns[state & SONDE_SCHED_STATE_MASK] += ns;
}

static __always_inline void state_enter(struct sonde_sched_thread *t, __u32 state)
{
	t->state = state;
	t->entries[state & SONDE_SCHED_STATE_MASK]++;
}

/*
 * The open interval of a thread that is on a CPU ends; `exec` is its sum_exec_runtime now. If the
 * record does not know that it runs, a change was not seen: in the seeding, or since the kernel ran
 * no program then. What it ran is known all the same, and the rest was as believed.
 */
static __always_inline void thread_ran(struct sonde_sched_thread *t, __u64 exec, __u64 now,
				       struct sonde_sched_cpu *cpu)
{
	__u64 ns = interval_end(t, now, cpu), ran = exec - t->exec;

	t->exec = exec;
	if (t->state != SONDE_SCHED_RUNNING) {
		cpu->counters[SONDE_SCHED_COUNT_UNSEEN]++;
		if (ran > ns)
			ran = ns;
		state_add(t, t->state, ns - ran);
		ns = ran;
	}
	state_add(t, SONDE_SCHED_RUNNING, ns);
}

/* It leaves the CPU for `state`. */
static __always_inline void thread_leaves(struct sonde_sched_thread *t, __u32 state, __u64 exec,
					  __u64 now, struct sonde_sched_cpu *cpu)
{
	thread_ran(t, exec, now, cpu);
	t->off_since = now;
	if (is_blocked(state) && state != SONDE_SCHED_STOPPED)
		t->reason = state;
	state_enter(t, state);
}

/* It is woken. Of a thread that is not blocked this says nothing: it had not slept yet. */
static __always_inline bool thread_wakes(struct sonde_sched_thread *t, __u64 now,
					 struct sonde_sched_cpu *cpu)
{
	if (!is_blocked(t->state))
		return false;
	state_add(t, t->state, interval_end(t, now, cpu));
	state_enter(t, SONDE_SCHED_WOKEN);
	return true;
}

static __always_inline void delay_max(struct sonde_sched_thread *t, __u64 ns, __u32 epoch)
{
	struct sonde_sched_max *max = &t->max[epoch & 1];

	if (max->epoch != epoch || max->ns < ns) {
		max->epoch = epoch;
		max->ns = ns;
	}
}

/* Nobody saw that it was woken; the scheduler says that it has been waiting for `queued`. */
static __always_inline void wake_unseen(struct sonde_sched_thread *t, __u64 queued, __u64 now,
					struct sonde_sched_cpu *cpu)
{
	cpu->counters[SONDE_SCHED_COUNT_UNSEEN]++;
	if (queued > now - t->since)
		queued = now - t->since;
	thread_wakes(t, now - queued, cpu);
}

/* It gets a CPU; `throttled` of its wait was the quota's doing. */
static __always_inline void thread_enters(struct sonde_sched_thread *t, __u64 throttled, __u64 now,
					  __u32 epoch, struct sonde_sched_cpu *cpu)
{
	__u64 ns = interval_end(t, now, cpu);
	__u32 state = t->state;

	if (state == SONDE_SCHED_RUNNING || is_blocked(state)) {
		cpu->counters[SONDE_SCHED_COUNT_UNSEEN]++;
		state_add(t, state, ns);
	} else {
		if (throttled > ns)
			throttled = ns;
		if (throttled && state != SONDE_SCHED_THROTTLED)
			t->entries[SONDE_SCHED_THROTTLED]++;
		state_add(t, SONDE_SCHED_THROTTLED, throttled);
		ns -= throttled;
		state_add(t, state == SONDE_SCHED_THROTTLED ? SONDE_SCHED_PREEMPTED : state, ns);
		t->delay_ns += ns;
		t->delay[sched_bucket(ns)]++;
		delay_max(t, ns, epoch);
	}
	if (t->off_since) {
		t->off[sched_bucket(now - t->off_since)]++;
		t->off_ns += now - t->off_since;
	}
	state_enter(t, SONDE_SCHED_RUNNING);
}

/*
 * The open interval is cut at `at`, where the thread became another row; `exec` is its
 * sum_exec_runtime now. What it ran until then is not known: all of that time if it was so much.
 */
static __always_inline void interval_cut(struct sonde_sched_thread *t, __u64 at, __u64 exec)
{
	__u64 ns = at - t->since, ran = exec - t->exec;

	if ((__s64)ns <= 0)
		return;
	if (t->state == SONDE_SCHED_RUNNING)
		t->exec += ran < ns ? ran : ns;
	state_add(t, t->state, ns);
	t->since = at;
}

/* A new segment begins at `since`, with empty books. */
static __always_inline void segment_begin(struct sonde_sched_thread *t)
{
	t->head.type = SONDE_RECORD_SCHED_THREAD;
	t->head.size = sizeof(*t);
	t->head.id = SONDE_SCHED_LIVE;
	t->birth = t->since;
	t->exec_birth = t->exec;
	t->migrations_birth = t->migrations;
	t->exec_at = 0;
	t->delay_ns = 0;
	t->off_ns = 0;
	__builtin_memset(t->ns, 0, sizeof(t->ns));
	__builtin_memset(t->entries, 0, sizeof(t->entries));
	__builtin_memset(t->delay, 0, sizeof(t->delay));
	__builtin_memset(t->off, 0, sizeof(t->off));
	__builtin_memset(t->max, 0, sizeof(t->max));
}

#endif
