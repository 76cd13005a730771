/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/collect/reconcile: which expected samples were lost, which were idle time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/collect/reconcile.h"

enum { HZ = 100, PERIOD = 1000000000 / HZ };

static const uint64_t SECOND = 1000000000;

static struct reconcile r;

static int setup(void **state)
{
	return reconcile_init(&r, 2);
}

static int teardown(void **state)
{
	reconcile_fini(&r);
	return 0;
}

static void add(size_t cpu, struct cpu_books now)
{
	reconcile_add(&r, cpu, &now, PERIOD);
}

static void check(uint64_t expected, uint64_t missed, uint64_t missed_idle)
{
	assert_int_equal(r.expected, expected);
	assert_int_equal(r.missed, missed);
	assert_int_equal(r.missed_idle, missed_idle);
}

static void test_all_came(void **state)
{
	add(0, (struct cpu_books){ .expected = 100, .received = 100 });
	check(100, 0, 0);
}

static void test_busy_cpu_lost_some(void **state)
{
	add(0, (struct cpu_books){ .expected = 100, .received = 60 });
	check(100, 40, 0);
}

static void test_idle_cpu_sent_nothing(void **state)
{
	add(1, (struct cpu_books){ .expected = 100, .received = 5, .idle_ns = SECOND });
	check(100, 0, 95);
}

/* Half idle: what idle time does not explain was lost. */
static void test_loss_and_idleness(void **state)
{
	add(0, (struct cpu_books){ .expected = 100, .received = 20, .idle_ns = SECOND / 2 });
	check(100, 30, 50);
}

/* Idle time that has its samples explains no others. */
static void test_idle_samples_came(void **state)
{
	add(0, (struct cpu_books){ .expected = 100, .received = 60, .idle_ns = SECOND / 2,
				   .idle_weight = 50 * PERIOD });
	check(100, 40, 0);
}

/* One CPU's idle time is no excuse for another. */
static void test_cpus_are_apart(void **state)
{
	add(0, (struct cpu_books){ .expected = 100, .received = 50 });
	add(1, (struct cpu_books){ .expected = 100, .received = 100, .idle_ns = SECOND });
	check(200, 50, 0);
}

/* What came early is not expected again, and no sum goes back. */
static void test_early_samples(void **state)
{
	add(0, (struct cpu_books){ .expected = 100, .received = 101 });
	check(101, 0, 0);
	add(0, (struct cpu_books){ .expected = 200, .received = 201 });
	check(201, 0, 0);
	add(0, (struct cpu_books){ .expected = 300, .received = 290 });
	check(300, 10, 0);
	add(0, (struct cpu_books){ .expected = 290, .received = 290 }); /* an estimate that fell */
	check(300, 10, 0);
	add(0, (struct cpu_books){ .expected = 410, .received = 400 });
	check(410, 10, 0);
}

static void test_time_before_the_start(void **state)
{
	reconcile_start(&r, 0, 1000 * SECOND);
	add(0, (struct cpu_books){ .expected = 100, .received = 50, .idle_ns = 1000 * SECOND });
	check(100, 50, 0);
}

/* Unused idle time is kept for a while, but not for ever: a day of it must not hide a loss. */
static void test_bank_is_bounded(void **state)
{
	add(0, (struct cpu_books){ .expected = 8640000, .received = 8640000,
				   .idle_ns = 86400 * SECOND });
	add(0, (struct cpu_books){ .expected = 8650000, .received = 8640000,
				   .idle_ns = 86400 * SECOND });
	assert_int_equal(r.expected, 8650000);
	assert_in_range(r.missed_idle, 1, 2000);
	assert_int_equal(r.missed, 10000 - r.missed_idle);
}

/* Idle time that the kernel takes back. */
static void test_idle_time_falls(void **state)
{
	add(0, (struct cpu_books){ .expected = 100, .received = 100, .idle_ns = SECOND / 100 });
	add(0, (struct cpu_books){ .expected = 200, .received = 150, .idle_ns = 0 });
	assert_in_range(r.missed, 49, 50);
	assert_int_equal(r.expected, 200);
}

/* Half idle, in random order, no idle sample comes: few are taken for lost, ever fewer later. */
static void test_noise(void **state)
{
	struct cpu_books now = { 0 };

	srand(1);
	for (int i = 0; i < 2000; i++) {
		for (int k = 0; k < HZ; k++)
			now.received += rand() & 1;
		now.expected += HZ;
		now.idle_ns += SECOND / 2;
		reconcile_add(&r, 0, &now, PERIOD);
		assert_int_equal(r.expected, now.received + r.missed + r.missed_idle);
	}
	assert_true(r.missed < r.expected / 200);
}

static void test_without_idle_time(void **state)
{
	struct cpu_books now = { .expected = 100, .received = 40, .idle_ns = SECOND };

	reconcile_add(&r, 0, &now, 0);
	check(100, 60, 0);
}

static void parse(const char *text, uint64_t *idle_ns)
{
	reconcile_parse_idle(text, strlen(text), 10, idle_ns, 3);
}

static void test_proc_stat(void **state)
{
	uint64_t idle[3] = { 7, 7, 7 };

	parse("cpu  1 2 3 400 500 6\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu2 0 0 0 10 0 0\n"
	      "cpu9 1 2 3 4 5\nintr 1 2 3 4 5\n", idle);
	assert_int_equal(idle[0], 90);
	assert_int_equal(idle[1], 7);
	assert_int_equal(idle[2], 100);
}

static void test_proc_stat_damaged(void **state)
{
	uint64_t idle[3] = { 7, 7, 7 };

	parse("", idle);
	parse("cpu", idle);
	parse("cpu1", idle);
	parse("cpux 1 2 3 4\ncpu99999999999999999999 1 2 3 4 5\ncp", idle);
	assert_int_equal(idle[0], 7);
	assert_int_equal(idle[2], 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(test_all_came),	  T(test_busy_cpu_lost_some),
		T(test_idle_cpu_sent_nothing), T(test_loss_and_idleness),
		T(test_idle_samples_came), T(test_cpus_are_apart),
		T(test_early_samples),	  T(test_time_before_the_start),
		T(test_bank_is_bounded),  T(test_idle_time_falls),
		T(test_noise),		  T(test_without_idle_time),
		T(test_proc_stat),	  T(test_proc_stat_damaged),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
