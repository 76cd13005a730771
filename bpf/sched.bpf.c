/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Scheduler accounting: each nanosecond of each thread goes to one bucket. Hooks: a switch ends the
 * interval of both tasks at one reading of the clock; a wake-up turns a blocked thread into a
 * waiting one. Not sched_waking: that may come while the thread is still on its way off the CPU,
 * sched_wakeup never does. sonde_sched_seed finds the threads that were there before.
 */
#include "bpf/sched_switch.bpf.h"

#include <bpf/bpf_tracing.h>

struct threads_map threads SEC(".maps");
struct sched_cpus_map sched_cpus SEC(".maps");
struct blanks_map blanks SEC(".maps");
struct ring_map sched_ring SEC(".maps");
struct seen_facts_map sched_facts SEC(".maps");
struct counters_map counters SEC(".maps");
struct walk_states_map walk_states SEC(".maps");

const volatile struct sonde_settings settings = {};
const volatile __u8 syscall_reasons[SONDE_SCHED_SYSCALLS] = {};
const volatile bool switch_tells_state = false;

volatile __u32 epoch = 0;
volatile __u64 snapshot_ns = 0;
volatile __u32 seeded = 0;
volatile __u64 attached_ns = 0;
volatile __u32 seed_was_full = 0;

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("tp_btf/sched_switch")
int BPF_PROG(sonde_sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u64 now = bpf_ktime_get_ns();
	struct sonde_sched_cpu *cpu = sched_cpu();
	struct sonde_sched_thread *t;
	__u32 told;

	if (!cpu)
		return 0;
	/* The idle tasks are no threads of anybody: all of them have the number 0. */
	if (prev->pid) {
		told = switch_tells_state ? (__u32)ctx[3] : task_state(prev);
		t = thread_find(prev);
		if (t) {
			segment_cut(t, prev, (__u64)prev->cgroups, now, cpu);
			switch_out(t, prev, state_to_be(t, prev, preempt, told), told, now, cpu);
		} else {
			untracked_leaves(prev, cpu, told & TASK_DEAD, now);
		}
	}
	cpu->untracked_at = 0;
	if (next->pid) {
		t = thread_find(next);
		if (t) {
			segment_cut(t, next, (__u64)next->cgroups, now, cpu);
			switch_in(t, next, now, cpu);
		} else {
			cpu->untracked_at = now;
		}
	}
	run_ends(cpu, now);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(sonde_sched_wakeup, struct task_struct *task)
{
	struct sonde_sched_thread *t = thread_find(task);
	struct sonde_sched_cpu *cpu;
	__u64 now;

	if (!t || !is_blocked(t->state))
		return 0;
	now = bpf_ktime_get_ns();
	cpu = sched_cpu();
	if (!cpu)
		return 0;
	if (thread_wakes(t, now, cpu))
		throttle_begin(t, task);
	run_ends(cpu, now);
	return 0;
}

/* A thread's first moment: it waits for a CPU. */
SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(sonde_sched_wakeup_new, struct task_struct *task)
{
	struct sonde_sched_thread *t = thread_find(task), *blank;
	struct sonde_sched_cpu *cpu = sched_cpu();
	__u64 key = (__u64)task, now = bpf_ktime_get_ns();
	__u32 empty = BLANK_EMPTY;

	blank = bpf_map_lookup_elem(&blanks, &empty);
	if (!cpu || !blank)
		return 0;
	if (t) {
		cpu->counters[SONDE_SCHED_COUNT_STALE]++;
		thread_end(t, task, cpu);
	}
	if (bpf_map_update_elem(&threads, &key, blank, BPF_NOEXIST) || !(t = thread_find(task))) {
		untracked_begins(cpu, now);
		return 0;
	}
	thread_fill(t, task, SONDE_SCHED_WOKEN, now, SONDE_CONTEXT_TRACEPOINT);
	throttle_begin(t, task);
	return 0;
}

/* Noted here, done at the next switch: there nothing can come between. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(sonde_sched_exec, struct task_struct *task)
{
	struct sonde_sched_thread *t = thread_find(task);

	if (t)
		t->exec_at = bpf_ktime_get_ns();
	return 0;
}

/* Noted likewise, of a whole process at its leader. */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(sonde_sched_attach, struct cgroup *to, const char *path, struct task_struct *task)
{
	struct sonde_sched_thread *t = thread_find(task);

	if (t)
		t->moved_at = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(sonde_sched_rename, struct task_struct *task, const char *comm)
{
	struct sonde_sched_thread *t = thread_find(task);

	if (t)
		bpf_probe_read_kernel_str(t->comm, sizeof(t->comm), comm);
	return 0;
}

/* Who runs is not asked: no field tells on all kernels, and sonde_sched_tick sets it right. */
static __always_inline __u32 state_of_seed(struct task_struct *task)
{
	__u32 state = task_state(task);

	return state ? reason_of_block(task, state, SONDE_SCHED_OTHER) : SONDE_SCHED_PREEMPTED;
}

/*
 * All threads, from user space: those that are not known yet get a record. After the first
 * time these are threads that had found no room.
 */
SEC("iter/task")
int sonde_sched_seed(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct sonde_sched_cpu *cpu = sched_cpu();
	struct sonde_sched_thread *blank;
	__u32 seed = BLANK_SEED;
	__u64 key, now;

	if (!task || !cpu || !task->pid || thread_find(task))
		return 0;
	blank = bpf_map_lookup_elem(&blanks, &seed);
	if (!blank || (!seeded && task->start_boottime >= attached_ns) ||
	    task_state(task) & TASK_DEAD)
		return 0;
	key = (__u64)task;
	now = bpf_ktime_get_ns();
	thread_fill(blank, task, state_of_seed(task), now, SONDE_CONTEXT_PERF);
	blank->flags |= SONDE_SCHED_SEEDED;
	if (bpf_map_update_elem(&threads, &key, blank, BPF_NOEXIST)) {
		if (!seeded) {
			seed_was_full = 1;
			untracked_begins(cpu, now);
		}
	} else if (seeded) {
		untracked_ends(cpu, now);
		__sync_fetch_and_add(&cpu->counters[SONDE_SCHED_COUNT_ADOPTED], 1);
	}
	return 0;
}

/*
 * Run by user space on each CPU before it reads: what the thread that runs there has used so
 * far. In an interrupt, so that no switch comes between.
 */
SEC("raw_tp/sched_switch")
int sonde_sched_tick(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct sonde_sched_thread *t = thread_find(task);
	struct sonde_sched_cpu *cpu = sched_cpu();
	__u64 now = bpf_ktime_get_ns();

	if (!t || !cpu)
		return 0;
	segment_cut(t, task, (__u64)BPF_CORE_READ(task, cgroups), now, cpu);
	thread_ran(t, BPF_CORE_READ(task, se.sum_exec_runtime), now, cpu);
	t->state = SONDE_SCHED_RUNNING;
	return 0;
}
