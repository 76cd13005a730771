/* SPDX-License-Identifier: Apache-2.0 */
/* Waits between tries: within their bounds for any random number, and what the server asks for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/export/backoff.h"

static const uint64_t randoms[] = { 0, 1, 0x7fffffffffffffff, UINT64_MAX, 0x123456789abcdef };
enum { RANDOMS = sizeof(randoms) / sizeof(randoms[0]) };

static void test_doubles_up_to_the_bound(void **state)
{
	for (size_t r = 0; r < RANDOMS; r++) {
		struct backoff b = { .max = 60 * NSEC_PER_SEC };
		nsec_t bound = NSEC_PER_SEC;

		for (int i = 0; i < 100; i++) {
			nsec_t wait = backoff_failed(&b, randoms[r], 0);

			assert_true(wait <= bound && wait >= NSEC_PER_SEC / 10);
			bound = bound * 2 < b.max ? bound * 2 : b.max;
		}
	}
}

static void test_spreads_over_all_of_the_time(void **state)
{
	struct backoff b = { .max = 4 * NSEC_PER_SEC, .failures = 9 };
	int halves[2] = { 0 };

	for (uint64_t i = 0; i < 1000; i++)
		halves[backoff_failed(&b, i * 0x9e3779b97f4a7c15ULL, 0) > 2 * NSEC_PER_SEC]++;
	assert_true(halves[0] > 400 && halves[1] > 400);
}

static void test_server_is_obeyed_within_reason(void **state)
{
	for (size_t r = 0; r < RANDOMS; r++) {
		struct backoff b = { .max = NSEC_PER_SEC };
		nsec_t wait = backoff_failed(&b, randoms[r], 30 * NSEC_PER_SEC);

		assert_true(wait >= 30 * NSEC_PER_SEC && wait <= 33 * NSEC_PER_SEC);
		wait = backoff_failed(&b, randoms[r], 86400 * NSEC_PER_SEC);
		assert_true(wait >= 900 * NSEC_PER_SEC && wait <= 990 * NSEC_PER_SEC);
	}
}

static void test_hold_and_reset(void **state)
{
	struct backoff b = { .max = 300 * NSEC_PER_SEC };

	for (size_t r = 0; r < RANDOMS; r++) {
		nsec_t wait = backoff_hold(&b, randoms[r]);

		assert_true(wait >= 150 * NSEC_PER_SEC && wait <= 300 * NSEC_PER_SEC);
	}
	backoff_reset(&b);
	assert_true(backoff_failed(&b, UINT64_MAX, 0) <= NSEC_PER_SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_doubles_up_to_the_bound),
		cmocka_unit_test(test_spreads_over_all_of_the_time),
		cmocka_unit_test(test_server_is_obeyed_within_reason),
		cmocka_unit_test(test_hold_and_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
