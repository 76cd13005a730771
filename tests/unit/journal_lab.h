/* SPDX-License-Identifier: Apache-2.0 */
/* A journal and what tests do with it most. */
#ifndef TESTS_UNIT_JOURNAL_LAB_H
#define TESTS_UNIT_JOURNAL_LAB_H

#include <errno.h>

#include "agent/store/journal.h"
#include "tests/unit/store_lab.h"

static inline struct journal *open_journal(const char *dir)
{
	struct journal *j = NULL;

	assert_int_equal(journal_open(dir, &j), 0);
	return j;
}

static inline struct journal_totals totals_of(const struct journal *j)
{
	struct journal_totals totals;

	journal_totals(j, &totals);
	return totals;
}

static inline int append(struct journal *j, uint64_t window, int64_t value)
{
	struct profile *p = lab_profile("cpu", "main", value, (int64_t)window * 60 + value, 10);
	int err = journal_append(j, window, p);

	profile_free(p);
	return err;
}

/* The sum of the oldest window before `before`, which must be `window`. */
static inline int64_t read_sum(struct journal *j, uint64_t before, uint64_t window)
{
	struct profile *p = NULL;
	uint64_t number = 0;
	int64_t sum;

	assert_int_equal(journal_read_oldest(j, before, &number, &p), 0);
	assert_int_equal(number, window);
	sum = lab_sum(p);
	profile_free(p);
	return sum;
}

static inline void expect_none(struct journal *j, uint64_t before)
{
	struct profile *p = NULL;
	uint64_t number = 77;

	assert_int_equal(journal_read_oldest(j, before, &number, &p), -ENOENT);
	assert_null(p);
	assert_int_equal(number, 77);
}

#endif
