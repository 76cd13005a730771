/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Aggregation: stacks are sent once, then counted by id. What finds no room keeps its weight:
 * first as that of its cgroup, then as that of the machine. Only detail is ever lost.
 */
#ifndef BPF_COUNT_BPF_H
#define BPF_COUNT_BPF_H

#include "bpf/state.bpf.h"

/* Sends a stack under `id` unless user space has it. Returns false if it cannot be counted. */
static __always_inline bool stack_send(struct walk_state *s, struct sonde_record *record,
				       __u64 id, __u64 size)
{
	__u8 sent = 1;

	if (bpf_map_lookup_elem(&seen_stacks, &id))
		return true;
	record->id = id;
	record->size = size;
	if (bpf_ringbuf_output(&ring, record, size, BPF_RB_NO_WAKEUP)) {
		count_one(s->slot, SONDE_COUNT_RING_FULL);
		return false;
	}
	/* Not remembered means only that it is sent again. */
	if (bpf_map_update_elem(&seen_stacks, &id, &sent, BPF_ANY))
		count_one(s->slot, SONDE_COUNT_SEEN_FULL);
	return true;
}

static __always_inline void totals_add(__u32 half, __u64 received, __u64 overflow, __u64 idle,
				       __u64 filtered)
{
	struct sonde_totals *t = bpf_map_lookup_elem(&totals, &half);

	if (!t)
		return;
	t->received_weight += received;
	t->overflow_weight += overflow;
	t->idle_weight += idle;
	t->filtered_weight += filtered;
}

/* Adds one sample to the entry of `key`; false if the map has no room. */
static __always_inline bool map_count(void *map, const void *key, __u64 weight)
{
	struct sonde_count one = { .samples = 1, .weight = weight };
	struct sonde_count *have = bpf_map_lookup_elem(map, key);

	if (!have) {
		if (!bpf_map_update_elem(map, key, &one, BPF_NOEXIST))
			return true;
		have = bpf_map_lookup_elem(map, key); /* another CPU was first? */
		if (!have)
			return false;
	}
	__sync_fetch_and_add(&have->samples, 1);
	__sync_fetch_and_add(&have->weight, weight);
	return true;
}

static __always_inline void count_overflow(struct walk_state *s, const struct sonde_count_key *key,
					   __u64 weight)
{
	struct sonde_overflow_key small = { .cgroup = key->cgroup, .kind = key->kind };

	if (s->half ? map_count(&overflow_1, &small, weight) : map_count(&overflow_0, &small, weight)) {
		count_one(s->slot, SONDE_COUNT_OVERFLOW_CGROUP);
		return;
	}
	totals_add(s->half, 0, weight, 0, 0);
	count_one(s->slot, SONDE_COUNT_OVERFLOW_TOTAL);
}

static __always_inline void count_sample(struct walk_state *s, const struct sonde_count_key *key,
					 __u64 weight)
{
	if (s->half ? map_count(&counts_1, key, weight) : map_count(&counts_0, key, weight)) {
		count_one(s->slot, SONDE_COUNT_KEPT);
		return;
	}
	count_one(s->slot, SONDE_COUNT_COUNTS_FULL);
	count_overflow(s, key, weight);
}

#endif
