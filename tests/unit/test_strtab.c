/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of base/strtab. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/strtab.h"

static void test_numbers_in_order_of_arrival(void **state)
{
	struct strtab t;

	assert_int_equal(strtab_init(&t, 1 << 20), 0);
	assert_int_equal(strtab_add(&t, "", 0), 0);
	assert_int_equal(strtab_add(&t, "one", 3), 1);
	assert_int_equal(strtab_add(&t, "two and more", 3), 2);
	assert_int_equal(strtab_add(&t, "one", 3), 1);
	assert_int_equal(strtab_add(&t, "two", 3), 2);
	assert_int_equal(strtab_add(&t, "on", 2), 3);
	assert_int_equal(t.count, 4);
	assert_string_equal(strtab_get(&t, 0), "");
	assert_string_equal(strtab_get(&t, 2), "two");
	strtab_fini(&t);
	strtab_fini(&t);
}

static void test_many_strings_keep_their_numbers(void **state)
{
	enum { COUNT = 20000 };
	struct strtab t;
	char text[32];

	assert_int_equal(strtab_init(&t, 4 << 20), 0);
	for (int round = 0; round < 2; round++) {
		for (int i = 1; i <= COUNT; i++) {
			int len = snprintf(text, sizeof(text), "string %d", i);

			assert_int_equal(strtab_add(&t, text, (size_t)len), i);
		}
	}
	assert_int_equal(t.count, COUNT + 1);
	assert_string_equal(strtab_get(&t, 12345), "string 12345");
	strtab_fini(&t);
}

static void test_bound(void **state)
{
	struct strtab t;
	char text[64] = { 0 };

	assert_int_equal(strtab_init(&t, 64), 0);
	memset(text, 'x', sizeof(text));
	assert_int_equal(strtab_add(&t, text, sizeof(text)), -ENOMEM);
	assert_int_equal(strtab_add(&t, text, 20), 1);
	assert_int_equal(t.count, 2);
	strtab_fini(&t);
	assert_int_equal(strtab_init(&t, 0), -ENOMEM);
	strtab_fini(&t);
}

/* Names come from foreign memory: a NUL in one ends it, and nothing past a string is read. */
static void test_string_ends_at_nul(void **state)
{
	static const char long_one[80] = "ab";
	struct strtab t;

	assert_int_equal(strtab_init(&t, 1000), 0);
	assert_int_equal(strtab_add(&t, "ab", 2), 1);
	assert_int_equal(strtab_add(&t, long_one, sizeof(long_one)), 1);
	assert_int_equal(strtab_add(&t, "\0abc", 4), 0);
	assert_int_equal(t.count, 2);
	strtab_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_in_order_of_arrival),
		cmocka_unit_test(test_many_strings_keep_their_numbers),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_string_ends_at_nul),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
