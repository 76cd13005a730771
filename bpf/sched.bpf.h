/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Maps of the scheduler accounting, and the records in them: made, sent, given up.
 *
 * The key of `threads` is the address of the kernel's task: unique among living threads, and
 * known without a load. A thread is remembered from its first wake-up to its last switch. All is
 * preallocated; what finds no room is counted in the overflow row.
 *
 * An own object with own maps: the perf-event programs, which may run in NMI, share none of them.
 */
#ifndef BPF_SCHED_BPF_H
#define BPF_SCHED_BPF_H

#include "vmlinux.h"

#include "bpf/off_abi.h"
#include "bpf/sched_cgroup.bpf.h"
#include "bpf/sched_state.bpf.h"

/* Without stacks user space makes the values end with the first member, which is all that is used. */
struct threads_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, __u64);
	__type(value, struct sonde_off_thread);
};

struct sched_cpus_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sonde_sched_cpu);
};

/* One record to be filled by the seeding, one that stays empty. Values as those of `threads`. */
struct blanks_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct sonde_off_thread);
};

extern struct threads_map threads SEC(".maps");
extern struct sched_cpus_map sched_cpus SEC(".maps");
extern struct blanks_map blanks SEC(".maps");

extern volatile __u64 snapshot_ns; /* of the last snapshot: CLOCK_MONOTONIC */

enum { BLANK_EMPTY, BLANK_SEED };

/* The ring wakes user space when it is a quarter full: ends of threads are many, and not urgent. */
#define RING_WAKE_BYTES (1 << 20)

static __always_inline struct sonde_sched_thread *thread_find(struct task_struct *task)
{
	__u64 key = (__u64)task;

	return bpf_map_lookup_elem(&threads, &key);
}

static __always_inline struct sonde_sched_cpu *sched_cpu(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&sched_cpus, &zero);
}

/* What names the row that the thread belongs to. `context`: of the caller, for its memory. */
static __always_inline void thread_identify(struct sonde_sched_thread *t, struct task_struct *task,
					    __u32 context)
{
	struct walk_state *s = walk_state(context);
	__u64 css = (__u64)BPF_CORE_READ(task, cgroups);

	t->tid = BPF_CORE_READ(task, pid);
	t->tgid = BPF_CORE_READ(task, tgid);
	t->exec_id = BPF_CORE_READ(task, self_exec_id);
	bpf_probe_read_kernel(t->comm, sizeof(t->comm), &task->comm);
	if (!s || t->css == css)
		return;
	s->slot = context == SONDE_CONTEXT_PERF ? SONDE_SLOT_HALF_0 : SONDE_SLOT_TRACEPOINT;
	t->cgroup = sched_cgroup(s, task);
	t->css = css;
}

/* A record for a thread whose open interval began at `now`. */
static __always_inline void thread_fill(struct sonde_sched_thread *t, struct task_struct *task,
					__u32 state, __u64 now, __u32 context)
{
	t->since = now;
	t->reason = SONDE_SCHED_OTHER;
	t->exec = BPF_CORE_READ(task, se.sum_exec_runtime);
	t->migrations = BPF_CORE_READ(task, se.nr_migrations);
	t->start_ns = BPF_CORE_READ(task, start_boottime);
	t->process_start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	t->flags = BPF_CORE_READ(task, flags) & PF_KTHREAD ? SONDE_SCHED_KERNEL_THREAD : 0;
	t->off_since = 0;
	t->queue = 0;
	t->css = 0;
	t->moved_at = 0;
	t->segment = 0;
	thread_identify(t, task, context);
	segment_begin(t);
	state_enter(t, state);
}

static __always_inline bool thread_send(struct sonde_sched_thread *t, enum sonde_sched_end end)
{
	bool wake = bpf_ringbuf_query(&sched_ring, BPF_RB_AVAIL_DATA) > RING_WAKE_BYTES;
	long err;

	t->head.id = end;
	err = bpf_ringbuf_output(&sched_ring, t, sizeof(*t),
				 wake ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
	t->head.id = SONDE_SCHED_LIVE;
	return !err;
}

/* The thread becomes another row, from `since` on. */
static __always_inline void segment_end(struct sonde_sched_thread *t, struct task_struct *task,
					struct sonde_sched_cpu *cpu)
{
	bool sent = thread_send(t, SONDE_SCHED_SEGMENT);

	thread_identify(t, task, SONDE_CONTEXT_TRACEPOINT);
	t->exec_at = 0;
	if (!sent) {
		cpu->counters[SONDE_SCHED_COUNT_MERGED]++;
		return;
	}
	t->segment++;
	segment_begin(t);
}

/*
 * When it got another cgroup. The kernel tells that of the leader of a process that moves as a whole.
 * Not before the last snapshot: what was read then is in a row already.
 */
static __always_inline __u64 moved_at(struct sonde_sched_thread *t, struct task_struct *task,
				      __u64 now)
{
	struct sonde_sched_thread *leader = thread_find(BPF_CORE_READ(task, group_leader));
	__u64 at = t->moved_at;

	if (leader && leader->moved_at > at)
		at = leader->moved_at;
	if (!at || at > now)
		return now;
	return at > snapshot_ns ? at : snapshot_ns;
}

/*
 * It has exec'ed since it got the CPU, or is in another cgroup than its record says: what it did
 * until then is that of the row before. `css`: its set of cgroups now.
 */
static __always_inline void segment_cut(struct sonde_sched_thread *t, struct task_struct *task,
					__u64 css, __u64 now, struct sonde_sched_cpu *cpu)
{
	__u64 at = t->exec_at;

	if (!at) {
		if (t->css == css)
			return;
		at = moved_at(t, task, now);
	}
	interval_cut(t, at, BPF_CORE_READ(task, se.sum_exec_runtime));
	segment_end(t, task, cpu);
}

/* Its last record; what the ring refuses stays in the overflow row. */
static __always_inline void thread_end(struct sonde_sched_thread *t, struct task_struct *task,
				       struct sonde_sched_cpu *cpu)
{
	__u64 key = (__u64)task;

	if (!thread_send(t, SONDE_SCHED_ENDED)) {
		cpu->counters[SONDE_SCHED_COUNT_ENDS_REFUSED]++;
		for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++)
			cpu->refused_ns[i] += t->ns[i];
	}
	bpf_map_delete_elem(&threads, &key);
}

/* No room for a thread that begins now. Atomic: a switch may interrupt the seeding. */
static __always_inline void untracked_begins(struct sonde_sched_cpu *cpu, __u64 now)
{
	__sync_fetch_and_add(&cpu->untracked_births, 1);
	__sync_fetch_and_add(&cpu->untracked_birth_ns, now);
	__sync_fetch_and_add(&cpu->counters[SONDE_SCHED_COUNT_THREADS_FULL], 1);
}

static __always_inline void untracked_ends(struct sonde_sched_cpu *cpu, __u64 now)
{
	__sync_fetch_and_add(&cpu->untracked_deaths, 1);
	__sync_fetch_and_add(&cpu->untracked_death_ns, now);
}

#endif
