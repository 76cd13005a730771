/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler accounting's kernel side from user space: loads and attaches bpf/sched.bpf.c,
 * finds the threads that are already there, and reads all threads' books. Hands over records as
 * they are; what they add up to is agent/sched's business.
 *
 * Thread: all calls from one. Opening takes about 100 ms and memory for `max_threads` records of
 * 700 bytes; a snapshot costs about 1 us for each thread that lives.
 */
#ifndef AGENT_COLLECT_SCHED_H
#define AGENT_COLLECT_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/collect/events.h"
#include "agent/collect/sched_events.h"

struct sched_collect;

struct collect;

/* Stacks of threads that leave the CPU: see bpf/off_abi.h. */
struct sched_stacks {
	struct collect *collect; /* whose unwind tables, targets and ring these are; outlives this */
	uint64_t min_ns;         /* shorter intervals are not looked at */
	uint32_t states;         /* bits of enum sonde_sched_state that are */
	bool thread_names;
};

struct sched_collect_options {
	uint32_t max_threads; /* at a time; more are known by number and total only */
	const struct sched_stacks *stacks; /* NULL: none */
};

/*
 * Called from sched_collect_snapshot and sched_collect_poll; arguments are borrowed. `now_ns` and
 * `epoch` are those of the snapshot; for a thread that has ended they mean nothing but that.
 */
struct sched_handler {
	void (*thread)(void *context, const struct sonde_sched_thread *thread, uint64_t now_ns,
		       uint32_t epoch);
	void (*cgroup)(void *context, const struct event *event);
	void *context;
	/* With stacks. `open`: a living thread, after `thread`; the others: sched_collect_stacks. */
	void (*open)(void *context, const struct sonde_off_thread *thread, uint64_t now_ns,
		     uint64_t from_ns);
	void (*stratum)(void *context, const struct sonde_stratum_key *key,
			const struct sonde_stratum *stratum);
	void (*stack)(void *context, const struct sonde_off_key *key,
		      const struct sonde_off_count *count);
};

/* On failure `reason` holds one line: what, why, and what to do. */
int sched_collect_open(const struct sched_collect_options *options,
		       const struct sched_handler *handler, struct sched_collect **ret_collect,
		       char *reason, size_t reason_size);
void sched_collect_close(struct sched_collect *c);

/* Nothing is accounted for from now on, and nothing costs. Needs no privileges. */
void sched_collect_stop(struct sched_collect *c);

/*
 * Begins anew: all threads are found again, and their books begin now. What is in the ring is handed
 * over first and belongs to the time before. Not with stacks.
 */
int sched_collect_restart(struct sched_collect *c);

/* The path of this cgroup shall be sent again when it is met. The context is the collect. */
void sched_collect_forget_cgroup(void *collect, uint64_t id);

/* Kernel memory of the maps. */
uint64_t sched_collect_map_bytes(const struct sched_collect *c);

/* Readable when many threads have ended: call sched_collect_poll. */
int sched_collect_fd(const struct sched_collect *c);
int sched_collect_poll(struct sched_collect *c);

/*
 * Hands over the records of all living threads, then those of threads that have ended; the
 * machine's counters and the moment for which this holds go to *ret_machine.
 */
int sched_collect_snapshot(struct sched_collect *c, struct sched_machine *ret_machine);

/*
 * With stacks, after each snapshot: hands over the strata of the interval that it ended, and the
 * stacks. Events of the collect that stacks refer to come first. Waits for a grace period.
 */
int sched_collect_stacks(struct sched_collect *c);

/*
 * While on, stacks of all processes are taken, so that the unwind tables of the libraries that
 * most use are there when those come that are asked for. What is no target is not counted.
 */
void sched_collect_warm(struct sched_collect *c, bool on);

/* Since the start; all CPUs. `sonde`: how stacks were walked, by enum sonde_counter. */
struct off_totals {
	uint64_t counters[SONDE_OFF_COUNTER_COUNT];
	uint64_t sonde[SONDE_COUNTER_COUNT];
};
int sched_collect_off_totals(struct sched_collect *c, struct off_totals *ret_totals);

/* A stack or a fact shall be sent again when it is met; see collect_forget. */
void sched_collect_forget_stack(struct sched_collect *c, uint64_t id);
void sched_collect_forget_fact(struct sched_collect *c, uint64_t id);

#endif
