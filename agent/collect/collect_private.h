/* SPDX-License-Identifier: Apache-2.0 */
/* What collect.c (load, attach, stop) and drain.c (read) share. */
#ifndef AGENT_COLLECT_COLLECT_PRIVATE_H
#define AGENT_COLLECT_COLLECT_PRIVATE_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "agent/collect/collect.h"
#include "agent/collect/perf_events.h"
#include "sonde.skel.h"

/* What the programs have counted while a half was the active one, since the start. */
struct half_books {
	uint64_t counters[SONDE_COUNTER_COUNT];
	struct sonde_totals weights;
};

struct collect {
	struct collect_options options;
	struct collect_handler handler;
	struct sonde_bpf *skel;
	struct ring_buffer *ring;
	struct perf_events *perf;
	int barrier_fd;       /* an array of maps whose update waits for a grace period */
	int barrier_inner_fd;
	struct unwind_tables tables;
	size_t rows_mapped;   /* bytes of tables.maps.rows */
	int possible_cpus;    /* per-CPU values have this many elements */
	uint64_t bad_records;
	uint64_t drain_errors;
	uint64_t drains, drain_ns, entries;
	struct half_books books[2]; /* of each half, when it was last retired */
	struct perf_totals perf_totals; /* at the last flip */
};

/* Ring buffer callback. */
int drain_record(void *context, void *bytes, size_t size);

#endif
