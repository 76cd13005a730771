/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/resolve/known: what both sides know goes in two steps. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/resolve/known.h"

enum { KEEP = 5, MAX = 8 };

static int alive;

static void *object(void)
{
	alive++;
	return malloc(1);
}

static void release(void *p)
{
	if (p)
		alive--;
	free(p);
}

static struct known_table table;
static struct forget_list list;

static int setup(void **state)
{
	alive = 0;
	known_init(&table, MAX, KEEP, release);
	return 0;
}

static int teardown(void **state)
{
	known_fini(&table);
	free(list.ids);
	list = (struct forget_list){ 0 };
	return alive;
}

static void test_put_and_get(void **state)
{
	void *a = object(), *b = object();

	assert_null(known_get(&table, 1, 1));
	assert_int_equal(known_put(&table, 1, a, 1), 0);
	assert_int_equal(known_put(&table, 2, b, 1), 0);
	assert_ptr_equal(known_get(&table, 1, 1), a);
	assert_ptr_equal(known_get(&table, 2, 1), b);
	a = object();
	assert_int_equal(known_put(&table, 1, a, 2), 0);
	assert_ptr_equal(known_get(&table, 1, 2), a);
	assert_int_equal(alive, 2);
}

static void test_bound(void **state)
{
	for (uint64_t id = 0; id < MAX; id++)
		assert_int_equal(known_put(&table, id, object(), 1), 0);
	assert_int_equal(known_put(&table, MAX, object(), 1), -ENOSPC);
	assert_int_equal(alive, MAX);
	assert_int_equal(known_put(&table, 0, object(), 1), 0); /* replacing needs no room */
	assert_int_equal(alive, MAX);
}

/* Not used for KEEP drains: listed. Two drains later: freed. */
static void test_two_steps(void **state)
{
	uint32_t now;

	known_put(&table, 7, object(), 1);
	for (now = 1; now <= 1 + KEEP; now++) {
		known_expire(&table, now, &list);
		assert_int_equal(list.count, 0);
	}
	known_expire(&table, now, &list);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.ids[0], 7);
	known_expire(&table, now + 1, &list);
	assert_int_equal(list.count, 1); /* once only */
	assert_non_null(known_get(&table, 7, now + 1)); /* counts of before still find it */
	known_expire(&table, now + 2, &list);
	assert_null(known_get(&table, 7, now + 2));
	assert_int_equal(alive, 0);
	assert_int_equal(list.count, 1);
}

static void test_use_keeps(void **state)
{
	known_put(&table, 7, object(), 1);
	for (uint32_t now = 1; now < 10 * KEEP; now++) {
		if (now % KEEP == 0)
			assert_non_null(known_get(&table, 7, now));
		known_expire(&table, now, &list);
	}
	assert_int_equal(list.count, 0);
}

/* Lists id 7 to be forgotten at drain KEEP + 2. */
static uint32_t forget(void)
{
	known_put(&table, 7, object(), 1);
	known_expire(&table, KEEP + 2, &list);
	assert_int_equal(list.count, 1);
	return KEEP + 2;
}

/* The other side has been told to forget: using the old entry does not bring it back. */
static void test_use_of_what_is_forgotten(void **state)
{
	uint32_t now = forget();

	known_get(&table, 7, now + 1);
	known_expire(&table, now + 2, &list);
	assert_null(known_get(&table, 7, now + 2));
}

static void test_sent_again_meanwhile(void **state)
{
	uint32_t now = forget();

	known_put(&table, 7, object(), now + 1);
	for (uint32_t i = 0; i < KEEP; i++)
		known_expire(&table, now + 1 + i, &list);
	assert_non_null(known_get(&table, 7, now + KEEP));
	assert_int_equal(list.count, 1);
}

static void test_renewed_meanwhile(void **state)
{
	uint32_t now = forget();

	assert_non_null(known_renew(&table, 7, now + 1));
	assert_null(known_renew(&table, 8, now + 1));
	for (uint32_t i = 0; i < KEEP; i++)
		known_expire(&table, now + 1 + i, &list);
	assert_non_null(known_get(&table, 7, now + KEEP));
	assert_int_equal(list.count, 1);
}

/* Over half full, things go after two drains. */
static void test_crowded(void **state)
{
	for (uint64_t id = 0; id <= MAX / 2; id++)
		known_put(&table, id, object(), 1);
	known_expire(&table, 3, &list);
	assert_int_equal(list.count, 0);
	known_get(&table, 0, 4);
	known_expire(&table, 4, &list);
	assert_int_equal(list.count, MAX / 2);
	known_expire(&table, 6, &list);
	assert_int_equal(table.map.count, 1);
}

static void test_long_list(void **state)
{
	for (uint64_t id = 0; id < 1000; id++)
		assert_int_equal(forget_list_add(&list, id), 0);
	for (uint64_t id = 0; id < 1000; id++)
		assert_int_equal(list.ids[id], id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_put_and_get, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bound, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_steps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_use_keeps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_use_of_what_is_forgotten, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sent_again_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_renewed_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_crowded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_list, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
