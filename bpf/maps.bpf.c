/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The shared maps and settings, defined; see maps.bpf.h. */
#include "bpf/state.bpf.h"

struct unwind_rows_map unwind_rows SEC(".maps");
struct unwind_pages_map unwind_pages SEC(".maps");
struct unwind_rules_map unwind_rules SEC(".maps");
struct rule_memos_map rule_memos SEC(".maps");
struct ring_map ring SEC(".maps");
struct counts_map counts_0 SEC(".maps");
struct counts_map counts_1 SEC(".maps");
struct overflow_map overflow_0 SEC(".maps");
struct overflow_map overflow_1 SEC(".maps");
struct seen_stacks_map seen_stacks SEC(".maps");
struct seen_facts_map seen_facts SEC(".maps");
struct files_map files SEC(".maps");
struct exec_files_map exec_files SEC(".maps");
struct targets_map targets SEC(".maps");
struct counters_map counters SEC(".maps");
struct totals_map totals SEC(".maps");
struct walk_states_map walk_states SEC(".maps");

const volatile struct sonde_settings settings = {};
volatile __u32 active_half = 0;
volatile __u64 end_ns = 0;

char LICENSE[] SEC("license") = "Dual BSD/GPL";
