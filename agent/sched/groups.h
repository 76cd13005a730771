/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The series of the scheduler accounting: what has been counted since the start, by whose work it is.
 * A group is a container, a pod's rest, a unit, the kernel's threads, or all else of the host.
 *
 * Bounded: when there are as many groups as may be, one that has had no thread for a while
 * gives its place to a new one; if there is none, the new one counts as [other].
 */
#ifndef AGENT_SCHED_GROUPS_H
#define AGENT_SCHED_GROUPS_H

#include "agent/sched/books.h"

enum { SCHED_OWNER_TEXT = 96 };

/* Zeroed behind the texts: compared byte by byte. "": there is none. */
struct sched_owner {
	char container[SCHED_OWNER_TEXT]; /* its id, or [kernel], [other], [overflow] */
	char pod[SCHED_OWNER_TEXT];       /* UID */
	char unit[SCHED_OWNER_TEXT];
};

struct sched_group {
	struct sched_totals totals; /* its ns[] never go down, and their sum is elapsed_ns */
	int64_t stolen_ns;          /* part of the time on a CPU */
	int64_t off_ns;             /* of [overflow]: off the CPU, for reasons unknown */
	uint64_t seen;              /* interval in which it had a thread last */
};

struct sched_groups;

int sched_groups_new(size_t max_groups, struct sched_groups **ret_groups);
void sched_groups_free(struct sched_groups *g);

/* Adds the interval that the books hold. `owner` reads a cgroup's path, which may be NULL. */
void sched_groups_add(struct sched_groups *g, const struct sched_books *b,
		      void (*owner)(const char *path, struct sched_owner *ret_owner));

/* Intervals of rows that found no group of their own. */
uint64_t sched_groups_folded(const struct sched_groups *g);

/* Goes through the groups: start with *cursor = 0; false at the end. */
bool sched_groups_next(const struct sched_groups *g, size_t *cursor,
		       const struct sched_owner **ret_owner, const struct sched_group **ret_group);

#endif
