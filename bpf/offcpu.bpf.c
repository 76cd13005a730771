/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The accounting with stacks: these programs take the places of sonde_sched_switch and
 * sonde_sched_wakeup. A thread that leaves the CPU may have its stack taken, by a decision that
 * knows nothing of what comes (off_sample.bpf.h); when its wait is over the stack is counted, with
 * the reason and the length that are known then.
 */
#include "bpf/sched_switch.bpf.h"
#include "bpf/facts.bpf.h"
#include "bpf/off.bpf.h"
#include "bpf/stacks.bpf.h"
#include "bpf/target.bpf.h"

#include <bpf/bpf_tracing.h>

struct ring_map ring SEC(".maps");
struct seen_stacks_map seen_stacks SEC(".maps");
struct seen_facts_map seen_facts SEC(".maps");
struct files_map files SEC(".maps");
struct exec_files_map exec_files SEC(".maps");
struct targets_map targets SEC(".maps");
struct unwind_pages_map unwind_pages SEC(".maps");
struct unwind_rows_map unwind_rows SEC(".maps");
struct unwind_rules_map unwind_rules SEC(".maps");
struct rule_memos_map rule_memos SEC(".maps");
_Static_assert(sizeof(struct saved_place) <= sizeof(((struct sonde_off_cpu *)0)->regs), "room");

struct strata_map strata_0 SEC(".maps");
struct strata_map strata_1 SEC(".maps");
struct off_counts_map off_counts_0 SEC(".maps");
struct off_counts_map off_counts_1 SEC(".maps");
struct off_cpus_map off_cpus SEC(".maps");

const volatile struct sonde_off_settings off_settings = {};
volatile __u32 off_epoch = 0;
volatile __u64 off_from_ns[2] = {};
volatile __u32 off_warming = 0; /* stacks of everybody, for the files that they meet: nothing is counted */

static __always_inline bool off_is_target(const struct sonde_off_thread *o)
{
	return settings.target_mode == SONDE_TARGET_ALL || o->is_target;
}

/* Why, and where in user space the thread called: what is known without a walk. Never 0. */
static __always_inline __u32 off_site(struct task_struct *task, __u32 state,
				      struct sonde_off_cpu *cpu)
{
	struct entry_place place = {};
	__u64 h;

	if (!(task->flags & (PF_KTHREAD | PF_IO_WORKER)))
		entry_place_read(&place, task, (struct saved_place *)cpu->regs);
	h = sonde_off_hash(sonde_off_hash(state, place.ip), place.sp);
	return (__u32)h | 1;
}

/* Stacks and facts of the current task into the record. */
static __always_inline void off_capture(void *ctx, struct walk_state *s, struct task_struct *task,
					struct sonde_off_thread *o, struct sonde_off_cpu *cpu)
{
	bool whole;

	s->context = SONDE_CONTEXT_TRACEPOINT;
	s->slot = SONDE_SLOT_TRACEPOINT;
	s->in_user = 0;
	s->key.user_stack = s->key.kernel_stack = 0;
	memory_of(s, task);
	o->cgroup = cgroup_fact(s, task);
	o->process = s->process = process_fact(s, task);
	o->name = off_settings.thread_names ? thread_fact(s) : 0;
	whole = kernel_stack_send(s, ctx, &s->key.kernel_stack);
	if (settings.user_stacks && has_user_stack(task)) {
		regs_load_saved(s, task);
		whole = user_stack_send(s, SONDE_CONTEXT_TRACEPOINT, &s->key.user_stack) && whole;
	}
	cpu->counters[SONDE_OFF_COUNT_CAPTURES]++;
	if (!whole) {
		cpu->counters[SONDE_OFF_COUNT_REFUSED]++;
		o->weight = 0;
		return;
	}
	o->user_stack = s->key.user_stack;
	o->kernel_stack = s->key.kernel_stack;
}

/* The current task leaves the CPU for `state`: is its stack taken? */
static __always_inline bool off_leaves(void *ctx, struct task_struct *task,
				       struct sonde_off_thread *o, struct sonde_off_cpu *cpu,
				       __u32 state, __u64 now)
{
	struct walk_state *s = walk_state(SONDE_CONTEXT_TRACEPOINT);
	__u32 site;

	o->weight = 0;
	if (!s)
		return false;
	s->tgid = task->tgid;
	s->tid = task->pid;
	if (settings.target_mode != SONDE_TARGET_ALL)
		o->is_target = target_matches(s, task);
	if (!off_is_target(o) && !off_warming)
		return false;
	cpu->counters[SONDE_OFF_COUNT_DEPARTURES]++;
	if (!(off_settings.states >> (state & 31) & 1))
		return false;
	site = is_blocked(state) ? off_site(task, state, cpu) : 0;
	o->weight = off_choose(o, cpu, site, now >> SONDE_OFF_WINDOW_SHIFT,
			       bpf_get_prandom_u32());
	if (!o->weight)
		return false;
	off_capture(ctx, s, task, o, cpu);
	return true;
}

/*
 * What a capture takes is the thread's own time on the CPU: were it part of the wait, captured waits
 * would be longer than those that they stand for. So the moment of the switch is the end of it.
 */
static __always_inline __u64 off_switch_out(void *ctx, struct task_struct *prev, bool preempt,
					    __u32 told, __u64 now, struct sonde_sched_cpu *cpu,
					    struct sonde_off_cpu *off)
{
	struct sonde_off_thread *o = (void *)thread_find(prev);
	struct sonde_off_before *before = &off->before;
	__u32 state, weight;
	__u64 took = 0;

	if (!o) {
		untracked_leaves(prev, cpu, told & TASK_DEAD, now);
		return now;
	}
	off_touch(o);
	segment_cut(&o->t, prev, (__u64)prev->cgroups, now, cpu);
	state = state_to_be(&o->t, prev, preempt, told);
	o->took_ns = 0;
	if (!(told & TASK_DEAD) && off_leaves(ctx, prev, o, off, state, now)) {
		took = now;
		now = bpf_ktime_get_ns();
		took = now - took;
	}
	off_look(before, &o->t);
	if (!switch_out(&o->t, prev, state, told, now, cpu))
		return now;
	/* It was thought to be off the CPU: what it did not run of that time, it was; not in this place. */
	if (before->state != SONDE_SCHED_RUNNING && off_is_target(o)) {
		weight = o->weight;
		o->weight = 0;
		off_settle(o, off, before, now);
		o->weight = weight;
	}
	o->took_ns = took;
	return now;
}

static __always_inline void off_switch_in(struct task_struct *next, __u64 now,
					  struct sonde_sched_cpu *cpu, struct sonde_off_cpu *off)
{
	struct sonde_off_thread *o = (void *)thread_find(next);
	struct sonde_off_before *before = &off->before;

	if (!o) {
		cpu->untracked_at = now;
		return;
	}
	off_touch(o);
	/* What it waited as another row has no stratum there. */
	segment_cut(&o->t, next, (__u64)next->cgroups, now, cpu);
	off_look(before, &o->t);
	switch_in(&o->t, next, now, cpu);
	if (off_is_target(o))
		off_settle(o, off, before, now);
	o->weight = 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sonde_off_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u64 began = bpf_ktime_get_ns(), now = began;
	struct sonde_sched_cpu *cpu = sched_cpu();
	struct sonde_off_cpu *off = off_cpu();

	if (!cpu || !off)
		return 0;
	if (prev->pid)
		now = off_switch_out(ctx, prev, preempt,
				     switch_tells_state ? (__u32)ctx[3] : task_state(prev), now, cpu,
				     off);
	cpu->untracked_at = 0;
	if (next->pid)
		off_switch_in(next, now, cpu, off);
	run_ends(cpu, began);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(sonde_off_wakeup, struct task_struct *task)
{
	struct sonde_off_thread *o = (void *)thread_find(task);
	struct sonde_sched_cpu *cpu;
	struct sonde_off_cpu *off;
	__u64 now;

	if (!o || !is_blocked(o->t.state))
		return 0;
	now = bpf_ktime_get_ns();
	cpu = sched_cpu();
	off = off_cpu();
	if (!cpu || !off)
		return 0;
	off_touch(o);
	off_look(&off->before, &o->t);
	if (thread_wakes(&o->t, now, cpu)) {
		if (off_is_target(o))
			off_settle(o, off, &off->before, now);
		throttle_begin(&o->t, task);
	}
	run_ends(cpu, now);
	return 0;
}
