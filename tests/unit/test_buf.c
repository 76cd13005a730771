/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of base/buf. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

static void test_appends_in_order(void **state)
{
	struct buf b;

	buf_init(&b, 1 << 20);
	buf_put(&b, "ab", 2);
	buf_put_byte(&b, 'c');
	buf_put_str(&b, "def");
	buf_printf(&b, "%d-%s", 42, "x");
	buf_put(&b, "unused", 0);
	assert_int_equal(buf_error(&b), 0);
	assert_int_equal(b.len, 10);
	assert_memory_equal(b.data, "abcdef42-x", 10);
	buf_fini(&b);
}

static void test_content_survives_growth(void **state)
{
	struct buf b;

	buf_init(&b, 1 << 20);
	for (int i = 0; i < 100000; i++)
		buf_put_byte(&b, (uint8_t)(i * 7));
	assert_int_equal(b.len, 100000);
	for (int i = 0; i < 100000; i++)
		assert_int_equal(b.data[i], (uint8_t)(i * 7));
	buf_fini(&b);
}

static void test_bound_is_exact(void **state)
{
	struct buf b;

	buf_init(&b, 10);
	buf_put(&b, "0123456789", 10);
	assert_int_equal(buf_error(&b), 0);
	buf_put_byte(&b, 'x');
	assert_int_equal(buf_error(&b), -ENOSPC);
	assert_int_equal(b.len, 10);
	buf_fini(&b);
}

static void test_printf_may_fill_to_the_bound(void **state)
{
	struct buf b;

	buf_init(&b, 10);
	buf_printf(&b, "%s", "0123456789");
	assert_int_equal(buf_error(&b), 0);
	assert_int_equal(b.len, 10);
	assert_memory_equal(b.data, "0123456789", 10);
	buf_printf(&b, "%s", "");
	assert_int_equal(buf_error(&b), 0);
	buf_printf(&b, "x");
	assert_int_equal(buf_error(&b), -ENOSPC);
	assert_int_equal(b.len, 10);
	buf_fini(&b);
}

static void test_error_is_sticky_until_reset(void **state)
{
	struct buf b;

	buf_init(&b, 4);
	buf_put(&b, "12345", 5);
	buf_put(&b, "1", 1);
	assert_int_equal(buf_error(&b), -ENOSPC);
	assert_int_equal(b.len, 0);
	assert_null(buf_reserve(&b, 1));
	assert_null(buf_cstr(&b));
	buf_reset(&b);
	buf_put(&b, "1", 1);
	assert_int_equal(buf_error(&b), 0);
	assert_int_equal(b.len, 1);
	buf_fini(&b);
}

static void test_huge_lengths_do_not_wrap(void **state)
{
	struct buf b;

	buf_init(&b, SIZE_MAX);
	buf_put(&b, "abc", 3);
	assert_null(buf_reserve(&b, SIZE_MAX - 1));
	assert_int_equal(buf_error(&b), -ENOSPC);
	buf_fini(&b);
}

static void test_cstr_terminates_without_counting(void **state)
{
	struct buf b;

	buf_init(&b, 100);
	assert_string_equal(buf_cstr(&b), "");
	buf_put_str(&b, "text");
	assert_string_equal(buf_cstr(&b), "text");
	assert_int_equal(b.len, 4);
	buf_put_str(&b, "s");
	assert_string_equal(buf_cstr(&b), "texts");
	buf_fini(&b);
	buf_fini(&b); /* takes an empty one too */
}

static void test_cstr_of_a_full_buffer(void **state)
{
	struct buf b;

	buf_init(&b, 100);
	for (int i = 0; i < 100; i++)
		buf_put_byte(&b, 'x');
	assert_int_equal(strlen(buf_cstr(&b)), 100);
	assert_int_equal(buf_error(&b), 0);
	buf_fini(&b);
}

static void test_reserve_gives_room_to_fill(void **state)
{
	struct buf b;
	uint8_t *to;

	buf_init(&b, 1000);
	to = buf_reserve(&b, 1000);
	assert_non_null(to);
	memset(to, 7, 1000);
	assert_int_equal(b.len, 0);
	b.len = 1000;
	assert_int_equal(b.data[999], 7);
	buf_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_appends_in_order),
		cmocka_unit_test(test_content_survives_growth),
		cmocka_unit_test(test_bound_is_exact),
		cmocka_unit_test(test_printf_may_fill_to_the_bound),
		cmocka_unit_test(test_error_is_sticky_until_reset),
		cmocka_unit_test(test_huge_lengths_do_not_wrap),
		cmocka_unit_test(test_cstr_terminates_without_counting),
		cmocka_unit_test(test_cstr_of_a_full_buffer),
		cmocka_unit_test(test_reserve_gives_room_to_fill),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
