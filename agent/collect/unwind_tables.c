/* SPDX-License-Identifier: Apache-2.0 */
/* Loading unwind tables into the kernel's maps; see unwind_tables.h. */
#include "agent/collect/unwind_tables.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/collect/page_index.h"

enum { MAX_TABLES = 16384, MAX_PAGES_PER_TABLE = 8192, PAGE_ROWS = 1 << SONDE_PAGE_SHIFT };

struct loaded_page {
	struct sonde_page_key key;
	struct sonde_page page;
};

/* What a file's table occupies. */
struct loaded_table {
	struct loaded_table *next; /* in the list of dropped ones */
	struct loaded_page *pages;
	size_t page_count, page_cap;
	uint16_t *rules; /* numbers, each with one user */
	size_t rule_count;
};

int unwind_tables_init(struct unwind_tables *t, const struct unwind_maps *maps)
{
	int err;

	*t = (struct unwind_tables){ .maps = *maps };
	map_init(&t->loaded, sizeof(uint64_t), sizeof(struct loaded_table *), MAX_TABLES);
	err = extents_init(&t->extents, maps->row_capacity / ROWS_PER_UNIT,
			   SONDE_ROWS_PER_ELEMENT / ROWS_PER_UNIT);
	return err ? err : rule_set_init(&t->rules);
}

static void table_free(struct loaded_table *table)
{
	if (!table)
		return;
	free(table->pages);
	free(table->rules);
	free(table);
}

/* What a page with so many rows occupies, with its index. */
static uint32_t units(uint32_t rows)
{
	return (SONDE_INDEX_ROWS + rows + ROWS_PER_UNIT - 1) / ROWS_PER_UNIT;
}

/* Gives back rows and rules; the kernel must not see the table any more. */
static void table_release(struct unwind_tables *t, struct loaded_table *table)
{
	for (size_t i = 0; i < table->page_count; i++)
		extents_free(&t->extents, table->pages[i].page.first / ROWS_PER_UNIT,
			     units(table->pages[i].page.count));
	for (size_t i = 0; i < table->rule_count; i++)
		rule_set_release(&t->rules, table->rules[i]);
	table_free(table);
}

static void table_hide(struct unwind_tables *t, const struct loaded_table *table)
{
	for (size_t i = 0; i < table->page_count; i++)
		bpf_map_delete_elem(t->maps.pages_fd, &table->pages[i].key);
}

void unwind_tables_fini(struct unwind_tables *t)
{
	struct loaded_table **table;
	size_t cursor = 0;

	while (map_next(&t->loaded, &cursor, NULL, &table))
		table_free(*table);
	while (t->dropped) {
		struct loaded_table *next = t->dropped->next;

		table_free(t->dropped);
		t->dropped = next;
	}
	map_fini(&t->loaded);
	extents_fini(&t->extents);
	rule_set_fini(&t->rules);
}

/* Numbers for all rules of the table; new ones are written where the kernel reads them. */
static int take_rules(struct unwind_tables *t, const struct table_rows *rows,
		      struct loaded_table *table)
{
	table->rules = calloc(rows->rule_count ? rows->rule_count : 1, sizeof(*table->rules));
	if (!table->rules)
		return -ENOMEM;
	for (size_t i = 0; i < rows->rule_count; i++) {
		uint16_t number;
		bool is_new;
		int err = rule_set_take(&t->rules, &rows->rules[i], &number, &is_new);

		if (err)
			return err;
		table->rules[table->rule_count++] = number;
		if (is_new) {
			__u32 key = number;

			err = bpf_map_update_elem(t->maps.rules_fd, &key, &rows->rules[i], BPF_ANY);
			if (err)
				return err;
		}
	}
	return 0;
}

static int page_begin(struct unwind_tables *t, uint64_t file, uint64_t number, uint32_t count,
		      struct loaded_table *table)
{
	uint32_t unit;
	int err;

	if (table->page_count == table->page_cap) {
		size_t cap = table->page_cap ? table->page_cap * 2 : 16;
		struct loaded_page *pages = reallocarray(table->pages, cap, sizeof(*pages));

		if (!pages)
			return -ENOMEM;
		table->pages = pages;
		table->page_cap = cap;
	}
	err = extents_alloc(&t->extents, units(count), &unit);
	if (err)
		return err;
	if (t->maps.provide)
		err = t->maps.provide(t->maps.context,
				      unit * ROWS_PER_UNIT / SONDE_ROWS_PER_ELEMENT);
	if (err) {
		extents_free(&t->extents, unit, units(count));
		return err;
	}
	table->pages[table->page_count++] = (struct loaded_page){
		.key = { .file = file, .page = number },
		.page = { .first = unit * ROWS_PER_UNIT, .count = count },
	};
	return 0;
}

/*
 * Writes the rows of one page: those from *i on that lie in it, behind the row that is
 * carried over from before, so that each page can be searched alone.
 */
static int write_page(struct unwind_tables *t, uint64_t file, uint64_t number,
		      const struct table_rows *rows, size_t *i, struct loaded_table *table)
{
	uint64_t start = number << SONDE_PAGE_SHIFT, end = start + PAGE_ROWS;
	bool carry = *i >= rows->row_count || rows->rows[*i].off != start;
	uint16_t carried = *i ? table->rules[rows->rows[*i - 1].rule] : 0;
	struct sonde_row *index, *to;
	size_t last = *i;
	int err;

	while (last < rows->row_count && rows->rows[last].off < end)
		last++;
	if (last == *i && carried == 0)
		return 0; /* nothing here */
	err = page_begin(t, file, number, (uint32_t)(last - *i) + carry, table);
	if (err)
		return err;
	index = t->maps.rows + table->pages[table->page_count - 1].page.first;
	to = index + SONDE_INDEX_ROWS;
	if (carry)
		*to++ = (struct sonde_row){ .pc_low = 0, .rule = carried };
	for (; *i < last; (*i)++)
		*to++ = (struct sonde_row){
			.pc_low = (uint16_t)(rows->rows[*i].off - start),
			.rule = table->rules[rows->rows[*i].rule],
		};
	page_index_write(index, (uint32_t)(to - index) - SONDE_INDEX_ROWS);
	return 0;
}

static int write_rows(struct unwind_tables *t, uint64_t file, const struct table_rows *rows,
		      struct loaded_table *table)
{
	uint64_t number = rows->rows[0].off >> SONDE_PAGE_SHIFT;
	size_t i = 0;
	int err = 0;

	while (!err && i < rows->row_count) {
		err = write_page(t, file, number++, rows, &i, table);
		/* A page that nothing begins in and nothing reaches into is left out. */
		if (!err && i < rows->row_count && table->rules[rows->rows[i - 1].rule] == 0 &&
		    rows->rows[i].off >> SONDE_PAGE_SHIFT > number)
			number = rows->rows[i].off >> SONDE_PAGE_SHIFT;
	}
	return err;
}

/*
 * Whether one file's table may take its share: half of the rows and half of the pages. A larger
 * one would push out all others, again and again.
 */
static bool is_modest(const struct unwind_tables *t, const struct table_rows *rows)
{
	uint64_t first = rows->rows[0].off >> SONDE_PAGE_SHIFT;
	uint64_t last = rows->rows[rows->row_count - 1].off >> SONDE_PAGE_SHIFT;

	return rows->row_count <= t->maps.row_capacity / 2 && last - first < MAX_PAGES_PER_TABLE;
}

static bool is_sound(const struct table_rows *rows)
{
	for (size_t i = 0; i < rows->row_count; i++) {
		if (rows->rows[i].rule >= rows->rule_count ||
		    (i && rows->rows[i].off <= rows->rows[i - 1].off))
			return false;
	}
	return rows->row_count > 0;
}

/* Shows the pages to the kernel, when all that they refer to is in place. */
static int publish(struct unwind_tables *t, const struct loaded_table *table)
{
	for (size_t i = 0; i < table->page_count; i++) {
		const struct loaded_page *p = &table->pages[i];

		if (bpf_map_update_elem(t->maps.pages_fd, &p->key, &p->page, BPF_ANY))
			return errno == E2BIG ? -ENOSPC : -errno;
	}
	return 0;
}

int unwind_tables_add(struct unwind_tables *t, uint64_t file, const struct table_rows *rows)
{
	struct loaded_table *table, **slot;
	int err;

	if (map_find(&t->loaded, &file))
		return -EEXIST;
	if (!is_sound(rows))
		return -EINVAL;
	if (!is_modest(t, rows))
		return -EFBIG;
	table = calloc(1, sizeof(*table));
	if (!table)
		return -ENOMEM;
	err = take_rules(t, rows, table);
	if (!err)
		err = write_rows(t, file, rows, table);
	if (!err)
		err = map_add(&t->loaded, &file, &slot) == 1 ? 0 : -ENOSPC;
	if (err) {
		t->refused++;
		table_release(t, table); /* was never seen */
		return err;
	}
	*slot = table;
	err = publish(t, table);
	if (err) {
		t->refused++;
		unwind_tables_drop(t, file); /* some pages may have been seen */
		return err;
	}
	t->loads++;
	return 0;
}

size_t unwind_tables_drop(struct unwind_tables *t, uint64_t file)
{
	struct loaded_table **slot = map_find(&t->loaded, &file);
	struct loaded_table *table;
	size_t rows = 0;

	if (!slot)
		return 0;
	table = *slot;
	map_del(&t->loaded, &file);
	table_hide(t, table);
	table->next = t->dropped;
	t->dropped = table;
	t->drops++;
	for (size_t i = 0; i < table->page_count; i++)
		rows += table->pages[i].page.count;
	return rows;
}

void unwind_tables_reclaim(struct unwind_tables *t)
{
	while (t->dropped) {
		struct loaded_table *next = t->dropped->next;

		table_release(t, t->dropped);
		t->dropped = next;
	}
}

uint64_t unwind_tables_bytes(const struct unwind_tables *t)
{
	uint64_t units_used = t->maps.row_capacity / ROWS_PER_UNIT - t->extents.free_units;

	return units_used * ROWS_PER_UNIT * sizeof(struct sonde_row);
}
