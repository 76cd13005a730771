/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of base/arena. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"

static void test_pieces_are_aligned_and_apart(void **state)
{
	enum { PIECES = 2000 };
	uint8_t *pieces[PIECES];
	struct arena a;

	arena_init(&a, 64 << 20);
	for (size_t i = 0; i < PIECES; i++) {
		pieces[i] = arena_alloc(&a, i % 211 + 1);
		assert_non_null(pieces[i]);
		assert_int_equal((uintptr_t)pieces[i] % 8, 0);
		memset(pieces[i], (int)(i % 251), i % 211 + 1);
	}
	for (size_t i = 0; i < PIECES; i++) {
		assert_int_equal(pieces[i][0], i % 251);
		assert_int_equal(pieces[i][i % 211], i % 251);
	}
	arena_fini(&a);
}

static void test_larger_than_a_chunk(void **state)
{
	struct arena a;
	uint8_t *big, *small;

	arena_init(&a, 1 << 20);
	small = arena_alloc(&a, 10);
	big = arena_alloc(&a, 300000);
	assert_non_null(small);
	assert_non_null(big);
	memset(big, 1, 300000);
	assert_non_null(arena_alloc(&a, 10));
	arena_fini(&a);
}

static void test_bound(void **state)
{
	struct arena a;

	arena_init(&a, 100);
	assert_null(arena_alloc(&a, 101));
	assert_non_null(arena_alloc(&a, 60));
	assert_null(arena_alloc(&a, 60));
	assert_non_null(arena_alloc(&a, 30));
	assert_null(arena_alloc(&a, SIZE_MAX));
	arena_fini(&a);
	assert_non_null(arena_alloc(&a, 100)); /* the bound starts anew */
	arena_fini(&a);
	arena_init(&a, SIZE_MAX);
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_null(arena_alloc(&a, SIZE_MAX - 3));
	arena_fini(&a);
}

static void test_copy_terminates(void **state)
{
	struct arena a;
	char *copy;

	arena_init(&a, 1000);
	copy = arena_copy(&a, "abcdef", 3);
	assert_string_equal(copy, "abc");
	assert_string_equal(arena_copy(&a, NULL, 0), "");
	assert_string_equal(copy, "abc");
	assert_null(arena_copy(&a, "x", SIZE_MAX));
	arena_fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces_are_aligned_and_apart),
		cmocka_unit_test(test_larger_than_a_chunk),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_copy_terminates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
