/* SPDX-License-Identifier: Apache-2.0 */
/* The governor's arithmetic: bursts, steps down, steps up, no swinging, the memory cap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/governor.h"

enum { INTERVAL = 10 };

static int judge(struct governor *g, double cpu)
{
	struct governor_usage usage = { .seconds = INTERVAL, .cpu = cpu };

	return governor_judge(g, &usage).step;
}

static void test_within_budget_nothing_happens(void **state)
{
	struct governor g = { .cpu_budget = 0.01 };

	for (int i = 0; i < 1000; i++)
		assert_int_equal(judge(&g, 0.0099), 0);
	assert_int_equal(g.level, 0);
}

/* Three times the budget for one interval, then quiet: a start that reads many symbols. */
static void test_a_burst_costs_no_detail(void **state)
{
	struct governor g = { .cpu_budget = 0.01 };

	for (int i = 0; i < 100; i++) {
		assert_int_equal(judge(&g, 0.03), 0);
		for (int calm = 0; calm < 5; calm++)
			assert_int_equal(judge(&g, 0.001), 0);
	}
}

/* Twice the budget for good: the credit of a minute is used up in a minute. */
static void test_lasting_overload_steps_down_within_two_minutes(void **state)
{
	struct governor g = { .cpu_budget = 0.01 };
	int seconds = 0;

	while (g.level == 0 && seconds < 1000) {
		judge(&g, 0.02);
		seconds += INTERVAL;
	}
	assert_in_range(seconds, 60, 120);
	assert_string_equal(governor_level(&g)->name, "half rate");
}

/* A load whose cost is proportional to the rate must come to rest below the budget. */
static void test_comes_to_rest(void **state)
{
	struct governor g = { .cpu_budget = 0.01 };
	double full = 0.035; /* cost at the full rate */
	size_t steps;

	for (int i = 0; i < 200; i++)
		judge(&g, full / governor_level(&g)->rate_divisor);
	assert_true(full / governor_level(&g)->rate_divisor <= 0.01);
	steps = g.steps_down + g.steps_up;
	for (int i = 0; i < 1000; i++)
		judge(&g, full / governor_level(&g)->rate_divisor);
	assert_int_equal(g.steps_down + g.steps_up, steps);
}

static void test_comes_back_up(void **state)
{
	struct governor g = { .cpu_budget = 0.01, .level = GOVERNOR_LEVELS - 1 };
	int intervals = 0;

	while (g.level > 0 && intervals < 1000) {
		judge(&g, 0.001 / governor_level(&g)->rate_divisor);
		intervals++;
	}
	/* The rung of the scheduler accounting is passed over: there is none. */
	assert_int_equal(intervals, GOVERNOR_UP_INTERVALS * (int)(GOVERNOR_LEVELS - 2));
	assert_int_equal(g.steps_up, GOVERNOR_LEVELS - 2);
}

/* Scheduler accounting costs by the switches: it goes first, and comes back when they are few. */
static void test_sched_goes_first_and_comes_back(void **state)
{
	struct governor g = { .cpu_budget = 0.01, .has_sched = true };
	struct governor_usage usage = { .seconds = INTERVAL };

	for (int i = 0; i < 1000; i++) {
		usage.sched = 0.009;
		usage.cpu = governor_level(&g)->no_sched ? 0.003 : 0.012;
		governor_judge(&g, &usage);
	}
	assert_int_equal(g.level, 1);
	assert_true(governor_level(&g)->no_sched);
	assert_false(governor_level(&g)->no_new_names);
	assert_int_equal(g.steps_down, 1); /* no swinging */
	usage = (struct governor_usage){ .seconds = INTERVAL, .cpu = 0.003, .sched = 0.001 };
	for (int i = 0; i < GOVERNOR_UP_INTERVALS; i++)
		governor_judge(&g, &usage);
	assert_int_equal(g.level, 0);
}

static void test_stays_on_the_ladder(void **state)
{
	struct governor g = { .cpu_budget = 0.01 };

	for (int i = 0; i < 1000; i++)
		judge(&g, 1);
	assert_int_equal(g.level, GOVERNOR_LEVELS - 1);
	for (int i = 0; i < 1000; i++)
		judge(&g, 0);
	assert_int_equal(g.level, 0);
}

static void test_no_budget_no_steps(void **state)
{
	struct governor g = { 0 };

	for (int i = 0; i < 100; i++)
		assert_int_equal(judge(&g, 1), 0);
}

static void test_memory_cap(void **state)
{
	struct governor g = { .memory_cap = 100 };
	struct governor_usage under = { .seconds = INTERVAL, .memory_bytes = 100 };
	struct governor_usage over = { .seconds = INTERVAL, .memory_bytes = 101 };

	assert_false(governor_judge(&g, &under).drop_symbols);
	assert_true(governor_judge(&g, &over).drop_symbols);
	assert_int_equal(g.memory_drops, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_within_budget_nothing_happens),
		cmocka_unit_test(test_a_burst_costs_no_detail),
		cmocka_unit_test(test_lasting_overload_steps_down_within_two_minutes),
		cmocka_unit_test(test_comes_to_rest),
		cmocka_unit_test(test_comes_back_up),
		cmocka_unit_test(test_sched_goes_first_and_comes_back),
		cmocka_unit_test(test_stays_on_the_ladder),
		cmocka_unit_test(test_no_budget_no_steps),
		cmocka_unit_test(test_memory_cap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
