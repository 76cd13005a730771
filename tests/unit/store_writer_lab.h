/* SPDX-License-Identifier: Apache-2.0 */
/* A store that tests write to, list, and ask the catalogue of. */
#ifndef TESTS_UNIT_STORE_WRITER_LAB_H
#define TESTS_UNIT_STORE_WRITER_LAB_H

#include <sqlite3.h>

#include "agent/store/store.h"
#include "tests/unit/store_lab.h"

enum { NOON = 1795953600 }; /* 2026-11-29 12:00:00 */

#define NS ((int64_t)NSEC_PER_SEC)

static inline int try_open(const char *dir, uint64_t max_bytes, uint64_t max_age_ns,
			   struct store **ret, char reason[256])
{
	struct store_options options = { dir, max_bytes, max_age_ns };

	return store_open(&options, ret, reason, 256);
}

static inline struct store *open_store(const char *dir, uint64_t max_bytes, uint64_t max_age_ns)
{
	struct store *s = NULL;
	char reason[256] = "";

	if (try_open(dir, max_bytes, max_age_ns, &s, reason))
		fail_msg("%s", reason);
	return s;
}

static inline struct store_totals totals_of(struct store *s)
{
	struct store_totals totals;

	store_totals(s, &totals);
	return totals;
}

static inline int add_at(struct store *s, int64_t start_ns, int64_t value, const char *type)
{
	struct profile *p = lab_profile("cpu", "main", value, 0, 60);
	int err;

	p->time_ns = start_ns;
	err = store_add(s, p, type);
	profile_free(p);
	return err;
}

static inline int add(struct store *s, int64_t start_s, int64_t value)
{
	return add_at(s, start_s * NS, value, "cpu");
}

static inline size_t count_range(const char *dir, int64_t since_s, int64_t until_s,
				 const char *type)
{
	struct store_list list;
	size_t count;

	assert_int_equal(store_list(dir, since_s * NS, until_s * NS, type, &list), 0);
	for (size_t i = 1; i < list.count; i++)
		assert_true(list.entries[i - 1].start_ns <= list.entries[i].start_ns);
	count = list.count;
	store_list_fini(&list);
	return count;
}

static inline size_t count_all(const char *dir)
{
	return count_range(dir, 0, 0, NULL);
}

/* A number that a query of the catalogue answers; -1 on any error. */
static inline int64_t query(const char *dir, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	int64_t number = -1;
	sqlite3 *db = NULL;
	char path[128];

	snprintf(path, sizeof(path), "%s/catalogue.db", dir);
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
	    sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW)
		number = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	sqlite3_close(db);
	return number;
}

static inline int64_t rows(const char *dir)
{
	return query(dir, "SELECT count(*) FROM profiles");
}

static inline void fill(const char *dir, int count)
{
	struct store *s = open_store(dir, 0, 0);

	for (int i = 0; i < count; i++)
		assert_int_equal(add(s, NOON + i * 60, 1), 0);
	store_close(s);
}

#endif
