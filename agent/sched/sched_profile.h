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

#include "agent/sched/sched_writer.h"
#include "proto/profile.h"

/* The sample types, in this order. */
#define SCHED_VALUES(X)                                                                            \
	X(WALL, "wall", "nanoseconds")                                                             \
	X(ENTRIES, "entries", "count")                                                             \
	X(DELAYS, "delays", "count")                                                               \
	X(OFF, "off_cpu", "count")                                                                 \
	X(DELAY, "delay", "nanoseconds")                                                           \
	X(MIGRATIONS, "migrations", "count")                                                       \
	X(THREADS, "threads", "count")                                                             \
	X(LIFETIME, "lifetime", "nanoseconds")

enum sched_value {
#define X(id, type, unit) SCHED_##id,
	SCHED_VALUES(X)
#undef X
		SCHED_VALUE_COUNT
};

#define SCHED_FRAME_DELAY  "run-queue delay"
#define SCHED_FRAME_OFF    "off-CPU"
#define SCHED_FRAME_THREAD "thread"
#define SCHED_LABEL_BUCKET "from_ns"
#define SCHED_LABEL_MAX    "max_delay_ns"

struct sched_profile_options {
	uint64_t realtime_ns; /* the end of the interval */
	size_t max_bytes;
	bool wall_only; /* time by state and reason, no more: a profile for stores */
	/* Adds labels of a row from its cgroup's path, which may be NULL; or NULL. */
	void (*label)(struct sched_writer *w, const char *cgroup);
};

/* A profile of the books' interval: 0 or -errno. */
int sched_profile_new(const struct sched_books *b, const struct sched_profile_options *options,
		      struct profile **ret_profile);

#endif
