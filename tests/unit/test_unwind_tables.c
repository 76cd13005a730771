/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading unwind tables into the kernel's maps, which are simulated here: what the kernel side
 * would find at each place of a file, and that all room comes back.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/collect/unwind_tables.h"
#include "unwind_tables_lab.h"

static void test_rows_are_found(void **state)
{
	static struct table table;

	for (int i = 0; i < 12; i++) {
		uint64_t file = SONDE_FILE_ID_BIT | (uint64_t)i;

		random_table(&table, 2 + (size_t)(random() % 1500), i * 10);
		assert_int_equal(add(file, &table), 0);
		check_all(file, &table);
	}
}

/* Pages that begin in the middle of a rule carry it; such without any rule are left out. */
static void test_carried_rows(void **state)
{
	static struct table table;

	table_begin(&table, 3, 100);
	row(&table, 0x1fff0, 1);  /* over three page boundaries */
	row(&table, 0x50000, 2);  /* exactly at a page's beginning: nothing to carry */
	row(&table, 0x5ffff, 0);  /* the last byte */
	row(&table, 0x900000, 1); /* far behind */
	row(&table, 0x900001, 0);
	assert_int_equal(add(7, &table), 0);
	check_all(7, &table);
	assert_int_equal(kernel.page_count, 6); /* 1 to 5, 0x90 */
}

static void test_full_page(void **state)
{
	struct table_row *list = calloc(65536 + 2, sizeof(*list));
	struct sonde_rule rules[3] = { { 0 }, sp_rule(8), sp_rule(16) };
	struct table_rows rows = { list, 65536 + 2, rules, 3 };

	for (uint32_t i = 0; i < 65537; i++) {
		list[i].off = 0xffff + i;
		list[i].rule = 1 + i % 2;
	}
	list[65537].off = 0x20000;
	assert_int_equal(unwind_tables_add(&t, 9, &rows), 0);
	for (uint32_t i = 0; i < 65537; i += 97)
		assert_int_equal(kernel_find(9, 0xffff + i).off, 8 + 8 * (i % 2));
	assert_int_equal(kernel_find(9, 0x1ffff).off, 8);
	assert_int_equal(kernel_find(9, 0x20000).cfa, SONDE_CFA_NONE);
	free(list);
}

static void test_drop_and_reclaim(void **state)
{
	static struct table a, b;

	random_table(&a, 1500, 0);
	random_table(&b, 1500, 10); /* shares rules with a */
	assert_int_equal(add(1, &a), 0);
	assert_int_equal(add(2, &b), 0);
	assert_int_equal(add(1, &a), -EEXIST);
	unwind_tables_drop(&t, 1);
	assert_int_equal(kernel_find(1, a.rows[0].off).cfa, SONDE_CFA_NONE);
	check_all(2, &b);
	assert_int_equal(add(1, &a), 0); /* again, while its old rows wait */
	unwind_tables_reclaim(&t);
	check_all(1, &a);
	check_all(2, &b);
	unwind_tables_drop(&t, 1);
	unwind_tables_drop(&t, 1);
	unwind_tables_drop(&t, 2);
	unwind_tables_drop(&t, 3);
	unwind_tables_reclaim(&t);
	check_nothing_left();
}

/* What a walk may still be reading is not written to before a grace period. */
static void test_dropped_rows_and_rules_stay(void **state)
{
	static struct table a, b;
	struct sonde_page page;
	struct sonde_rule rule;
	struct sonde_row first;

	random_table(&a, 1000, 0);
	random_table(&b, 4000, 1000);
	assert_int_equal(add(1, &a), 0);
	page = kernel.pages[0].page;
	first = rows_memory[page.first + page.count - 1];
	rule = kernel.rules[first.rule];
	unwind_tables_drop(&t, 1);
	assert_int_equal(add(2, &b), 0);
	assert_memory_equal(&rows_memory[page.first + page.count - 1], &first, sizeof(first));
	assert_memory_equal(&kernel.rules[first.rule], &rule, sizeof(rule));
}

static void test_many_rounds(void **state)
{
	static struct table tables[8];
	bool loaded[8] = { false };

	for (int round = 0; round < 3000; round++) {
		int i = (int)(random() % 8);

		if (loaded[i]) {
			unwind_tables_drop(&t, (uint64_t)i);
		} else {
			random_table(&tables[i], 2 + (size_t)(random() % 400),
				     (int)(random() % 500));
			assert_int_equal(add((uint64_t)i, &tables[i]), 0);
		}
		loaded[i] = !loaded[i];
		if (random() % 3 == 0)
			unwind_tables_reclaim(&t);
		if (round % 500 == 0) {
			for (int k = 0; k < 8; k++) {
				if (loaded[k])
					check_all((uint64_t)k, &tables[k]);
			}
		}
	}
	for (int i = 0; i < 8; i++)
		unwind_tables_drop(&t, (uint64_t)i);
	unwind_tables_reclaim(&t);
	check_nothing_left();
}

/* Wherever it fails: the other tables are untouched, and nothing of the new one is left. */
static void test_failure_leaves_nothing(void **state)
{
	static struct table a, b;
	uint64_t bytes;
	int err, tries = 0;

	random_table(&a, 200, 0);
	random_table(&b, 200, 5);
	assert_int_equal(add(1, &a), 0);
	bytes = unwind_tables_bytes(&t);
	do {
		kernel.fail_with = tries % 2 ? E2BIG : ENOMEM;
		kernel.updates_left = (size_t)tries++;
		err = add(2, &b);
		kernel.fail_with = 0;
		if (err) {
			assert_true(err == -ENOMEM || err == -ENOSPC || err == -E2BIG);
			assert_int_equal(kernel_find(2, b.rows[0].off).cfa, SONDE_CFA_NONE);
			unwind_tables_reclaim(&t);
			assert_int_equal(unwind_tables_bytes(&t), bytes);
			check_all(1, &a);
		}
	} while (err);
	assert_true(tries > 10);
	check_all(2, &b);
	unwind_tables_drop(&t, 1);
	unwind_tables_drop(&t, 2);
	unwind_tables_reclaim(&t);
	check_nothing_left();
}

static void test_no_room_for_rows(void **state)
{
	static struct table table;
	uint64_t file = 0;
	int err;

	table_begin(&table, 2, 0);
	for (uint32_t i = 0; i < 4000; i++)
		row(&table, 0x10000 + i, i & 1);
	while (!(err = add(file, &table)))
		file++;
	assert_int_equal(err, -ENOSPC);
	assert_int_equal(file, 2 * (SONDE_ROWS_PER_ELEMENT / 64 / ((SONDE_INDEX_ROWS + 4001 + 63) / 64)));
	check_at(file - 1, &table, 0x10000);
	unwind_tables_drop(&t, 0);
	assert_int_equal(add(file, &table), -ENOSPC); /* not before the grace period */
	unwind_tables_reclaim(&t);
	assert_int_equal(add(file, &table), 0);
	check_at(file, &table, 0x10000);
}

static struct {
	size_t calls[ELEMENTS];
	int fail_with;
} provider;

static int provide(void *context, uint32_t element)
{
	assert_ptr_equal(context, &provider);
	assert_in_range(element, 0, ELEMENTS - 1);
	provider.calls[element]++;
	return provider.fail_with;
}

/* Rows are asked for before they are written, and only where tables lie. */
static void test_rows_on_demand(void **state)
{
	static struct table table;

	t.maps.provide = provide;
	t.maps.context = &provider;
	table_begin(&table, 2, 0);
	row(&table, 0x10000, 1);
	row(&table, 0x10004, 0);
	provider.fail_with = -ENOMEM;
	assert_int_equal(add(1, &table), -ENOMEM);
	check_nothing_left();
	provider.fail_with = 0;
	assert_int_equal(add(1, &table), 0);
	check_at(1, &table, 0x10000);
	assert_int_equal(provider.calls[0], 2);
	assert_int_equal(provider.calls[1], 0);
	unwind_tables_drop(&t, 1);
	unwind_tables_reclaim(&t);
	check_nothing_left();
}

static void test_no_room_for_pages(void **state)
{
	static struct table table;

	table_begin(&table, 2, 0);
	row(&table, 0, 1);
	row(&table, (20 << SONDE_PAGE_SHIFT) - 1, 0);
	kernel.page_limit = 30;
	assert_int_equal(add(1, &table), 0);
	assert_int_equal(add(2, &table), -ENOSPC);
	unwind_tables_reclaim(&t);
	assert_int_equal(kernel.page_count, 20);
	unwind_tables_drop(&t, 1);
	unwind_tables_reclaim(&t);
	check_nothing_left();
}

/* A builder that is wrong must not harm: refused as a whole. */
static void test_unsound_tables(void **state)
{
	static struct table table;

	table_begin(&table, 2, 0);
	assert_int_equal(add(1, &table), -EINVAL);
	row(&table, 16, 1);
	row(&table, 16, 0);
	assert_int_equal(add(1, &table), -EINVAL);
	table.rows[1].off = 8;
	assert_int_equal(add(1, &table), -EINVAL);
	table.rows[1].off = 24;
	table.rows[0].rule = 2;
	assert_int_equal(add(1, &table), -EINVAL);
	check_nothing_left();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rows_are_found, setup, teardown),
		cmocka_unit_test_setup_teardown(test_carried_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_page, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drop_and_reclaim, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dropped_rows_and_rules_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_rounds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failure_leaves_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_room_for_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rows_on_demand, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_room_for_pages, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unsound_tables, setup, teardown),
	};

	srandom(5);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
