/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/resolve/files: what goes by time, however far apart the drains are. */
#include "agent/resolve/files.h"
#include "resolve_lab.h"

#include <stdlib.h>

static struct file_table table;

static int setup(void **state)
{
	const struct sym_file_options options = { 0 };

	return file_table_init(&table, "/proc", 64 << 20, &options);
}

static int teardown(void **state)
{
	file_table_fini(&table);
	return 0;
}

static void announce(void)
{
	struct sonde_file record;
	struct event event;

	lab_file_record(&record);
	event = lab_file_event(&record, LAB_FILE);
	assert_false(file_table_event(&table, &event, 1));
}

/* Ids on the list after a tick. */
static size_t tick(uint32_t drain, uint64_t seconds)
{
	struct forget_list list = { 0 };
	size_t count;

	file_table_tick(&table, drain, seconds * NSEC_PER_SEC, &list);
	count = list.count;
	free(list.ids);
	return count;
}

/* What found no room is tried again once a minute. */
static void test_tried_again(void **state)
{
	table.budget = 0;
	announce();
	assert_int_equal(file_table_find(&table, LAB_FILE, 1)->reason, SYM_NO_MEMORY);
	assert_int_equal(tick(2, 59), 0);
	assert_int_equal(tick(3, 60), 1);
	assert_int_equal(tick(4, 119), 0);
	assert_int_equal(tick(5, 120), 1);
}

/* Kept for an hour: 360 drains of 10 s; not for less than 10 drains, if they are far apart. */
static void test_forgotten(void **state)
{
	static const struct {
		uint32_t drains, seconds;
		size_t forgotten;
	} rows[] = {
		{ 3601, 1, 0 }, { 3602, 1, 1 }, { 361, 10, 0 },
		{ 362, 10, 1 }, { 11, 1800, 0 }, { 12, 1800, 1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		announce();
		assert_int_equal(tick(rows[i].drains, rows[i].drains * rows[i].seconds),
				 rows[i].forgotten);
		teardown(state);
		assert_int_equal(setup(state), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_tried_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forgotten, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
