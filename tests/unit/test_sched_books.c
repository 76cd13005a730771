/* SPDX-License-Identifier: Apache-2.0 */
/* Books of the scheduler accounting: differences of snapshots, ends, segments, bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/sched/books.h"
#include "base/map.h"
#include "sched_lab.h"

static int64_t sum(const struct sched_totals *t)
{
	int64_t n = 0;

	for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++)
		n += t->ns[i];
	return n;
}

/* O-03: a sleep that began before the window and goes on after it counts for the window. */
static void open_interval_is_charged_once(void **state)
{
	struct sched_books *b = lab_books(false, 100);
	struct sonde_sched_thread t = lab_thread(10, 10, 0);
	const struct sched_row *row;

	lab_spend(&t, 5, SONDE_SCHED_SLEEP);
	sched_books_thread(b, &t, 1000 * MS, 0);
	lab_snapshot(b, 1000);
	for (int window = 1; window <= 3; window++) {
		sched_books_clear(b);
		sched_books_thread(b, &t, (uint64_t)(1000 + 500 * window) * MS, 0);
		lab_snapshot(b, 1000 + 500 * window);
		row = lab_row(b, 10, 0);
		assert_int_equal(row->totals.ns[SONDE_SCHED_SLEEP], 500 * MS);
		assert_int_equal(row->totals.elapsed_ns, 500 * MS);
		assert_int_equal(sum(&row->totals), 500 * MS);
	}
	/* It wakes up at 2600: the window gets 100 ms of sleep, not all of them. */
	sched_books_clear(b);
	lab_spend(&t, 2595, SONDE_SCHED_WOKEN);
	sched_books_thread(b, &t, 2610 * MS, 0);
	lab_snapshot(b, 2610);
	row = lab_row(b, 10, 0);
	assert_int_equal(row->totals.ns[SONDE_SCHED_SLEEP], 100 * MS);
	assert_int_equal(row->totals.ns[SONDE_SCHED_WOKEN], 10 * MS);
	assert_int_equal(row->totals.entries[SONDE_SCHED_WOKEN], 1);
	sched_books_free(b);
}

static void threads_that_end_are_counted_once(void **state)
{
	struct sched_books *b = lab_books(false, 100);
	struct sonde_sched_thread old = lab_thread(10, 11, 0), young = lab_thread(10, 12, 1100);
	const struct sched_row *row;

	sched_books_thread(b, &old, 1000 * MS, 0);
	lab_snapshot(b, 1000);
	sched_books_clear(b);
	/* One was known, the other came and went between two snapshots. */
	lab_spend(&old, 1200, SONDE_SCHED_OTHER);
	lab_spend(&young, 50, SONDE_SCHED_OTHER);
	old.head.id = young.head.id = SONDE_SCHED_ENDED;
	sched_books_thread(b, &young, 1000 * MS, 0);
	sched_books_thread(b, &old, 1000 * MS, 0);
	lab_snapshot(b, 1500);
	row = lab_row(b, 10, 0);
	assert_int_equal(row->totals.ns[SONDE_SCHED_RUNNING], 250 * MS);
	assert_int_equal(row->totals.elapsed_ns, 250 * MS);
	assert_int_equal(row->totals.threads, 2);
	assert_int_equal(sched_books_threads(b), 0);
	sched_books_free(b);
}

/* The last record of a thread comes in the same snapshot behind that of the living one. */
static void end_behind_a_living_record(void **state)
{
	struct sched_books *b = lab_books(false, 100);
	struct sonde_sched_thread t = lab_thread(10, 10, 0);

	lab_snapshot(b, 0);
	sched_books_clear(b);
	sched_books_thread(b, &t, 100 * MS, 0);
	lab_spend(&t, 101, SONDE_SCHED_OTHER);
	t.head.id = SONDE_SCHED_ENDED;
	sched_books_thread(b, &t, 100 * MS, 0);
	lab_snapshot(b, 100);
	assert_int_equal(lab_row(b, 10, 0)->totals.ns[SONDE_SCHED_RUNNING], 101 * MS);
	assert_int_equal(lab_row(b, 10, 0)->totals.threads, 1);
	assert_int_equal(lab_row(b, 10, 0)->totals.elapsed_ns, 101 * MS);
	sched_books_free(b);
}

/* exec: another row from then on, and the process before it keeps its time. */
static void segments_are_rows(void **state)
{
	struct sched_books *b = lab_books(false, 100);
	struct sonde_sched_thread t = lab_thread(10, 10, 0), next;
	const struct sched_row_key *key;
	const struct sched_row *row;
	int64_t by_exec[2] = { 0 };
	size_t cursor = 0;

	lab_snapshot(b, 0);
	sched_books_clear(b);
	sched_books_thread(b, &t, 10 * MS, 0);
	lab_snapshot(b, 10);
	lab_spend(&t, 30, SONDE_SCHED_RUNNING);
	next = t;
	t.head.id = SONDE_SCHED_SEGMENT;
	sched_books_thread(b, &t, 10 * MS, 0);
	next.segment = 1;
	next.exec_id = 1;
	next.birth = next.since;
	next.exec_birth = next.exec;
	memset(next.ns, 0, sizeof(next.ns));
	sched_books_thread(b, &next, 50 * MS, 0);
	lab_snapshot(b, 50);
	while (sched_books_next(b, &cursor, &key, &row))
		by_exec[key->exec_id] = sum(&row->totals);
	assert_int_equal(by_exec[0], 30 * MS);
	assert_int_equal(by_exec[1], 20 * MS);
	sched_books_free(b);
}

static void counts_of_32_bits_may_wrap(void **state)
{
	struct sched_books *b = lab_books(false, 100);
	struct sonde_sched_thread t = lab_thread(10, 10, 0);
	const struct sched_row *row;

	t.entries[SONDE_SCHED_LOCK] = UINT32_MAX - 1;
	t.delay[3] = UINT32_MAX;
	t.migrations = UINT32_MAX;
	sched_books_thread(b, &t, 10 * MS, 0);
	lab_snapshot(b, 10);
	sched_books_clear(b);
	t.entries[SONDE_SCHED_LOCK] += 5;
	t.delay[3] += 7;
	t.migrations += 9;
	sched_books_thread(b, &t, 20 * MS, 0);
	row = lab_row(b, 10, 0);
	assert_int_equal(row->totals.entries[SONDE_SCHED_LOCK], 5);
	assert_int_equal(row->totals.delay[3], 7);
	assert_int_equal(row->totals.migrations, 9);
	sched_books_free(b);
}

/* What the hypervisor took is on the CPU by the clock, but not by the scheduler's count. */
static void steal_is_apart(void **state)
{
	struct sched_books *b = lab_books(false, 100);
	struct sonde_sched_thread t = lab_thread(10, 10, 0);

	lab_snapshot(b, 0);
	sched_books_clear(b);
	lab_spend(&t, 1000, SONDE_SCHED_SLEEP);
	t.exec = (uint64_t)(900 * MS);
	sched_books_thread(b, &t, 1000 * MS, 0);
	assert_int_equal(lab_row(b, 10, 0)->totals.exec_ns, 900 * MS);
	assert_int_equal(sched_stolen_ns(&lab_row(b, 10, 0)->totals), 100 * MS);
	sched_books_free(b);
}

static void too_many_rows_share_one_for_each_name(void **state)
{
	struct sched_books *b = lab_books(false, 10);
	const struct sched_row_key *key;
	const struct sched_row *row;
	size_t cursor = 0, rows = 0;
	int64_t all = 0;

	lab_snapshot(b, 0);
	sched_books_clear(b);
	for (uint32_t i = 0; i < 6000; i++) {
		struct sonde_sched_thread t = lab_thread(100 + i, 100 + i, 0);

		snprintf(t.comm, sizeof(t.comm), "name %u", i % 5000);
		lab_spend(&t, 3, SONDE_SCHED_OTHER);
		t.head.id = SONDE_SCHED_ENDED;
		sched_books_thread(b, &t, 10 * MS, 0);
	}
	while (sched_books_next(b, &cursor, &key, &row)) {
		all += sum(&row->totals);
		rows++;
	}
	assert_int_equal(all, 18000 * MS);
	assert_true(rows > 10 && rows <= 10 + 4096 + 1);
	sched_books_free(b);
}

enum { NAMES = 200000 };

static void name_of(uint64_t number, char *ret_name)
{
	memset(ret_name, 0, SONDE_COMM_LEN);
	snprintf(ret_name, SONDE_COMM_LEN, "name %u", (unsigned int)number);
}

static int by_hash(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Two names whose hashes are alike in the lower half. */
static void find_twins(char *ret_a, char *ret_b)
{
	uint64_t *hashes = calloc(NAMES, sizeof(*hashes)); /* the half, then the name's number */
	size_t i;

	assert_non_null(hashes);
	for (i = 0; i < NAMES; i++) {
		name_of(i, ret_a);
		hashes[i] = (hash_bytes(ret_a, SONDE_COMM_LEN) | 1) << 32 | i;
	}
	qsort(hashes, NAMES, sizeof(*hashes), by_hash);
	for (i = 1; i < NAMES && hashes[i] >> 32 != hashes[i - 1] >> 32;)
		i++;
	assert_true(i < NAMES);
	name_of((uint32_t)hashes[i - 1], ret_a);
	name_of((uint32_t)hashes[i], ret_b);
	free(hashes);
}

/* Rows that processes share are told apart by the name itself. */
static void names_of_one_hash_are_two_rows(void **state)
{
	struct sched_books *b = lab_books(false, 0);
	struct sonde_sched_thread one = lab_thread(10, 10, 0), other = lab_thread(20, 20, 0);
	const struct sched_row_key *key;
	const struct sched_row *row;
	size_t cursor = 0, rows = 0;

	find_twins(one.comm, other.comm);
	lab_snapshot(b, 0);
	sched_books_clear(b);
	sched_books_thread(b, &one, 10 * MS, 0);
	sched_books_thread(b, &other, 10 * MS, 0);
	while (sched_books_next(b, &cursor, &key, &row)) {
		assert_string_equal(row->comm, key->name);
		assert_int_equal(row->totals.threads, 1);
		rows++;
	}
	assert_int_equal(rows, 2);
	sched_books_free(b);
}

/* Its end was refused by the ring: nothing of it stays. */
static void vanished_threads_are_forgotten(void **state)
{
	struct sched_books *b = lab_books(false, 100);
	struct sonde_sched_thread t;

	for (uint32_t i = 0; i < 700; i++) {
		t = lab_thread(10, 20 + i, 0);
		sched_books_thread(b, &t, 10 * MS, 0);
	}
	lab_snapshot(b, 10);
	assert_int_equal(sched_books_threads(b), 700);
	sched_books_thread(b, &t, 20 * MS, 0);
	lab_snapshot(b, 20);
	assert_int_equal(sched_books_threads(b), 1);
	sched_books_free(b);
}

static void torn_records_are_seen(void **state)
{
	struct sonde_sched_thread t = lab_thread(10, 10, 0);

	lab_spend(&t, 5, SONDE_SCHED_SLEEP);
	assert_true(sched_thread_is_whole(&t));
	t.since += 1;
	assert_false(sched_thread_is_whole(&t));
}

static void longest_delay_is_of_the_interval(void **state)
{
	struct sonde_sched_thread t = lab_thread(10, 10, 0);

	t.max[0] = (struct sonde_sched_max){ .ns = 5, .epoch = 4 };
	t.max[1] = (struct sonde_sched_max){ .ns = 9, .epoch = 5 };
	assert_int_equal(sched_max_delay(&t, 4), 5);
	assert_int_equal(sched_max_delay(&t, 5), 9);
	assert_int_equal(sched_max_delay(&t, 6), 0);
	t.head.id = SONDE_SCHED_ENDED; /* nobody will ask again */
	assert_int_equal(sched_max_delay(&t, 4), 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_interval_is_charged_once),
		cmocka_unit_test(threads_that_end_are_counted_once),
		cmocka_unit_test(end_behind_a_living_record),
		cmocka_unit_test(segments_are_rows),
		cmocka_unit_test(counts_of_32_bits_may_wrap),
		cmocka_unit_test(steal_is_apart),
		cmocka_unit_test(too_many_rows_share_one_for_each_name),
		cmocka_unit_test(names_of_one_hash_are_two_rows),
		cmocka_unit_test(vanished_threads_are_forgotten),
		cmocka_unit_test(torn_records_are_seen),
		cmocka_unit_test(longest_delay_is_of_the_interval),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
