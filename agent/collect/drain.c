/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the kernel side: ring buffer, counts, counters; see collect.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/collect/collect_private.h"
#include "agent/collect/map_each.h"
#include "base/clock.h"

enum { FIRST_BATCH = 64 }; /* quick, and rarely smaller than a bucket */

int drain_record(void *context, void *bytes, size_t size)
{
	struct collect *c = context;
	struct event event;

	if (event_decode(bytes, size, &event))
		c->bad_records++;
	else
		c->handler.event(c->handler.context, &event);
	return 0;
}

int collect_fd(const struct collect *c)
{
	return ring_buffer__epoll_fd(c->ring);
}

int collect_poll(struct collect *c)
{
	int n = ring_buffer__consume(c->ring);

	return n < 0 ? n : 0;
}

/*
 * Waits until no program that began before is still running: updating a map of maps waits for
 * an RCU grace period, and the programs run inside one.
 */
int collect_wait_for_programs(struct collect *c)
{
	__u32 zero = 0, inner = (__u32)c->barrier_inner_fd;

	return bpf_map_update_elem(c->barrier_fd, &zero, &inner, BPF_ANY);
}

static int drain_map(struct collect *c, int fd, size_t key_size, map_entry_fn handle)
{
	return map_each(&(struct map_each){
		.fd = fd,
		.key_size = key_size,
		.value_size = sizeof(struct sonde_count),
		.batch = FIRST_BATCH,
		.take = true,
		.handle = handle,
		.context = c,
	});
}

static void handle_count(void *context, const void *key, void *count)
{
	struct collect *c = context;

	c->entries++;
	c->handler.count(c->handler.context, key, count);
}

static void handle_overflow(void *context, const void *key, void *count)
{
	struct collect *c = context;

	c->handler.overflow(c->handler.context, key, count);
}

/*
 * Adds up the per-CPU counters of a slot; of a half also keeps what reconciling needs by CPU. 0 or
 * -errno, and nothing is changed.
 */
static int sum_counters(struct collect *c, __u32 slot, uint64_t *sums)
{
	struct sonde_counters *per_cpu = calloc((size_t)c->possible_cpus, sizeof(*per_cpu));
	int err = per_cpu ? bpf_map_lookup_elem(bpf_map__fd(c->skel->maps.counters), &slot, per_cpu)
			  : -ENOMEM;

	for (int cpu = 0; !err && cpu < c->possible_cpus; cpu++) {
		for (int i = 0; i < SONDE_COUNTER_COUNT; i++)
			sums[i] += per_cpu[cpu].n[i];
		if (slot != SONDE_SLOT_TRACEPOINT)
			c->cpu_counts[c->cpu_numbers[cpu]].received[slot] =
				per_cpu[cpu].n[SONDE_COUNT_RECEIVED];
	}
	free(per_cpu);
	return err;
}

static void add_weights(struct sonde_totals *to, const struct sonde_totals *from)
{
	to->received_weight += from->received_weight;
	to->overflow_weight += from->overflow_weight;
	to->idle_weight += from->idle_weight;
	to->filtered_weight += from->filtered_weight;
	to->timed_runs += from->timed_runs;
	to->timed_ns += from->timed_ns;
}

static int sum_weights(struct collect *c, __u32 half, struct sonde_totals *sums)
{
	struct sonde_totals *per_cpu = calloc((size_t)c->possible_cpus, sizeof(*per_cpu));
	int err = per_cpu ? bpf_map_lookup_elem(bpf_map__fd(c->skel->maps.totals), &half, per_cpu)
			  : -ENOMEM;

	for (int cpu = 0; !err && cpu < c->possible_cpus; cpu++) {
		add_weights(sums, &per_cpu[cpu]);
		c->cpu_counts[c->cpu_numbers[cpu]].idle_weight[half] = per_cpu[cpu].idle_weight;
	}
	free(per_cpu);
	return err;
}

/*
 * The books of a half that no program writes any more, and of the tracepoints. They only ever
 * grow: where they cannot be read the old ones stay, and the next time tells of both.
 */
static int close_books(struct collect *c, __u32 half)
{
	uint64_t tracepoints[SONDE_COUNTER_COUNT] = { 0 };
	struct half_books books = { 0 };
	int err = sum_counters(c, SONDE_SLOT_HALF_0 + half, books.counters);

	if (!err)
		err = sum_weights(c, half, &books.weights);
	if (!err)
		err = sum_counters(c, SONDE_SLOT_TRACEPOINT, tracepoints);
	if (err)
		return err;
	c->books[half] = books;
	memcpy(c->tracepoints, tracepoints, sizeof(tracepoints));
	return 0;
}

static int drain(struct collect *c)
{
	__u32 half = c->skel->bss->active_half & 1;
	struct bpf_map *counts = half ? c->skel->maps.counts_1 : c->skel->maps.counts_0;
	struct bpf_map *overflow = half ? c->skel->maps.overflow_1 : c->skel->maps.overflow_0;
	int err, more, books = 0;

	perf_events_follow(c->perf);
	perf_events_totals(c->perf, &c->perf_totals);
	cpu_books_read(c);
	c->skel->bss->active_half = !half;
	c->flipped = clock_monotonic();
	err = collect_wait_for_programs(c);
	if (!err) {
		books = close_books(c, half);
		cpu_books_reconcile(c);
		unwind_tables_reclaim(&c->tables);
	}
	if (!err)
		err = collect_poll(c);
	if (!err)
		err = drain_map(c, bpf_map__fd(counts), sizeof(struct sonde_count_key),
				handle_count);
	more = drain_map(c, bpf_map__fd(overflow), sizeof(struct sonde_overflow_key),
			 handle_overflow);
	if (!err)
		err = more;
	return err ? err : books;
}

int collect_drain(struct collect *c)
{
	nsec_t started = clock_monotonic();
	int err = drain(c);

	c->drains++;
	c->drain_ns += clock_monotonic() - started;
	if (err)
		c->drain_errors++;
	return err;
}

nsec_t collect_flipped(const struct collect *c)
{
	return c->flipped;
}

void collect_forget(struct collect *c, enum collect_thing thing, uint64_t id)
{
	struct bpf_map *const maps[] = {
		[COLLECT_STACK] = c->skel->maps.seen_stacks,
		[COLLECT_FACT] = c->skel->maps.seen_facts,
		[COLLECT_FILE] = c->skel->maps.files,
	};

	/* Already gone is as good. */
	bpf_map_delete_elem(bpf_map__fd(maps[thing]), &id);
	if (thing == COLLECT_FILE)
		bpf_map_delete_elem(bpf_map__fd(c->skel->maps.exec_files), &id);
}

void collect_refuse_cgroup(struct collect *c, uint64_t id)
{
	__u8 refused = SONDE_FACT_REFUSED;

	/* Not there any more: it will be sent again, and refused again. */
	bpf_map_update_elem(bpf_map__fd(c->skel->maps.seen_facts), &id, &refused, BPF_EXIST);
}

void collect_totals(struct collect *c, struct collect_totals *ret_totals)
{
	struct collect_totals t = {
		.event_value = c->perf_totals.value,
		.expected_samples = c->reconcile.expected,
		.missed = c->reconcile.missed,
		.missed_idle = c->reconcile.missed_idle,
		.enabled_ns = c->perf_totals.enabled_ns,
		.running_ns = c->perf_totals.running_ns,
		.bad_records = c->bad_records,
		.drain_errors = c->drain_errors,
		.failed_cpus = perf_events_failed_cpus(c->perf),
		.drains = c->drains,
		.drain_ns = c->drain_ns,
		.entries = c->entries,
		.table_loads = c->tables.loads,
		.table_drops = c->tables.drops,
		.table_refusals = c->tables.refused,
		.table_bytes = unwind_tables_bytes(&c->tables),
	};
	struct sonde_totals weights = { 0 };

	memcpy(t.counters, c->tracepoints, sizeof(c->tracepoints));
	for (int half = 0; half < 2; half++) {
		for (int i = 0; i < SONDE_COUNTER_COUNT; i++)
			t.counters[i] += c->books[half].counters[i];
		add_weights(&weights, &c->books[half].weights);
	}
	t.received_weight = weights.received_weight;
	t.overflow_weight = weights.overflow_weight;
	t.idle_weight = weights.idle_weight;
	t.filtered_weight = weights.filtered_weight;
	if (weights.timed_runs)
		t.bpf_ns = (uint64_t)((double)weights.timed_ns / (double)weights.timed_runs *
				      (double)t.counters[SONDE_COUNT_RECEIVED]);
	*ret_totals = t;
}
