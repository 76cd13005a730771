/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of `sonde sched`: options, rows out of a profile, tables. */
#ifndef CLI_SCHED_H
#define CLI_SCHED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "agent/sched/sched_profile.h"
#include "base/buf.h"
#include "base/map.h"

/* How rows are shown; the same for `record -i` and `report`. */
struct sched_view {
	const char *by;
	const char *sort;
	const char *histogram;
	uint64_t rows; /* 0: all */
	const char *comm, *pid, *cgroup;
	bool kernel;
	bool csv;
};

struct sched_options {
	struct sched_view view;
	uint64_t duration_ns;
	uint64_t interval_ns;
	const char *output;
	uint64_t max_threads;
	bool per_thread;
	bool quiet;
	char **command;
	const char *path; /* of report */
	const char *call_graph; /* report: blocking paths, "caller" or "callee"; NULL: none */
	bool lock;              /* report: waits for locks by who asked for them */
	bool idle;              /* in these two also waits of idle workers */
};

/* What one line of the table is about. Numbers of strings of the profile; 0: all of them. */
struct sched_group_key {
	uint32_t comm, thread, cgroup;
	uint32_t kernel;
	int64_t pid, tid;
};

struct sched_group {
	struct sched_group_key key;
	struct sched_totals totals;
	uint64_t off_ns; /* of the overflow row: reason not known */
};

struct sched_table {
	const struct profile *p;
	struct sched_group *groups;
	size_t count;
	struct sched_group all;    /* of what the filters let through, kernel threads too */
	struct sched_group kernel; /* kernel threads that are not shown */
};

/* Whether the view's words are known: 0, or -EINVAL and a line in `reason`. */
int sched_view_check(const struct sched_view *view, char *reason, size_t size);

/*
 * Rows of a profile by the view, sorted. -EINVAL: it is no profile of the scheduler accounting;
 * -EOVERFLOW: its numbers are so large that they cannot be added up.
 */
int sched_table_make(const struct profile *p, const struct sched_view *view,
		     struct sched_table *ret_table);
void sched_table_fini(struct sched_table *table);

/* Text for people, or for programs. */
void sched_table_print(const struct sched_table *table, const struct sched_view *view,
		       struct buf *out);
void sched_table_csv(const struct sched_table *table, const struct sched_view *view,
		     struct buf *out);

/* Sorting: largest first; names and pids ascending. -EINVAL for an unknown key. */
int sched_sort(struct sched_group *groups, size_t count, const struct profile *p, const char *key);
bool sched_sort_knows(const char *key);

/* What the columns show. */
int64_t sched_runnable_ns(const struct sched_group *g);
int64_t sched_blocked_ns(const struct sched_group *g);
uint64_t sched_delay_count(const struct sched_group *g);
uint64_t sched_voluntary(const struct sched_group *g);
uint64_t sched_involuntary(const struct sched_group *g);

/*
 * A quantile of a histogram, by its buckets: straight between their ends, never above the
 * longest. 0 if it is empty.
 */
uint64_t sched_quantile(const uint64_t *buckets, double q, uint64_t max_ns);

/* The views of files that have stacks (sched_paths.c); exit status. */
int sched_paths(const struct sched_options *options);

/* Records; exit status. */
int sched_record(const struct sched_options *options);

#endif
