/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The books of an interval as a profile, and how to read it again. Every row is labelled with
 * comm, pid, cgroup (and thread, tid if rows are threads; kernel=1 for kernel threads). Its samples:
 *
 *   stack, leaf first                    values
 *   [on_cpu], [stolen; on_cpu]           wall: time on a CPU, and what was stolen of it
 *   [reason; runnable|throttled|blocked] wall, and entries: how often it came to that
 *   [run-queue delay] {from_ns}          delays: waits for a CPU that are over, log2 buckets
 *   [off-CPU] {from_ns}                  off_cpu: periods off the CPU, log2 buckets
 *   [thread] {max_delay_ns}              delay, migrations, threads, lifetime
 *
 * So the sum of wall over a row is the lifetime of its threads, and any pprof viewer shows it.
 */
#ifndef AGENT_SCHED_SCHED_PROFILE_H
#define AGENT_SCHED_SCHED_PROFILE_H

#include "agent/sched/books.h"
#include "proto/profile.h"

/* The sample types, in this order. */
#define SCHED_VALUES(X) \
	X(WALL, "wall", "nanoseconds") \
	X(ENTRIES, "entries", "count") \
	X(DELAYS, "delays", "count") \
	X(OFF, "off_cpu", "count") \
	X(DELAY, "delay", "nanoseconds") \
	X(MIGRATIONS, "migrations", "count") \
	X(THREADS, "threads", "count") \
	X(LIFETIME, "lifetime", "nanoseconds")

enum sched_value {
#define X(id, type, unit) SCHED_##id,
	SCHED_VALUES(X)
#undef X
	SCHED_VALUE_COUNT
};

#define SCHED_FRAME_STOLEN "stolen"
#define SCHED_FRAME_DELAY "run-queue delay"
#define SCHED_FRAME_OFF "off-CPU"
#define SCHED_FRAME_THREAD "thread"
#define SCHED_LABEL_BUCKET "from_ns"
#define SCHED_LABEL_MAX "max_delay_ns"

extern const char *const sched_state_names[SONDE_SCHED_STATE_COUNT];
extern const char *const sched_reason_names[SONDE_SCHED_STATE_COUNT];

/* A profile of the books' interval, which ended now (`realtime_ns`). 0 or -errno. */
int sched_profile_new(const struct sched_books *b, uint64_t realtime_ns, size_t max_bytes,
		      struct profile **ret_profile);

#endif
