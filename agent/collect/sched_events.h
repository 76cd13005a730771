/* SPDX-License-Identifier: Apache-2.0 */
/* What the collecting of the scheduler accounting hands on: threads, cgroups, the machine. */
#ifndef AGENT_COLLECT_SCHED_EVENTS_H
#define AGENT_COLLECT_SCHED_EVENTS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "bpf/off_abi.h"
#include "bpf/sched_abi.h"

/* All CPUs together, from the start to `now_ns`. */
struct sched_machine {
	uint64_t now_ns; /* CLOCK_MONOTONIC */
	uint64_t threads;          /* read as living */
	/* Threads for which there was no room: their number, lifetimes and time on a CPU. */
	uint64_t untracked_threads;
	uint64_t untracked_ns;
	uint64_t untracked_on_cpu_ns;
	/* Of threads whose end the ring refused, by state. */
	uint64_t refused_ns[SONDE_SCHED_STATE_COUNT];
	uint64_t counters[SONDE_SCHED_COUNTER_COUNT];
	uint64_t runs, bpf_ns; /* of the programs; their time by one run in 64 */
	uint64_t torn;        /* records that stayed inconsistent, read all the same */
	uint64_t read_errors; /* batches that could not be read: some threads are missing */
};

/* Whether a record was read whole: its buckets are its age. */
static inline bool sched_thread_is_whole(const struct sonde_sched_thread *t)
{
	uint64_t sum = 0;

	for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++)
		sum += t->ns[i];
	return sum == t->since - t->birth;
}

#endif
