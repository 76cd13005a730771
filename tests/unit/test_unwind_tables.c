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

enum { PAGES_FD = 1001, RULES_FD = 1002, MAX_PAGES = 4000, ELEMENTS = 2, MAX_ROWS = 4100 };

/* ---- the kernel's side: maps, and the search that bpf/rules.bpf.h does ---- */

static struct kernel {
	struct {
		struct sonde_page_key key;
		struct sonde_page page;
	} pages[MAX_PAGES];
	size_t page_count, page_limit;
	struct sonde_rule rules[SONDE_MAX_RULES];
	size_t updates_left; /* then they fail with this errno */
	int fail_with;
} kernel;

static struct sonde_row rows_memory[ELEMENTS * SONDE_ROWS_PER_ELEMENT];
static struct unwind_tables t;

static int refuse(int err)
{
	errno = err;
	return -err;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags);
int bpf_map_delete_elem(int fd, const void *key);

static size_t page_index(const struct sonde_page_key *key)
{
	size_t i = 0;

	while (i < kernel.page_count && memcmp(&kernel.pages[i].key, key, sizeof(*key)) != 0)
		i++;
	return i;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	size_t i;
	__u32 number;

	assert_int_equal(flags, 0);
	if (kernel.fail_with && kernel.updates_left-- == 0)
		return refuse(kernel.fail_with);
	if (fd == RULES_FD) {
		memcpy(&number, key, sizeof(number));
		assert_in_range(number, 1, SONDE_MAX_RULES - 1);
		memcpy(&kernel.rules[number], value, sizeof(struct sonde_rule));
		return 0;
	}
	assert_int_equal(fd, PAGES_FD);
	i = page_index(key);
	if (i == kernel.page_limit)
		return refuse(E2BIG);
	kernel.page_count += i == kernel.page_count;
	memcpy(&kernel.pages[i].key, key, sizeof(struct sonde_page_key));
	memcpy(&kernel.pages[i].page, value, sizeof(struct sonde_page));
	return 0;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	size_t i = page_index(key);

	assert_int_equal(fd, PAGES_FD);
	if (i == kernel.page_count)
		return refuse(ENOENT);
	kernel.pages[i] = kernel.pages[--kernel.page_count];
	return 0;
}

static struct sonde_rule kernel_find(uint64_t file, uint64_t off)
{
	struct sonde_page_key key = { file, off >> SONDE_PAGE_SHIFT };
	size_t at = page_index(&key);
	const struct sonde_page *page = &kernel.pages[at].page;
	__u16 low = (__u16)off, rule = 0;

	if (at == kernel.page_count)
		return kernel.rules[0];
	assert_in_range(page->count, 1, 1 << SONDE_PAGE_SHIFT);
	assert_in_range(page->first, 0, ELEMENTS * SONDE_ROWS_PER_ELEMENT - 1);
	assert_int_equal(page->first / SONDE_ROWS_PER_ELEMENT,
			 (page->first + page->count - 1) / SONDE_ROWS_PER_ELEMENT);
	assert_int_equal(rows_memory[page->first].pc_low, 0);
	for (__u32 i = 0; i < page->count; i++) {
		const struct sonde_row *row = &rows_memory[page->first + i];

		assert_true(i == 0 || row->pc_low > row[-1].pc_low);
		if (row->pc_low <= low)
			rule = row->rule;
	}
	return kernel.rules[rule];
}

static int setup(void **state)
{
	const struct unwind_maps maps = { PAGES_FD, RULES_FD, rows_memory,
					  ELEMENTS * SONDE_ROWS_PER_ELEMENT };

	memset(&kernel, 0, sizeof(kernel));
	kernel.page_limit = MAX_PAGES;
	assert_int_equal(unwind_tables_init(&t, &maps), 0);
	return 0;
}

static int teardown(void **state)
{
	unwind_tables_fini(&t);
	return 0;
}

/* ---- tables ---- */

struct table {
	uint64_t offsets[MAX_ROWS];
	uint32_t indices[MAX_ROWS];
	struct sonde_rule rules[64];
	size_t row_count, rule_count;
};

static struct sonde_rule sp_rule(int n)
{
	return (struct sonde_rule){ .cfa = SONDE_CFA_SP, .off = n };
}

static void table_begin(struct table *table, size_t rule_count, int salt)
{
	table->row_count = 0;
	table->rule_count = rule_count;
	table->rules[0] = (struct sonde_rule){ 0 };
	for (size_t i = 1; i < rule_count; i++)
		table->rules[i] = sp_rule(salt + (int)i);
}

static void row(struct table *table, uint64_t off, uint32_t rule)
{
	assert_true(table->row_count < MAX_ROWS);
	table->offsets[table->row_count] = off;
	table->indices[table->row_count++] = rule;
}

static int add(uint64_t file, const struct table *table)
{
	struct table_rows rows = { table->offsets, table->indices, table->row_count, table->rules,
				   table->rule_count };

	return unwind_tables_add(&t, file, &rows);
}

static struct sonde_rule want(const struct table *table, uint64_t off)
{
	struct sonde_rule rule = { 0 };

	for (size_t i = 0; i < table->row_count && table->offsets[i] <= off; i++)
		rule = table->rules[table->indices[i]];
	return rule;
}

static void check_at(uint64_t file, const struct table *table, uint64_t off)
{
	const struct sonde_rule got = kernel_find(file, off), expected = want(table, off);

	assert_memory_equal(&got, &expected, sizeof(got));
}

/* At and around each row, and at the beginning and end of each page. */
static void check_all(uint64_t file, const struct table *table)
{
	uint64_t end = table->offsets[table->row_count - 1] + 0x20000;

	for (size_t i = 0; i < table->row_count; i++) {
		check_at(file, table, table->offsets[i]);
		check_at(file, table, table->offsets[i] + 1);
		check_at(file, table, table->offsets[i] - 1);
	}
	if (end > 64ULL << 20)
		return;
	for (uint64_t off = 0; off < end; off += 0x10000) {
		check_at(file, table, off);
		check_at(file, table, off + 0xffff);
	}
}

/* A file as it comes: functions of several rows, gaps between some. */
static void random_table(struct table *table, size_t rows, int salt)
{
	uint64_t off = 0x1000 + (uint64_t)(random() % 0x20000);
	uint32_t rule = 0, before;

	table_begin(table, 2 + (size_t)(random() % 40), salt);
	for (size_t i = 0; i + 1 < rows; i++) {
		before = rule;
		rule = (uint32_t)((size_t)random() % table->rule_count);
		if (rule != before || i == 0)
			row(table, off, rule);
		off += 1 + (uint64_t)(random() % (random() % 50 ? 300 : 200000));
	}
	row(table, off, 0);
}

static void check_nothing_left(void)
{
	assert_int_equal(unwind_tables_bytes(&t), 0);
	assert_int_equal(t.extents.free_count, ELEMENTS);
	assert_int_equal(t.rules.numbers.count, 0);
	assert_int_equal(t.rules.unused_count, t.rules.next - 1);
	assert_int_equal(t.loaded.count, 0);
	assert_null(t.dropped);
	assert_int_equal(kernel.page_count, 0);
}

/* ---- tests ---- */

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
	uint64_t *offsets = calloc(65536 + 2, sizeof(*offsets));
	uint32_t *indices = calloc(65536 + 2, sizeof(*indices));
	struct sonde_rule rules[3] = { { 0 }, sp_rule(8), sp_rule(16) };
	struct table_rows rows = { offsets, indices, 65536 + 2, rules, 3 };

	for (uint32_t i = 0; i < 65537; i++) {
		offsets[i] = 0xffff + i;
		indices[i] = 1 + i % 2;
	}
	offsets[65537] = 0x20000;
	assert_int_equal(unwind_tables_add(&t, 9, &rows), 0);
	for (uint32_t i = 0; i < 65537; i += 97)
		assert_int_equal(kernel_find(9, 0xffff + i).off, 8 + 8 * (i % 2));
	assert_int_equal(kernel_find(9, 0x1ffff).off, 8);
	assert_int_equal(kernel_find(9, 0x20000).cfa, SONDE_CFA_NONE);
	free(offsets);
	free(indices);
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
	assert_int_equal(kernel_find(1, a.offsets[0]).cfa, SONDE_CFA_NONE);
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
			assert_int_equal(kernel_find(2, b.offsets[0]).cfa, SONDE_CFA_NONE);
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
	assert_int_equal(file, 2 * (SONDE_ROWS_PER_ELEMENT / 64 / ((4001 + 63) / 64)));
	check_at(file - 1, &table, 0x10000);
	unwind_tables_drop(&t, 0);
	assert_int_equal(add(file, &table), -ENOSPC); /* not before the grace period */
	unwind_tables_reclaim(&t);
	assert_int_equal(add(file, &table), 0);
	check_at(file, &table, 0x10000);
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
	table.offsets[1] = 8;
	assert_int_equal(add(1, &table), -EINVAL);
	table.offsets[1] = 24;
	table.indices[0] = 2;
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
		cmocka_unit_test_setup_teardown(test_no_room_for_pages, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unsound_tables, setup, teardown),
	};

	srandom(5);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
