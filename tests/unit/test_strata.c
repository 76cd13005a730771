/* SPDX-License-Identifier: Apache-2.0 */
/* Time off the CPU shared out by stack: the sum is that of the books, whatever the strata say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/sched/strata.h"
#include "sched_lab.h"

enum { MAX_SHARES = 4096, ROWS = 40 };

struct shares {
	struct strata_share all[MAX_SHARES];
	struct sonde_off_key stacks[MAX_SHARES];
	size_t count;
};

static struct shares got;
static struct strata *strata;
static struct sched_books *books;

static void on_share(void *context, const struct strata_share *share)
{
	assert_true(got.count < MAX_SHARES);
	if (share->stack)
		got.stacks[got.count] = *share->stack;
	got.all[got.count++] = *share;
}

static struct strata_options options(void)
{
	return (struct strata_options){ .states = UINT32_MAX, .share = on_share };
}

static int setup(void **state)
{
	got.count = 0;
	books = lab_books(false, 1000);
	return strata_new(10000, 10000, &strata);
}

static int teardown(void **state)
{
	sched_books_free(books);
	strata_free(strata);
	return 0;
}

/* A process that has spent `ms` in `wait` and then ran for a while, up to 10000 ms. */
static struct sonde_sched_thread waited(uint32_t tgid, uint32_t wait, int64_t ms)
{
	struct sonde_sched_thread t = lab_thread(tgid, tgid, 0);

	lab_spend(&t, 10, wait);
	lab_spend(&t, ms, SONDE_SCHED_RUNNING);
	lab_spend(&t, 9890 - ms, SONDE_SCHED_OTHER);
	lab_spend(&t, 100, SONDE_SCHED_RUNNING);
	sched_books_thread(books, &t, 10000 * MS, 0);
	return t;
}

static struct sonde_stratum_key stratum_of(const struct sonde_sched_thread *t, uint32_t state,
					   uint32_t bucket)
{
	return (struct sonde_stratum_key){ sonde_off_row(t), state, bucket };
}

static void add_stratum(struct sonde_stratum_key key, uint64_t count, int64_t ms)
{
	strata_add(strata, &key, &(struct sonde_stratum){ count, (uint64_t)(ms * MS), 7 });
}

static void add_stack(struct sonde_stratum_key key, uint64_t stack, uint64_t count, int64_t ms)
{
	struct sonde_off_key k = { .stratum = key, .user_stack = stack };

	strata_stack(strata, &k, &(struct sonde_off_count){ 1, count, (uint64_t)(ms * MS), 5 });
}

static void distribute(const struct strata_options *how)
{
	lab_snapshot(books, 10000);
	got.count = 0;
	assert_int_equal(strata_distribute(strata, books, how), 0);
}

/* What a stack (0: none) has of a state; of all processes. */
static struct strata_share sum_of(uint32_t state, uint64_t stack)
{
	struct strata_share sum = { 0 };

	for (size_t i = 0; i < got.count; i++) {
		uint64_t has = got.all[i].stack ? got.stacks[i].user_stack : 0;

		if (got.all[i].state != state || has != stack)
			continue;
		sum.ns += got.all[i].ns;
		sum.count += got.all[i].count;
		if (got.all[i].max_ns > sum.max_ns)
			sum.max_ns = got.all[i].max_ns;
	}
	return sum;
}

static void parts_add_up(void **state)
{
	uint64_t seed = 1;

	for (int turn = 0; turn < 1000; turn++) {
		uint64_t weights[9], all = 0, before = 0, sum = 0;
		uint64_t whole;

		seed = sonde_off_hash(seed, 1);
		whole = seed >> (seed & 63);
		for (int i = 0; i < 9; i++) {
			seed = sonde_off_hash(seed, (uint64_t)i);
			weights[i] = seed >> (4 + (seed & 31));
			all += weights[i];
		}
		for (int i = 0; i < 9; i++) {
			sum += strata_part(whole, before, weights[i], all);
			before += weights[i];
		}
		assert_int_equal(sum, whole);
	}
	assert_int_equal(strata_part(100, 0, 0, 0), 0);
}

static void stacks_share_their_stratum(void **state)
{
	struct sonde_sched_thread t = waited(10, SONDE_SCHED_LOCK, 100);
	struct sonde_stratum_key small = stratum_of(&t, SONDE_SCHED_LOCK, 5),
				 large = stratum_of(&t, SONDE_SCHED_LOCK, 16);
	struct strata_options how = options();

	add_stratum(small, 400, 40);
	add_stack(small, 1, 30, 3); /* each capture stands for many: 30 of 40 */
	add_stack(small, 2, 10, 1);
	add_stratum(large, 1, 50);
	add_stack(large, 3, 1, 48);
	distribute(&how);
	assert_int_equal(sum_of(SONDE_SCHED_LOCK, 1).ns, 30 * MS);
	assert_int_equal(sum_of(SONDE_SCHED_LOCK, 1).count, 300);
	assert_int_equal(sum_of(SONDE_SCHED_LOCK, 2).ns, 10 * MS);
	assert_int_equal(sum_of(SONDE_SCHED_LOCK, 2).count, 100);
	/* One long wait is not outweighed by what many short ones stand for. */
	assert_int_equal(sum_of(SONDE_SCHED_LOCK, 3).ns, 50 * MS);
	assert_int_equal(sum_of(SONDE_SCHED_LOCK, 3).count, 1);
	assert_int_equal(sum_of(SONDE_SCHED_LOCK, 3).max_ns, 5);
	/* What is in no stratum. */
	assert_int_equal(sum_of(SONDE_SCHED_LOCK, 0).ns, 10 * MS);
	assert_int_equal(sum_of(SONDE_SCHED_RUNNING, 0).ns, 0);
}

static void stratum_without_stacks_is_told(void **state)
{
	struct sonde_sched_thread t = waited(10, SONDE_SCHED_LOCK, 100);
	struct sonde_stratum_key key = stratum_of(&t, SONDE_SCHED_LOCK, 5);
	struct strata_options how = options();

	add_stratum(key, 9, 100);
	distribute(&how);
	assert_int_equal(sum_of(SONDE_SCHED_LOCK, 0).ns, 100 * MS);
	assert_int_equal(sum_of(SONDE_SCHED_LOCK, 0).count, 9);
	assert_int_equal(sum_of(SONDE_SCHED_LOCK, 0).max_ns, 7);
}

/* A wait that ended while maps were read is in the strata, and not yet in the books. */
static void never_more_than_the_books(void **state)
{
	struct sonde_sched_thread t = waited(10, SONDE_SCHED_PIPE, 100);
	struct sonde_stratum_key one = stratum_of(&t, SONDE_SCHED_PIPE, 5),
				 two = stratum_of(&t, SONDE_SCHED_PIPE, 6);
	struct strata_options how = options();

	add_stratum(one, 1, 150);
	add_stack(one, 1, 1, 1);
	add_stratum(two, 1, 50);
	distribute(&how);
	assert_int_equal(sum_of(SONDE_SCHED_PIPE, 1).ns, 75 * MS);
	assert_int_equal(sum_of(SONDE_SCHED_PIPE, 0).ns, 25 * MS);
}

static void open_waits_have_their_stacks(void **state)
{
	struct sonde_off_thread o = { .weight = 4, .user_stack = 9 };
	struct strata_options how = options();

	o.t = lab_thread(10, 10, 0);
	lab_spend(&o.t, 10, SONDE_SCHED_SLEEP);
	sched_books_thread(books, &o.t, 5000 * MS, 0);
	lab_snapshot(books, 5000);
	sched_books_clear(books);
	sched_books_thread(books, &o.t, 10000 * MS, 0);
	strata_open(strata, &o, 10000 * MS, 5000 * MS, &how);
	distribute(&how);
	assert_int_equal(sum_of(SONDE_SCHED_SLEEP, 9).ns, 5000 * MS);
	assert_int_equal(sum_of(SONDE_SCHED_SLEEP, 9).count, 0); /* it has not ended */
	assert_int_equal(sum_of(SONDE_SCHED_SLEEP, 9).max_ns, 9990 * MS);
	assert_int_equal(sum_of(SONDE_SCHED_SLEEP, 0).ns, 0);
	/* On a CPU, or begun just now: nothing. */
	o.t.state = SONDE_SCHED_RUNNING;
	strata_open(strata, &o, 10000 * MS, 5000 * MS, &how);
	o.t.state = SONDE_SCHED_SLEEP;
	o.t.since = 10000 * MS;
	strata_open(strata, &o, 10000 * MS, 5000 * MS, &how);
	distribute(&how);
	assert_int_equal(sum_of(SONDE_SCHED_SLEEP, 9).ns, 0);
}

static bool only_11(void *context, const struct sched_row_key *row)
{
	return row->tgid == 11;
}

static void filters_leave_out(void **state)
{
	struct sonde_sched_thread t = waited(10, SONDE_SCHED_LOCK, 100);
	struct sonde_stratum_key key = stratum_of(&t, SONDE_SCHED_LOCK, 20);
	struct strata_options how = options();

	waited(11, SONDE_SCHED_DISK, 30);
	waited(12, SONDE_SCHED_DISK, 70);
	how.states = 1u << SONDE_SCHED_DISK;
	how.wanted = only_11;
	distribute(&how);
	assert_int_equal(sum_of(SONDE_SCHED_DISK, 0).ns, 30 * MS);
	assert_int_equal(sum_of(SONDE_SCHED_LOCK, 0).ns, 0);
	/* Of short waits nothing is known then: what is in no stratum is left out, too. */
	how = options();
	how.min_ns = 1;
	add_stratum(key, 1, 60);
	distribute(&how);
	assert_int_equal(sum_of(SONDE_SCHED_LOCK, 0).ns, 60 * MS);
	assert_int_equal(sum_of(SONDE_SCHED_DISK, 0).ns, 0);
}

static void without_room_time_stays(void **state)
{
	struct sonde_sched_thread t = waited(10, SONDE_SCHED_LOCK, 100);
	struct strata_options how = options();

	strata_free(strata);
	assert_int_equal(strata_new(2, 1, &strata), 0);
	for (uint32_t bucket = 0; bucket < 5; bucket++)
		add_stratum(stratum_of(&t, SONDE_SCHED_LOCK, bucket), 1, 20);
	add_stack(stratum_of(&t, SONDE_SCHED_LOCK, 0), 1, 1, 20);
	add_stack(stratum_of(&t, SONDE_SCHED_LOCK, 1), 1, 1, 20);
	assert_int_equal(strata_refused(strata), 4);
	distribute(&how);
	assert_int_equal(sum_of(SONDE_SCHED_LOCK, 1).ns, 20 * MS);
	assert_int_equal(sum_of(SONDE_SCHED_LOCK, 0).ns, 80 * MS);
}

/* Samples are few; the time on a CPU is known. */
static void samples_share_the_time_on_a_cpu(void **state)
{
	struct sonde_sched_thread t = waited(10, SONDE_SCHED_LOCK, 100);
	struct sonde_off_key key = { .stratum = { sonde_off_row(&t), SONDE_SCHED_RUNNING, 0 } };
	struct strata_options how = options();

	waited(11, SONDE_SCHED_LOCK, 100);
	how.running = true;
	key.user_stack = 1;
	strata_on_cpu(strata, &key, 3, 30 * MS);
	key.user_stack = 2;
	strata_on_cpu(strata, &key, 1, 10 * MS);
	distribute(&how);
	assert_int_equal(sum_of(SONDE_SCHED_RUNNING, 1).ns + sum_of(SONDE_SCHED_RUNNING, 2).ns,
			 (9890 - 100 + 10) * MS);
	assert_int_equal(sum_of(SONDE_SCHED_RUNNING, 1).ns, 7350 * MS);
	assert_int_equal(sum_of(SONDE_SCHED_RUNNING, 1).count, 3);
	assert_int_equal(sum_of(SONDE_SCHED_RUNNING, 0).ns, (9890 - 100 + 10) * MS); /* never sampled */
}

/* Any processes, strata and stacks: each state of each process sums up to what its row says. */
static void sums_are_those_of_the_books(void **state)
{
	struct strata_options how = options();
	const struct sched_row_key *key;
	const struct sched_row *row;
	uint64_t seed = 7;
	size_t cursor = 0;

	for (uint32_t tgid = 1; tgid <= ROWS; tgid++) {
		struct sonde_sched_thread t = waited(tgid, SONDE_SCHED_LOCK + tgid % 5, 100 + tgid);

		for (int i = 0; i < 12; i++) {
			struct sonde_stratum_key at;

			seed = sonde_off_hash(seed, tgid);
			at = stratum_of(&t, SONDE_SCHED_LOCK + seed % 6, seed >> 8 & 15);
			add_stratum(at, seed >> 16 & 255, (int64_t)(seed >> 24 & 31));
			add_stack(at, 1 + (seed >> 40 & 3), seed >> 42 & 15, (int64_t)(seed >> 46 & 3));
		}
	}
	distribute(&how);
	while (sched_books_next(books, &cursor, &key, &row)) {
		uint64_t sums[SONDE_SCHED_STATE_COUNT] = { 0 };

		for (size_t i = 0; i < got.count; i++) {
			if (got.all[i].row->tgid == key->tgid)
				sums[got.all[i].state] += got.all[i].ns;
		}
		for (int i = SONDE_SCHED_WOKEN; i < SONDE_SCHED_STATE_COUNT; i++)
			assert_int_equal(sums[i], row->totals.ns[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_add_up),
		cmocka_unit_test_setup_teardown(stacks_share_their_stratum, setup, teardown),
		cmocka_unit_test_setup_teardown(stratum_without_stacks_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(never_more_than_the_books, setup, teardown),
		cmocka_unit_test_setup_teardown(open_waits_have_their_stacks, setup, teardown),
		cmocka_unit_test_setup_teardown(filters_leave_out, setup, teardown),
		cmocka_unit_test_setup_teardown(without_room_time_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(samples_share_the_time_on_a_cpu, setup, teardown),
		cmocka_unit_test_setup_teardown(sums_are_those_of_the_books, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
