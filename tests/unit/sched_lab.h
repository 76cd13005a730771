/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the scheduler accounting: threads' records made by hand, and books to feed. */
#ifndef TESTS_UNIT_SCHED_LAB_H
#define TESTS_UNIT_SCHED_LAB_H

#include <stdint.h>
#include <string.h>

#include "agent/sched/books.h"

#define MS INT64_C(1000000)

enum { LAB_CGROUP = 77 };

/* A thread of `tgid` that was born at `birth_ms` and has done nothing yet but run. */
static inline struct sonde_sched_thread lab_thread(uint32_t tgid, uint32_t tid, int64_t birth_ms)
{
	struct sonde_sched_thread t = {
		.head = { .type = SONDE_RECORD_SCHED_THREAD, .size = sizeof(t) },
		.tgid = tgid,
		.tid = tid,
		.birth = (uint64_t)(birth_ms * MS),
		.since = (uint64_t)(birth_ms * MS),
		.start_ns = (uint64_t)(birth_ms * MS),
		.process_start_ns = 1000 + tgid,
		.cgroup = LAB_CGROUP,
		.state = SONDE_SCHED_RUNNING,
	};

	strcpy(t.comm, tid == tgid ? "leader" : "worker");
	return t;
}

/* Spends `ms` in a state: the open interval is closed and the next one begins in `next`. */
static inline void lab_spend(struct sonde_sched_thread *t, int64_t ms, uint32_t next)
{
	t->ns[t->state] += (uint64_t)(ms * MS);
	t->since += (uint64_t)(ms * MS);
	if (t->state == SONDE_SCHED_RUNNING)
		t->exec += (uint64_t)(ms * MS);
	t->state = next;
	t->entries[next]++;
}

static inline struct sched_books *lab_books(bool by_thread, size_t max_rows)
{
	struct sched_books_options options = { .by_thread = by_thread, .max_rows = max_rows,
					       .max_threads = 1000 };
	struct sched_books *b = NULL;

	assert_int_equal(sched_books_new(&options, &b), 0);
	return b;
}

static inline void lab_snapshot(struct sched_books *b, int64_t now_ms)
{
	struct sched_machine machine = { .now_ns = (uint64_t)(now_ms * MS) };

	sched_books_snapshot(b, &machine);
}

/* The row of a process (and thread, if rows are threads), or NULL. */
static inline const struct sched_row *lab_row(const struct sched_books *b, uint32_t tgid, uint32_t tid)
{
	const struct sched_row_key *key;
	const struct sched_row *row;
	size_t cursor = 0;

	while (sched_books_next(b, &cursor, &key, &row)) {
		if (key->tgid == tgid && key->tid == tid)
			return row;
	}
	return NULL;
}

#endif
