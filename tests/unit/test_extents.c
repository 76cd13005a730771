/* SPDX-License-Identifier: Apache-2.0 */
/* The run allocator, against a simple model: one byte for each unit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/collect/extents.h"

enum { TOTAL = 4096, BARRIER = 1024, ROUNDS = 20000, MAX_RUNS = 512 };

static void test_runs_do_not_cross_barriers(void **state)
{
	struct extents e;
	uint32_t first;

	assert_int_equal(extents_init(&e, TOTAL, BARRIER), 0);
	assert_int_equal(extents_alloc(&e, BARRIER + 1, &first), -28 /* ENOSPC */);
	for (uint32_t i = 0; i < TOTAL / BARRIER; i++) {
		assert_int_equal(extents_alloc(&e, BARRIER, &first), 0);
		assert_int_equal(first, i * BARRIER);
	}
	assert_int_equal(e.free_units, 0);
	/* Neighbours given back do not become one run over the barrier. */
	assert_int_equal(extents_free(&e, 0, BARRIER), 0);
	assert_int_equal(extents_free(&e, BARRIER, BARRIER), 0);
	assert_int_equal(extents_alloc(&e, BARRIER + 1, &first), -28);
	extents_fini(&e);
}

static void test_random_against_model(void **state)
{
	struct extent runs[MAX_RUNS];
	uint8_t used[TOTAL] = { 0 };
	size_t run_count = 0;
	struct extents e;

	srand(1);
	assert_int_equal(extents_init(&e, TOTAL, BARRIER), 0);
	for (int round = 0; round < ROUNDS; round++) {
		if (run_count < MAX_RUNS && rand() % 2) {
			uint32_t count = 1 + (uint32_t)rand() % 40, first;

			if (extents_alloc(&e, count, &first))
				continue;
			assert_true(first / BARRIER == (first + count - 1) / BARRIER);
			for (uint32_t i = first; i < first + count; i++) {
				assert_int_equal(used[i], 0);
				used[i] = 1;
			}
			runs[run_count++] = (struct extent){ first, count };
		} else if (run_count) {
			size_t i = (size_t)rand() % run_count;

			assert_int_equal(extents_free(&e, runs[i].first, runs[i].count), 0);
			memset(used + runs[i].first, 0, runs[i].count);
			runs[i] = runs[--run_count];
		}
	}
	while (run_count--)
		assert_int_equal(extents_free(&e, runs[run_count].first, runs[run_count].count), 0);
	/* All has grown together again. */
	assert_int_equal(e.free_count, TOTAL / BARRIER);
	assert_int_equal(e.free_units, TOTAL);
	extents_fini(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs_do_not_cross_barriers),
		cmocka_unit_test(test_random_against_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
