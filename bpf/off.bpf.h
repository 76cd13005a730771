/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Off-CPU stacks: maps, exact strata, captures. Part of the accounting's object, with maps of its own:
 * those of the on-CPU programs are written in NMI. From these it only reads the unwind
 * tables and what has become of files.
 */
#ifndef BPF_OFF_BPF_H
#define BPF_OFF_BPF_H

#include "bpf/off_sample.bpf.h"
#include "bpf/sched_state.bpf.h"
#include "bpf/state.bpf.h"

struct strata_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, struct sonde_stratum_key);
	__type(value, struct sonde_stratum);
};

struct off_counts_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct sonde_off_key);
	__type(value, struct sonde_off_count);
};

struct off_cpus_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sonde_off_cpu);
};

extern struct strata_map strata_0 SEC(".maps");
extern struct strata_map strata_1 SEC(".maps");
extern struct off_counts_map off_counts_0 SEC(".maps");
extern struct off_counts_map off_counts_1 SEC(".maps");
extern struct off_cpus_map off_cpus SEC(".maps");

extern const volatile struct sonde_off_settings off_settings;
extern volatile __u32 off_epoch;      /* number of the window, from 1 on */
extern volatile __u64 off_from_ns[2]; /* when it began, by its parity */

static __always_inline struct sonde_off_cpu *off_cpu(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&off_cpus, &zero);
}

/* Another CPU may raise it, too: a maximum may be lost to a smaller one at the same moment. */
static __always_inline void raise_to(__u64 *max, __u64 ns)
{
	if (*max < ns)
		*max = ns;
}

/* Of cpu->key: its stratum. */
static __always_inline bool stratum_add(void *map, struct sonde_off_cpu *cpu, __u64 ns,
					__u64 inside)
{
	const struct sonde_stratum_key *key = &cpu->key.stratum;
	struct sonde_stratum *have = bpf_map_lookup_elem(map, key);

	if (!have) {
		cpu->stratum.count = 1;
		cpu->stratum.ns = inside;
		cpu->stratum.max_ns = ns;
		if (!bpf_map_update_elem(map, key, &cpu->stratum, BPF_NOEXIST))
			return true;
		have = bpf_map_lookup_elem(map, key); /* another CPU was first? */
		if (!have)
			return false;
	}
	__sync_fetch_and_add(&have->count, 1);
	__sync_fetch_and_add(&have->ns, inside);
	raise_to(&have->max_ns, ns);
	return true;
}

/* Of cpu->key. */
static __always_inline bool off_count_add(void *map, struct sonde_off_cpu *cpu, __u64 weight,
					  __u64 ns, __u64 inside)
{
	const struct sonde_off_key *key = &cpu->key;
	struct sonde_off_count *have = bpf_map_lookup_elem(map, key);

	if (!have) {
		cpu->count.captures = 1;
		cpu->count.count = weight;
		cpu->count.ns = inside * weight;
		cpu->count.max_ns = ns;
		if (!bpf_map_update_elem(map, key, &cpu->count, BPF_NOEXIST))
			return true;
		have = bpf_map_lookup_elem(map, key);
		if (!have)
			return false;
	}
	__sync_fetch_and_add(&have->captures, 1);
	__sync_fetch_and_add(&have->count, weight);
	__sync_fetch_and_add(&have->ns, inside * weight);
	raise_to(&have->max_ns, ns);
	return true;
}

/* The part of an interval that ends `now` since the window of this half began. */
static __always_inline __u64 inside_window(__u32 half, __u64 ns, __u64 now)
{
	__u64 since = now - off_from_ns[half & 1];

	if ((__s64)since < 0)
		return 0; /* the window has begun since the clock was read */
	return since < ns ? since : ns;
}

/*
 * The length by which an interval finds its stratum: that which it would have had without a capture,
 * else captured ones stood for others than their like. A wait that is not much longer than the capture
 * was for something that waited itself, mostly on this CPU; a longer one, for a timer or another
 * CPU, ends when it ends, whenever it began.
 */
static __always_inline __u64 off_length(struct sonde_off_thread *o, __u64 ns)
{
	__u64 took = o->took_ns;

	o->took_ns = 0;
	return ns >= 8 * took ? ns + took : ns;
}

/* Of the thread's own accounts `ns` more were spent in `state`: into its stratum, with its stack. */
static __always_inline void interval_closed(struct sonde_off_thread *o, struct sonde_off_cpu *cpu,
					    __u32 state, __u64 ns, __u64 now)
{
	struct sonde_off_key *key = &cpu->key;
	__u32 half = off_epoch & 1;
	__u64 inside;
	bool kept;

	if (!ns || ns < off_settings.min_ns || !(off_settings.states >> (state & 31) & 1))
		return;
	inside = inside_window(half, ns, now);
	/* So short when the window began that it was left out until then. */
	if (ns - inside < off_settings.min_ns)
		inside = ns;
	key->stratum.row = sonde_off_row(&o->t);
	key->stratum.state = state;
	key->stratum.bucket = sched_bucket(off_length(o, ns));
	kept = half ? stratum_add(&strata_1, cpu, ns, inside)
		    : stratum_add(&strata_0, cpu, ns, inside);
	if (!kept)
		cpu->counters[SONDE_OFF_COUNT_STRATA_FULL]++;
	if (!o->weight || !kept)
		return;
	key->process = o->process;
	key->cgroup = o->cgroup;
	key->thread = o->name;
	key->user_stack = o->user_stack;
	key->kernel_stack = o->kernel_stack;
	kept = half ? off_count_add(&off_counts_1, cpu, o->weight, ns, inside)
		    : off_count_add(&off_counts_0, cpu, o->weight, ns, inside);
	if (!kept)
		cpu->counters[SONDE_OFF_COUNT_COUNTS_FULL]++;
}

static __always_inline void off_keep(struct sonde_off_thread *o, __u32 number)
{
	__builtin_memcpy(o->flip.ns, o->t.ns, sizeof(o->flip.ns));
	o->flip.since = o->t.since;
	o->flip.exec = o->t.exec;
	o->flip.state = o->t.state;
	o->flip.weight = o->weight;
	o->flip.process = o->process;
	o->flip.cgroup = o->cgroup;
	o->flip.name = o->name;
	o->flip.user_stack = o->user_stack;
	o->flip.kernel_stack = o->kernel_stack;
	o->epoch = number;
}

/* Before each change of a record, and of the stack in it. */
static __always_inline void off_touch(struct sonde_off_thread *o)
{
	__u32 number = off_epoch;

	if (o->epoch != number)
		off_keep(o, number);
}

/* Masked where it is used, and behind a barrier: kernels before 5.13 forget what a stored number was. */
static __always_inline __u64 ns_in(const struct sonde_sched_thread *t, __u32 state)
{
	barrier_var(state);
	return t->ns[state & SONDE_SCHED_STATE_MASK];
}

static __always_inline void off_look(struct sonde_off_before *before, const struct sonde_sched_thread *t)
{
	before->state = t->state & SONDE_SCHED_STATE_MASK;
	before->ns = ns_in(t, before->state);
	before->throttled = t->ns[SONDE_SCHED_THROTTLED];
	before->preempted = t->ns[SONDE_SCHED_PREEMPTED];
}

/*
 * What has been added to them since. So the strata hold what the accounts hold, whatever the
 * state machine does.
 */
static __always_inline void off_settle(struct sonde_off_thread *o, struct sonde_off_cpu *cpu,
				       const struct sonde_off_before *before, __u64 now)
{
	const struct sonde_sched_thread *t = &o->t;
	__u32 state = before->state;

	if (state != SONDE_SCHED_RUNNING && state != SONDE_SCHED_THROTTLED &&
	    state != SONDE_SCHED_PREEMPTED)
		interval_closed(o, cpu, state, ns_in(t, state) - before->ns, now);
	interval_closed(o, cpu, SONDE_SCHED_THROTTLED,
			t->ns[SONDE_SCHED_THROTTLED] - before->throttled, now);
	interval_closed(o, cpu, SONDE_SCHED_PREEMPTED,
			t->ns[SONDE_SCHED_PREEMPTED] - before->preempted, now);
}

#endif
