/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of loading unwind tables: the kernel's maps, simulated in place of libbpf's calls, the
 * search that bpf/rules.bpf.h does in them, and tables to load.
 */
#ifndef TESTS_UNIT_UNWIND_TABLES_LAB_H
#define TESTS_UNIT_UNWIND_TABLES_LAB_H

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

static inline int refuse(int err)
{
	errno = err;
	return -err;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags);
int bpf_map_delete_elem(int fd, const void *key);

static inline size_t page_index(const struct sonde_page_key *key)
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

static inline struct sonde_rule kernel_find(uint64_t file, uint64_t off)
{
	struct sonde_page_key key = { file, off >> SONDE_PAGE_SHIFT };
	size_t at = page_index(&key);
	const struct sonde_page *page = &kernel.pages[at].page;
	__u16 low = (__u16)off, rule = 0;
	const struct sonde_row *rows;
	const __u16 *index;

	if (at == kernel.page_count)
		return kernel.rules[0];
	assert_in_range(page->count, 1, 1 << SONDE_PAGE_SHIFT);
	assert_in_range(page->first, 0, ELEMENTS * SONDE_ROWS_PER_ELEMENT - 1);
	rows = &rows_memory[page->first + SONDE_INDEX_ROWS];
	index = (const __u16 *)&rows_memory[page->first];
	assert_int_equal(page->first / SONDE_ROWS_PER_ELEMENT,
			 (page->first + SONDE_INDEX_ROWS + page->count - 1) / SONDE_ROWS_PER_ELEMENT);
	assert_int_equal(rows[0].pc_low, 0);
	for (__u32 i = 0; i < page->count; i++) {
		assert_true(i == 0 || rows[i].pc_low > rows[i - 1].pc_low);
		if (rows[i].pc_low <= low)
			rule = rows[i].rule;
	}
	for (__u32 i = 0; i < SONDE_BLOCKS; i++) {
		assert_in_range(index[i], 0, page->count - 1);
		assert_true(rows[index[i]].pc_low <= i << SONDE_BLOCK_SHIFT);
		assert_true(index[i] == page->count - 1 ||
			    rows[index[i] + 1].pc_low > i << SONDE_BLOCK_SHIFT);
	}
	return kernel.rules[rule];
}

static inline int setup(void **state)
{
	const struct unwind_maps maps = { PAGES_FD, RULES_FD, rows_memory,
					  ELEMENTS * SONDE_ROWS_PER_ELEMENT };

	memset(&kernel, 0, sizeof(kernel));
	kernel.page_limit = MAX_PAGES;
	assert_int_equal(unwind_tables_init(&t, &maps), 0);
	return 0;
}

static inline int teardown(void **state)
{
	unwind_tables_fini(&t);
	return 0;
}

/* ---- tables ---- */

struct table {
	struct table_row rows[MAX_ROWS];
	struct sonde_rule rules[64];
	size_t row_count, rule_count;
};

static inline struct sonde_rule sp_rule(int n)
{
	return (struct sonde_rule){ .cfa = SONDE_CFA_SP, .off = n };
}

static inline void table_begin(struct table *table, size_t rule_count, int salt)
{
	table->row_count = 0;
	table->rule_count = rule_count;
	table->rules[0] = (struct sonde_rule){ 0 };
	for (size_t i = 1; i < rule_count; i++)
		table->rules[i] = sp_rule(salt + (int)i);
}

static inline void row(struct table *table, uint64_t off, uint32_t rule)
{
	assert_true(table->row_count < MAX_ROWS);
	table->rows[table->row_count++] = (struct table_row){ off, rule };
}

static inline int add(uint64_t file, const struct table *table)
{
	struct table_rows rows = { table->rows, table->row_count, table->rules,
				   table->rule_count };

	return unwind_tables_add(&t, file, &rows);
}

static inline struct sonde_rule want(const struct table *table, uint64_t off)
{
	struct sonde_rule rule = { 0 };

	for (size_t i = 0; i < table->row_count && table->rows[i].off <= off; i++)
		rule = table->rules[table->rows[i].rule];
	return rule;
}

static inline void check_at(uint64_t file, const struct table *table, uint64_t off)
{
	const struct sonde_rule got = kernel_find(file, off), expected = want(table, off);

	assert_memory_equal(&got, &expected, sizeof(got));
}

/* At and around each row, and at the beginning and end of each page. */
static inline void check_all(uint64_t file, const struct table *table)
{
	uint64_t end = table->rows[table->row_count - 1].off + 0x20000;

	for (size_t i = 0; i < table->row_count; i++) {
		check_at(file, table, table->rows[i].off);
		check_at(file, table, table->rows[i].off + 1);
		check_at(file, table, table->rows[i].off - 1);
	}
	if (end > 64ULL << 20)
		return;
	for (uint64_t off = 0; off < end; off += 0x10000) {
		check_at(file, table, off);
		check_at(file, table, off + 0xffff);
	}
}

/* A file as it comes: functions of several rows, gaps between some. */
static inline void random_table(struct table *table, size_t rows, int salt)
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

static inline void check_nothing_left(void)
{
	assert_int_equal(unwind_tables_bytes(&t), 0);
	assert_int_equal(t.extents.free_count, ELEMENTS);
	assert_int_equal(t.rules.numbers.count, 0);
	assert_int_equal(t.rules.unused_count, t.rules.next - 1);
	assert_int_equal(t.loaded.count, 0);
	assert_null(t.dropped);
	assert_int_equal(kernel.page_count, 0);
}

#endif
