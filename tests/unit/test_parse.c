/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of base/parse. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/parse.h"

enum { MAX_CPUS = 16, UNTOUCHED = 4711 };

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static void test_u64(void **state)
{
	static const struct {
		const char *text;
		int base, err;
		uint64_t value;
	} cases[] = {
		{ "0", 10, 0, 0 },
		{ "18446744073709551615", 10, 0, UINT64_MAX },
		{ "ffffffffffffffff", 16, 0, UINT64_MAX },
		{ "0x1F", 0, 0, 31 },
		{ "010", 0, 0, 10 },
		{ "18446744073709551616", 10, -ERANGE, 0 },
		{ "184467440737095516150", 10, -ERANGE, 0 },
		{ "10000000000000000", 16, -ERANGE, 0 },
		{ "99999999999999999999x", 10, -EINVAL, 0 },
		{ "", 10, -EINVAL, 0 },
		{ "0x", 0, -EINVAL, 0 },
		{ "-1", 10, -EINVAL, 0 },
		{ "+1", 10, -EINVAL, 0 },
		{ " 1", 10, -EINVAL, 0 },
		{ "1 ", 10, -EINVAL, 0 },
		{ "12a", 10, -EINVAL, 0 },
		{ "0x10", 16, -EINVAL, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t value = UNTOUCHED;

		assert_int_equal(parse_u64(cases[i].text, cases[i].base, &value), cases[i].err);
		assert_int_equal(value, cases[i].err ? UNTOUCHED : cases[i].value);
	}
}

static void test_digits_stop_at_the_end(void **state)
{
	const char *text = "12ab34";
	uint64_t value = UNTOUCHED;

	assert_ptr_equal(parse_digits(text, text + 6, 10, &value), text + 2);
	assert_int_equal(value, 12);
	assert_ptr_equal(parse_digits(text, text + 3, 16, &value), text + 3);
	assert_int_equal(value, 0x12a);
	value = UNTOUCHED;
	assert_null(parse_digits(text + 2, text + 6, 10, &value));
	assert_null(parse_digits(text, text, 10, &value));
	assert_int_equal(value, UNTOUCHED);
}

static void test_cpu_list(void **state)
{
	int cpus[MAX_CPUS];
	size_t count;

	assert_int_equal(parse_cpu_list("0-3,7,9-10\n", cpus, MAX_CPUS, &count), 0);
	assert_int_equal(count, 7);
	assert_memory_equal(cpus, ((int[]){ 0, 1, 2, 3, 7, 9, 10 }), 7 * sizeof(int));
	assert_int_equal(parse_cpu_list("0", cpus, MAX_CPUS, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(parse_cpu_list("\n", cpus, MAX_CPUS, &count), 0);
	assert_int_equal(count, 0);
	assert_int_equal(parse_cpu_list("", cpus, MAX_CPUS, &count), 0);
	assert_int_equal(count, 0);
	assert_int_equal(parse_cpu_list("65520-65535", cpus, MAX_CPUS, &count), 0);
	assert_int_equal(count, 16);
	assert_int_equal(cpus[15], 65535);
}

static void test_bad_cpu_lists(void **state)
{
	static const struct {
		const char *text;
		int err;
	} cases[] = {
		{ "0-16", -ERANGE },
		{ "0-3,4-16", -ERANGE },
		{ "65536", -ERANGE },
		{ "0-18446744073709551615", -ERANGE },
		{ "18446744073709551615", -ERANGE },
		{ "3-1", -EINVAL },
		{ "0-", -EINVAL },
		{ "-1", -EINVAL },
		{ ",1", -EINVAL },
		{ "1,", -EINVAL },
		{ "1,\n", -EINVAL },
		{ "1,,2", -EINVAL },
		{ "1;2", -EINVAL },
		{ "0-3x", -EINVAL },
		{ "a", -EINVAL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int cpus[MAX_CPUS];
		size_t count = UNTOUCHED;

		assert_int_equal(parse_cpu_list(cases[i].text, cpus, MAX_CPUS, &count),
				 cases[i].err);
		assert_int_equal(count, UNTOUCHED);
	}
}

static void test_duration(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} cases[] = {
		{ "90", 90000000000 },
		{ "90s", 90000000000 },
		{ "1.5m", 90000000000 },
		{ "250ms", 250000000 },
		{ "1h", 3600000000000 },
		{ "1d", 86400000000000 },
		{ "0", 0 },
		{ "0.5", 500000000 },
		{ "1.000000001", 1000000001 },
		{ "2.3s", 2300000000 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t ns = UNTOUCHED;

		assert_int_equal(parse_duration(cases[i].text, &ns), 0);
		assert_int_equal(ns, cases[i].ns);
	}
}

/* No whole number of any unit may come out one nanosecond short. */
static void test_durations_are_exact(void **state)
{
	for (uint64_t n = 1; n < 2000; n++) {
		char text[32];
		uint64_t ns;

		snprintf(text, sizeof(text), "%luus", n);
		assert_int_equal(parse_duration(text, &ns), 0);
		assert_int_equal(ns, n * 1000);
		snprintf(text, sizeof(text), "%lums", n);
		assert_int_equal(parse_duration(text, &ns), 0);
		assert_int_equal(ns, n * 1000000);
		snprintf(text, sizeof(text), "0.%04lu", n);
		assert_int_equal(parse_duration(text, &ns), 0);
		assert_int_equal(ns, n * 100000);
	}
}

static void test_bad_durations(void **state)
{
	static const struct {
		const char *text;
		int err;
	} cases[] = {
		{ "", -EINVAL },
		{ "s", -EINVAL },
		{ "-1", -EINVAL },
		{ "+1", -EINVAL },
		{ " 1", -EINVAL },
		{ "1 s", -EINVAL },
		{ "1x", -EINVAL },
		{ "1.", -EINVAL },
		{ ".5", -EINVAL },
		{ "1.5.5", -EINVAL },
		{ "0x10", -EINVAL },
		{ "1e3", -EINVAL },
		{ "inf", -EINVAL },
		{ "1ss", -EINVAL },
		{ "99999999999999999999", -ERANGE },
		{ "999999999d", -ERANGE },
		{ "18446744074", -ERANGE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t ns = UNTOUCHED;

		assert_int_equal(parse_duration(cases[i].text, &ns), cases[i].err);
		assert_int_equal(ns, UNTOUCHED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_u64),           cmocka_unit_test(test_digits_stop_at_the_end),
		cmocka_unit_test(test_cpu_list),      cmocka_unit_test(test_bad_cpu_lists),
		cmocka_unit_test(test_duration),      cmocka_unit_test(test_durations_are_exact),
		cmocka_unit_test(test_bad_durations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
