/* SPDX-License-Identifier: Apache-2.0 */
/* What collect.c (load, attach, stop), drain.c (read) and cpu_books.c (reconcile) share. */
#ifndef AGENT_COLLECT_COLLECT_PRIVATE_H
#define AGENT_COLLECT_COLLECT_PRIVATE_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "agent/collect/collect.h"
#include "agent/collect/perf_events.h"
#include "agent/collect/reconcile.h"
#include "sonde.skel.h"

/* What the programs have counted while a half was the active one, since the start. */
struct half_books {
	uint64_t counters[SONDE_COUNTER_COUNT];
	struct sonde_totals weights;
};

/* Of one CPU in both halves, when they were last retired. */
struct cpu_counts {
	uint64_t received[2];
	uint64_t idle_weight[2];
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
	size_t rows_mapped;   /* bytes reserved at tables.maps.rows */
	bool *rows_made;      /* by element */
	int possible_cpus;    /* per-CPU values have this many elements */
	int *cpu_numbers;     /* of each such element */
	uint64_t bad_records;
	uint64_t drain_errors;
	uint64_t drains, drain_ns, entries;
	nsec_t flipped; /* when the last drain began to count in the other half, monotonic */
	struct half_books books[2]; /* of each half, when it was last retired */
	uint64_t tracepoints[SONDE_COUNTER_COUNT]; /* of the tracepoint programs, as of the last drain */
	struct perf_totals perf_totals; /* at the last flip */
	struct cpu_counts *cpu_counts;  /* these by CPU number, reconcile.cpu_count of each */
	uint64_t *cpu_expected;         /* at the last flip */
	uint64_t *cpu_idle_ns;          /* at the last flip */
	struct reconcile reconcile;
};

/* rows.c: before loading; after it; bytes that the arrays made so far take in the kernel. */
void rows_size(struct collect *c);
int rows_open(struct collect *c);
void rows_close(struct collect *c);
uint64_t rows_bytes(const struct collect *c);

enum { LOAD_MAX_PROGRAMS = 8 };

/* Of each program, when a load is repeated to learn the cause. */
struct verifier_logs {
	const char *names[LOAD_MAX_PROGRAMS];
	char *texts[LOAD_MAX_PROGRAMS];
	size_t count;
};

/* One line (with the verifier's last words behind it, if it spoke) for a failed load. */
void load_explain(int err, const struct verifier_logs *logs, char *reason, size_t size);

/* cpu_books.c: set up; the start; before a half is flipped; after its books are closed. */
int cpu_books_open(struct collect *c);
void cpu_books_close(struct collect *c);
void cpu_books_start(struct collect *c);
void cpu_books_read(struct collect *c);
void cpu_books_reconcile(struct collect *c);

/* Waits until no program that began before is still running. */
int collect_wait_for_programs(struct collect *c);

/* Ring buffer callback. */
int drain_record(void *context, void *bytes, size_t size);

#endif
