/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread's record says, as sums that can be subtracted and added: the arithmetic of the
 * scheduler accounting, without state. An interval that is still open is closed at the
 * moment of the snapshot, in thought only: the record goes on, and the next difference is right.
 */
#ifndef AGENT_SCHED_SUMS_H
#define AGENT_SCHED_SUMS_H

#include <stdint.h>

#include "agent/collect/sched_events.h"

struct sched_sums {
	int64_t ns[SONDE_SCHED_STATE_COUNT]; /* a difference may be a little negative: see sums.c */
	int64_t exec_ns;                     /* on a CPU by the scheduler's count: without steal */
	int64_t delay_ns;                    /* of waits for a CPU that are over */
	int64_t off_ns;                      /* of periods off the CPU that are over */
	uint32_t entries[SONDE_SCHED_STATE_COUNT];
	uint32_t delay[SONDE_SCHED_BUCKETS];
	uint32_t off[SONDE_SCHED_BUCKETS];
	uint32_t migrations;
};

/* The same over many threads: 64 bits, since threads are many. */
struct sched_totals {
	int64_t ns[SONDE_SCHED_STATE_COUNT];
	int64_t exec_ns;
	int64_t delay_ns;
	int64_t off_ns;
	uint64_t elapsed_ns; /* lifetimes within the window, by the clock alone */
	uint64_t entries[SONDE_SCHED_STATE_COUNT];
	uint64_t delay[SONDE_SCHED_BUCKETS];
	uint64_t off[SONDE_SCHED_BUCKETS];
	uint64_t migrations;
	uint64_t max_delay_ns;
	uint64_t threads;
};

/* All since the segment's birth; of a living thread up to `now_ns`. */
void sched_sums_of(const struct sonde_sched_thread *thread, uint64_t now_ns,
		   struct sched_sums *ret_sums);

/* Adds what `to` has more than `from`. Counts of 32 bits may have wrapped around. */
void sched_totals_add(struct sched_totals *totals, const struct sched_sums *from,
		      const struct sched_sums *to);

/* The longest delay of the interval `epoch`; of an ended thread also of those after it. */
uint64_t sched_max_delay(const struct sonde_sched_thread *thread, uint32_t epoch);

/*
 * Buckets as nobody minds to see them: none negative, the sum as it is. What an earlier interval was
 * charged too much is taken from the largest bucket of this one. And where the scheduler counts
 * more time on a CPU than lies between the switches (its clock is read earlier in a switch), that was
 * time of waiting.
 */
void sched_settle(int64_t ns[SONDE_SCHED_STATE_COUNT], int64_t exec_ns);

/* What the hypervisor and interrupts took while the threads were on a CPU; never negative. */
int64_t sched_stolen_ns(const struct sched_totals *totals);

/* Nanoseconds at which a bucket begins. */
uint64_t sched_bucket_start(int bucket);

#endif
