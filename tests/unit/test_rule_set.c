/* SPDX-License-Identifier: Apache-2.0 */
/* The dictionary of unwind rules: shared numbers, users counted, numbers used again. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/collect/rule_set.h"

static struct sonde_rule rule_of(int i)
{
	return (struct sonde_rule){ .cfa = SONDE_CFA_SP, .off = i };
}

static uint16_t take(struct rule_set *s, int i, bool want_new)
{
	struct sonde_rule rule = rule_of(i);
	uint16_t number;
	bool is_new;

	assert_int_equal(rule_set_take(s, &rule, &number, &is_new), 0);
	assert_int_equal(is_new, want_new);
	return number;
}

static void test_none_is_number_0(void **state)
{
	struct sonde_rule none = { 0 };
	struct rule_set s;
	uint16_t number = 1;
	bool is_new = true;

	assert_int_equal(rule_set_init(&s), 0);
	assert_int_equal(rule_set_take(&s, &none, &number, &is_new), 0);
	assert_int_equal(number, 0);
	assert_false(is_new);
	rule_set_release(&s, 0);
	assert_int_not_equal(take(&s, 8, true), 0);
	rule_set_fini(&s);
}

static void test_equal_rules_share_a_number(void **state)
{
	struct rule_set s;
	uint16_t a, b;

	assert_int_equal(rule_set_init(&s), 0);
	a = take(&s, 8, true);
	b = take(&s, 16, true);
	assert_int_not_equal(a, b);
	assert_int_equal(take(&s, 8, false), a);
	rule_set_release(&s, a);
	assert_int_equal(take(&s, 8, false), a); /* one user was left */
	rule_set_release(&s, a);
	rule_set_release(&s, a);
	assert_int_equal(take(&s, 24, true), a); /* the number is free again */
	rule_set_fini(&s);
}

/* A full dictionary refuses new rules only, and is usable again after releases. */
static void test_never_full_for_good(void **state)
{
	struct sonde_rule rule = rule_of(SONDE_MAX_RULES);
	struct rule_set s;
	uint16_t number;
	bool is_new;

	assert_int_equal(rule_set_init(&s), 0);
	for (int i = 1; i < SONDE_MAX_RULES; i++)
		take(&s, i, true);
	assert_int_equal(rule_set_take(&s, &rule, &number, &is_new), -ENOSPC);
	number = take(&s, 77, false);
	for (int round = 0; round < 3; round++) {
		for (int i = 1; i < SONDE_MAX_RULES; i++) {
			uint16_t have = take(&s, i, false);

			rule_set_release(&s, have);
		}
	}
	rule_set_release(&s, number);
	rule_set_release(&s, number);
	assert_int_equal(rule_set_take(&s, &rule, &number, &is_new), 0);
	assert_true(is_new);
	rule_set_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none_is_number_0),
		cmocka_unit_test(test_equal_rules_share_a_number),
		cmocka_unit_test(test_never_full_for_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
