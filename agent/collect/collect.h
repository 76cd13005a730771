/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel side from user space: loads and attaches the BPF programs, reads their ring
 * buffer and drains their maps. First user-space stage of the data path; the only folder that
 * knows libbpf. Hands decoded events and counts to a handler; keeps nothing of them.
 *
 * Thread: all calls from one (the loop). No call blocks, but collect_drain waits for an RCU grace
 * period (about 10 ms), and collect_open loads the programs (about 60 ms).
 */
#ifndef AGENT_COLLECT_COLLECT_H
#define AGENT_COLLECT_COLLECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/collect/events.h"
#include "agent/collect/unwind_tables.h"
#include "base/clock.h"

struct collect;

struct collect_options {
	uint32_t frequency_hz;
	bool no_hardware;   /* cpu-clock even where there is a PMU */
	bool keep_idle;     /* count the idle task too */
	bool thread_names;  /* tell threads apart by their names */
	enum sonde_target_mode target;
	size_t unwind_bytes; /* for unwind tables in the kernel, made on demand in steps of 1 MiB */
	uint64_t cgroup_id; /* kernfs id (inode number), for SONDE_TARGET_CGROUP */
	bool cgroup_v1;     /* of the v1 hierarchy with the pids (else memory) controller */
};

/* Called from collect_poll and collect_drain; arguments are borrowed for the call. */
struct collect_handler {
	void (*event)(void *context, const struct event *event);
	void (*count)(void *context, const struct sonde_count_key *key,
		      const struct sonde_count *count);
	void (*overflow)(void *context, const struct sonde_overflow_key *key,
			 const struct sonde_count *count);
	void *context;
};

/* The books, from collect_start to the last drain: exactly what has been handed over. */
struct collect_totals {
	uint64_t counters[SONDE_COUNTER_COUNT]; /* by enum sonde_counter, over all CPUs */
	uint64_t received_weight;  /* ns or cycles */
	uint64_t overflow_weight;  /* of OVERFLOW_TOTAL */
	uint64_t idle_weight;      /* of the idle task, kept or not */
	uint64_t filtered_weight;
	uint64_t event_value;      /* what the perf events counted themselves, same unit */
	uint64_t expected_samples; /* by running time (cpu-clock) or event_value (hardware);
				      = received + missed + missed_idle */
	uint64_t missed;           /* the kernel never ran the program for them */
	uint64_t missed_idle;      /* the same, but the CPU was idle: nothing is lost with them */
	uint64_t bpf_ns;           /* run time of the programs, extrapolated from one run in 64 */
	uint64_t enabled_ns, running_ns;
	uint64_t bad_records;      /* refused by event_decode */
	uint64_t drain_errors;     /* batches that could not be read */
	uint64_t failed_cpus;      /* came online, but could not be sampled */
	uint64_t drains;
	uint64_t drain_ns;         /* spent in collect_drain, the grace period included */
	uint64_t entries;          /* of counts, drained */
	uint64_t table_loads, table_drops, table_refusals;
	uint64_t table_bytes;      /* gauge: rows in use */
};

/* On failure `reason` holds one line: what, why, and what to do. */
int collect_open(const struct collect_options *options, const struct collect_handler *handler,
		 struct collect **ret_collect, char *reason, size_t reason_size);

/* Detaches and frees; NULL is allowed. */
void collect_close(struct collect *c);

/*
 * Adds a process (and, from now on, the children it makes) to the targets. -ESRCH if there is
 * none, -ECHILD if it is a thread of another. Before or after collect_start.
 */
int collect_add_target(struct collect *c, pid_t pid);

/* Whether the process is one of the targets now, of process targets; of others it is not known here. */
bool collect_is_target(const struct collect *c, uint32_t tgid, uint64_t start_ns);

/* Whether every process is a target, as far as the kernel side is asked. */
bool collect_takes_all(const struct collect *c);

int collect_start(struct collect *c);

/*
 * Samples from this moment (CLOCK_MONOTONIC) on are counted as late and not kept, however late
 * collect_stop is called.
 */
void collect_set_end(struct collect *c, uint64_t end_ns);

/* Stops sampling; a last collect_drain gives the rest. */
void collect_stop(struct collect *c);

/* Readable (level-triggered) when the kernel side wants attention: call collect_poll. */
int collect_fd(const struct collect *c);
int collect_poll(struct collect *c);

/*
 * Flips the double buffer and hands over the filled half: all events first, then the counts that
 * refer to them. Also follows CPU hotplug. Every second or so.
 */
int collect_drain(struct collect *c);

/* The moment at which the last drain cut: samples before it were its own. Monotonic; 0: none yet. */
nsec_t collect_flipped(const struct collect *c);

/* The kernel side shall send this thing again at its next use. Counts may still refer to it
 * until after the next drain. */
enum collect_thing { COLLECT_STACK, COLLECT_FACT, COLLECT_FILE };
void collect_forget(struct collect *c, enum collect_thing thing, uint64_t id);

/*
 * With SONDE_TARGET_CGROUPS: no samples of this cgroup from now on, until it is forgotten. Counts may
 * still hold some until after the next drain.
 */
void collect_refuse_cgroup(struct collect *c, uint64_t id);

/*
 * Gives the kernel side the unwind table of a file it has announced; NULL: the file has none.
 * 0, or -ENOSPC: drop others, and try again after the next drain.
 */
int collect_add_table(struct collect *c, uint64_t file, const struct table_rows *rows);

/* Takes a table away, and returns its rows; the file is announced again at its next use. */
size_t collect_drop_table(struct collect *c, uint64_t file);

/* Goes through the loaded tables: start with *cursor = 0; false at the end. */
bool collect_next_table(const struct collect *c, size_t *cursor, uint64_t *ret_file);

/* The vDSO is announced by nobody. */
int collect_add_vdso_table(struct collect *c, const struct table_rows *rows);

void collect_totals(struct collect *c, struct collect_totals *ret_totals);

/* Another frequency from now on; the books go on. */
void collect_set_frequency(struct collect *c, uint32_t hz);

/* Bytes that the maps occupy in the kernel, as it says itself; 0 if it does not. */
uint64_t collect_map_bytes(const struct collect *c);

bool collect_is_hardware(const struct collect *c);
bool collect_has_user_stacks(const struct collect *c);
uint32_t collect_frequency(const struct collect *c); /* in force: the kernel may limit it */
size_t collect_cpu_count(const struct collect *c);

#endif
