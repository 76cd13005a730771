/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of base/strtab. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/map.h"
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

/* What hash_bytes() goes on with behind the first word of 16 bytes. */
static uint64_t state_behind(uint64_t word)
{
	uint64_t x = word ^ 0x9e3779b97f4a7c15ULL ^ 16;

	for (int i = 0; i < 2; i++) {
		x ^= x >> 32;
		x *= 0xd6e8feb86659fd93ULL;
	}
	return (x ^ x >> 32) + 0x9e3779b97f4a7c15ULL;
}

/*
 * Names as a tenant may choose them, in a perf map for one: all of the same hash_bytes(). In a table
 * that went by it this would take half an hour.
 */
static void test_chosen_strings(void **state)
{
	enum { COUNT = 200000 };
	const uint64_t target = 0x0123456789abcdefULL;
	uint64_t words[2], hash = 0;
	struct strtab t;
	size_t added = 0;

	assert_int_equal(strtab_init(&t, 64 << 20), 0);
	for (uint64_t i = 0; added < COUNT; i++) {
		words[0] = i * 0x0101010101010101ULL ^ 0x6161616161616161ULL;
		words[1] = target ^ state_behind(words[0]);
		if (memchr(words, 0, sizeof(words)))
			continue;
		assert_true(!added || hash_bytes(words, sizeof(words)) == hash);
		hash = hash_bytes(words, sizeof(words));
		assert_true(strtab_add(&t, (const char *)words, sizeof(words)) > 0);
		added++;
	}
	assert_int_equal(t.count, COUNT + 1);
	strtab_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_in_order_of_arrival),
		cmocka_unit_test(test_many_strings_keep_their_numbers),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_string_ends_at_nul),
		cmocka_unit_test(test_chosen_strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
