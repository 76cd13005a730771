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

struct sched_collect_options {
	uint32_t max_threads; /* at a time; more are known by number and total only */
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
 * over first and belongs to the time before.
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

#endif
