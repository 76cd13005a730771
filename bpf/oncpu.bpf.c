/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The on-CPU program: runs for each overflow of the perf event of its CPU, maybe in NMI. */
#include "bpf/count.bpf.h"
#include "bpf/facts.bpf.h"
#include "bpf/stacks.bpf.h"
#include "bpf/target.bpf.h"

static __always_inline bool user_stack(struct walk_state *s, struct bpf_perf_event_data *ctx,
				       struct task_struct *task, __u64 *ret_id)
{
	if (!settings.user_stacks || !has_user_stack(task))
		return true;
	if (s->in_user) {
		regs_load(s, &ctx->regs);
		/* Keeps the compiler from joining this with the load below: the verifier wants
		 * the context read through its own pointer. */
		barrier();
	} else {
		regs_load_saved(s, task);
	}
	return user_stack_send(s, SONDE_CONTEXT_PERF, ret_id);
}

static __always_inline void sample(struct walk_state *s, struct bpf_perf_event_data *ctx,
				   struct task_struct *task, __u32 half)
{
	struct sonde_count_key *key = &s->key;
	bool whole;

	s->context = SONDE_CONTEXT_PERF;
	s->half = half;
	s->slot = half;
	s->in_user = regs_are_user(ctx);
	memory_of(s, task);
	*key = (struct sonde_count_key){ .kind = SONDE_KIND_ON_CPU };
	key->cgroup = cgroup_fact(s, task);
	key->process = s->process = process_fact(s, task);
	if (settings.thread_names)
		key->thread = thread_fact(s);
	whole = s->in_user || kernel_stack_send(s, ctx, &key->kernel_stack);
	whole = user_stack(s, ctx, task, &key->user_stack) && whole;
	if (whole)
		count_sample(s, key, ctx->sample_period);
	else
		count_overflow(s, key, ctx->sample_period);
}

/* The clock if this run is to be timed, else 0. */
static __always_inline __u64 timed_start(struct sonde_counters *c)
{
	return c && c->n[SONDE_COUNT_RECEIVED] % SONDE_TIMED_RUNS == 0 ? bpf_ktime_get_ns() : 0;
}

static __always_inline void timed_end(__u32 half, __u64 started)
{
	struct sonde_totals *t = started ? bpf_map_lookup_elem(&totals, &half) : 0;

	if (!t)
		return;
	t->timed_runs++;
	t->timed_ns += bpf_ktime_get_ns() - started;
}

static __always_inline void on_cpu(struct walk_state *s, struct bpf_perf_event_data *ctx,
				   __u32 half)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 pid_tgid = bpf_get_current_pid_tgid();

	count_one(half, SONDE_COUNT_RECEIVED);
	totals_add(half, ctx->sample_period, 0, 0, 0);
	if (!s) {
		count_one(half, SONDE_COUNT_NO_STATE);
		return;
	}
	s->tgid = pid_tgid >> 32;
	s->tid = (__u32)pid_tgid;
	if (s->tid == 0) {
		totals_add(half, 0, 0, ctx->sample_period, 0);
		if (!settings.keep_idle) {
			count_one(half, SONDE_COUNT_IDLE);
			return;
		}
	}
	/* On an overloaded machine user space may get a CPU only seconds after the end. */
	if (end_ns && bpf_ktime_get_ns() >= end_ns) {
		count_one(half, SONDE_COUNT_LATE);
		totals_add(half, 0, 0, 0, ctx->sample_period);
		return;
	}
	if (!target_matches(s, task)) {
		count_one(half, SONDE_COUNT_FILTERED);
		totals_add(half, 0, 0, 0, ctx->sample_period);
		return;
	}
	sample(s, ctx, task, half);
}

SEC("perf_event")
int sonde_on_cpu(struct bpf_perf_event_data *ctx)
{
	/* Also the slot of the counters: SONDE_SLOT_HALF_0 or _1. */
	__u32 half = active_half & 1;
	struct walk_state *s = walk_state(SONDE_CONTEXT_PERF);

	if (s)
		s->started = timed_start(bpf_map_lookup_elem(&counters, &half));
	on_cpu(s, ctx, half);
	if (s)
		timed_end(half, s->started);
	return 0;
}
