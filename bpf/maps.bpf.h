/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps that the programs share, declared; defined once in maps.bpf.c. All hashes are
 * preallocated (allocation is not allowed in NMI), none is LRU. The sizes here are defaults that
 * the loader may change.
 *
 * Who writes: the perf-event programs write counts, overflow, seen_*, files; tracepoint programs
 * write targets and exec_files. On 5.10 a hash written from both could deadlock: an NMI may come
 * while the bucket is held. The ring buffer is for all: it only tries its lock in NMI.
 */
#ifndef BPF_MAPS_BPF_H
#define BPF_MAPS_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "bpf/abi.h"

struct ring_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
};

/* Two halves: user space flips `active_half`, waits for a grace period and drains the other. */
struct counts_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct sonde_count_key);
	__type(value, struct sonde_count);
};

struct overflow_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct sonde_overflow_key);
	__type(value, struct sonde_count);
};

/* Ids of what user space already has; it removes those that have not been used for a while. */
struct seen_stacks_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, __u64);
	__type(value, __u8);
};

struct seen_facts_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, __u8);
};

/* enum sonde_file_state; user space removes an entry to be asked again. */
struct files_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, __u8);
};

/* Executables announced at exec, by the tracepoint program: it may not write `files`. */
struct exec_files_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u8);
};

struct targets_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u64);
};

struct counters_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SONDE_SLOT_COUNT);
	__type(key, __u32);
	__type(value, struct sonde_counters);
};

struct totals_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct sonde_totals);
};

/* Filled by user space through a mapping. */
struct unwind_element_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, SONDE_ROWS_PER_ELEMENT * sizeof(struct sonde_row));
};

/*
 * Elements are made when they are needed: most nodes need a small part of what the largest do. How
 * many there may be is set before loading.
 */
struct unwind_rows_map {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 4);
	__type(key, __u32);
	__array(values, struct unwind_element_map);
};

struct unwind_pages_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct sonde_page_key);
	__type(value, struct sonde_page);
};

struct unwind_rules_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SONDE_MAX_RULES);
	__type(key, __u32);
	__type(value, struct sonde_rule);
};

/* See rule_find. SONDE_RULE_MEMOS for each possible CPU. */
struct rule_memos_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SONDE_RULE_MEMOS);
	__type(key, __u32);
	__type(value, struct sonde_rule_memo);
};

extern struct rule_memos_map rule_memos SEC(".maps");
extern struct unwind_rows_map unwind_rows SEC(".maps");
extern struct unwind_pages_map unwind_pages SEC(".maps");
extern struct unwind_rules_map unwind_rules SEC(".maps");
extern struct ring_map ring SEC(".maps");
extern struct counts_map counts_0 SEC(".maps");
extern struct counts_map counts_1 SEC(".maps");
extern struct overflow_map overflow_0 SEC(".maps");
extern struct overflow_map overflow_1 SEC(".maps");
extern struct seen_stacks_map seen_stacks SEC(".maps");
extern struct seen_facts_map seen_facts SEC(".maps");
extern struct files_map files SEC(".maps");
extern struct exec_files_map exec_files SEC(".maps");
extern struct targets_map targets SEC(".maps");
extern struct counters_map counters SEC(".maps");
extern struct totals_map totals SEC(".maps");

extern const volatile struct sonde_settings settings;
extern volatile __u32 active_half;
extern volatile __u64 end_ns; /* samples from this moment (CLOCK_MONOTONIC) on come late; 0: none */

static __always_inline void count_more(__u32 slot, enum sonde_counter which, __u64 n)
{
	struct sonde_counters *c = bpf_map_lookup_elem(&counters, &slot);

	if (c)
		c->n[which] += n;
}

static __always_inline void count_one(__u32 slot, enum sonde_counter which)
{
	count_more(slot, which, 1);
}

#endif
