/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The books of the scheduler accounting: records of threads in, rows out. A row is a process
 * between two execs in one cgroup, or a thread of it. Rows hold an interval: what was added
 * since they were last cleared.
 *
 * Bounded: when there are too many rows, further processes share one for each name and
 * cgroup, and past that one for all. No time is lost by that, only detail.
 */
#ifndef AGENT_SCHED_BOOKS_H
#define AGENT_SCHED_BOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/collect/events.h"
#include "agent/sched/sums.h"

/* What the processes of a row have in common, if they are several. */
enum sched_shared {
	SCHED_SHARED_NAME = 1, /* name and cgroup */
	SCHED_SHARED_REST,     /* that there was no room for them */
};

/* Without padding: compared byte by byte. */
struct sched_row_key {
	uint64_t process_start_ns; /* CLOCK_BOOTTIME; 0: a row of several processes */
	uint64_t thread_start_ns;  /* 0: a row of a whole process */
	uint64_t cgroup;
	uint32_t tgid;
	uint32_t tid;
	uint32_t exec_id;
	uint32_t shared; /* 0: of one process; else enum sched_shared */
	char name[SONDE_COMM_LEN]; /* of a row of several processes */
};

_Static_assert(sizeof(struct sched_row_key) == 56, "padding");

struct sched_row {
	char comm[SONDE_COMM_LEN]; /* of the process, or of the thread; any bytes, NUL-ended */
	bool is_kernel;
	bool named_by_leader;
	struct sched_totals totals;
};

struct sched_books_options {
	bool by_thread;
	size_t max_rows;
	size_t max_threads;
	/* Told of cgroups that the kernel side shall forget; may be NULL. */
	void (*forget_cgroup)(void *context, uint64_t id);
	void *context;
};

struct sched_books;

int sched_books_new(const struct sched_books_options *options, struct sched_books **ret_books);
void sched_books_free(struct sched_books *b);

/* As the handler of sched_collect wants them; `context` is the books. */
void sched_books_thread(void *context, const struct sonde_sched_thread *thread, uint64_t now_ns,
			uint32_t epoch);
void sched_books_cgroup(void *context, const struct event *event);

/* A snapshot is complete: threads that were not in it are forgotten. */
void sched_books_snapshot(struct sched_books *b, const struct sched_machine *machine);

/* The next interval begins with the last snapshot: no rows. */
void sched_books_clear(struct sched_books *b);

/* The accounting begins anew: nothing is known of any thread. A snapshot and a clear must follow. */
void sched_books_forget(struct sched_books *b);

/* Of the interval: from one snapshot to another. */
uint64_t sched_books_duration(const struct sched_books *b);
void sched_books_machine(const struct sched_books *b, struct sched_machine *ret_difference);

/* Living threads that are known. */
size_t sched_books_threads(const struct sched_books *b);

/* Threads that could not be remembered: out of memory. */
uint64_t sched_books_lost(const struct sched_books *b);

/* Paths of cgroups for which there was no room. */
uint64_t sched_books_cgroups_refused(const struct sched_books *b);

/* Goes through the rows: start with *cursor = 0; false at the end. */
bool sched_books_next(const struct sched_books *b, size_t *cursor,
		      const struct sched_row_key **ret_key, const struct sched_row **ret_row);

/* The path of a cgroup as clean text, or NULL if it is not known. */
const char *sched_books_cgroup_path(const struct sched_books *b, uint64_t id);

#endif
