/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared maps and settings, from the real definitions. Settings are constant for BPF code
 * and writable here: a test stands where the loader stands.
 */
#include "host_maps.h"

#include <bpf/bpf_core_read.h>

#define const
#include "bpf/maps.bpf.c"
#include "bpf/off.bpf.h"
#undef const

#include "host.h"

struct strata_map strata_0, strata_1;
struct off_counts_map off_counts_0, off_counts_1;
struct off_cpus_map off_cpus;
volatile struct sonde_off_settings off_settings;
volatile __u32 off_epoch;
volatile __u64 off_from_ns[2];

#define ROW(m, array) \
	{ #m, &m, sizeof(*m.key), sizeof(*m.value), sizeof(*m.max_entries) / sizeof(int), array }

const struct host_map_row host_map_rows[] = {
	ROW(counts_0, 0),    ROW(counts_1, 0),   ROW(overflow_0, 0), ROW(overflow_1, 0),
	ROW(seen_stacks, 0), ROW(seen_facts, 0), ROW(files, 0),      ROW(targets, 0),
	ROW(exec_files, 0),
	ROW(counters, 1),    ROW(totals, 1),     ROW(walk_states, 1),
	ROW(strata_0, 0),    ROW(strata_1, 0),   ROW(off_counts_0, 0), ROW(off_counts_1, 0),
	ROW(off_cpus, 1),
	ROW(unwind_pages, 0), ROW(unwind_rules, 1), ROW(rule_memos, 1),
	/* An array of arrays of one value, all there: a value is what looking up an array gives. */
	{ "unwind_rows", &unwind_rows, sizeof(__u32),
	  SONDE_ROWS_PER_ELEMENT * sizeof(struct sonde_row),
	  sizeof(*unwind_rows.max_entries) / sizeof(int), 1 },
};
const size_t host_map_row_count = ARRAY_SIZE(host_map_rows);

struct sonde_settings *host_settings(void)
{
	return (struct sonde_settings *)&settings;
}

struct sonde_off_settings *host_off_settings(void)
{
	return (struct sonde_off_settings *)&off_settings;
}

__u64 counter(enum sonde_counter which)
{
	__u64 sum = 0;

	for (__u32 slot = 0; slot < SONDE_SLOT_COUNT; slot++)
		sum += ((struct sonde_counters *)bpf_map_lookup_elem(&counters, &slot))->n[which];
	return sum;
}
