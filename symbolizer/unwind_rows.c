/* SPDX-License-Identifier: Apache-2.0 */
/* Rows and rules of an unwind table; see unwind_rows.h. */
#include "symbolizer/unwind_rows.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROWS = 256, FIRST_RULES = 16, ALIGNMENT = 16 };

_Static_assert(sizeof(struct unwind_rule) == 16, "rules are map keys, without padding");

/* Room for one more element. */
static int reserve(void *array_ptr, size_t size, size_t count, size_t first, size_t max,
		   size_t *cap)
{
	void **array = array_ptr, *bigger;
	size_t want = *cap ? *cap * 2 : first;

	if (count < *cap)
		return 0;
	if (count >= max)
		return -EFBIG;
	if (want > max)
		want = max;
	bigger = reallocarray(*array, want, size);
	if (!bigger)
		return -ENOMEM;
	*array = bigger;
	*cap = want;
	return 0;
}

static uint32_t *recent_of(struct unwind_rows *w, const struct unwind_rule *rule)
{
	uint32_t mixed = (uint32_t)rule->cfa_off / 8 + (uint32_t)rule->fp_off / 8 * 31 +
			 rule->cfa * 67 + rule->fp * 131;

	return &w->recent[mixed % UNWIND_RECENT_RULES];
}

static int add_rule(struct unwind_rows *w, const struct unwind_rule *rule, uint32_t *ret_number)
{
	struct unwind_table *t = w->table;
	uint32_t *number = map_find(&w->numbers, rule);
	int err;

	if (!number) {
		err = reserve(&t->rules, sizeof(*t->rules), t->rule_count, FIRST_RULES,
			      w->max_rules, &w->rule_cap);
		if (err)
			return err;
		err = map_add(&w->numbers, rule, &number);
		if (err < 0)
			return err == -ENOSPC ? -EFBIG : err;
		*number = (uint32_t)t->rule_count;
		t->rules[t->rule_count++] = *rule;
	}
	*ret_number = *number;
	return 0;
}

static int number_of(struct unwind_rows *w, const struct unwind_rule *rule, uint32_t *ret_number)
{
	const struct unwind_table *t = w->table;
	uint32_t *recent = recent_of(w, rule);
	int err;

	if (*recent >= t->rule_count || memcmp(&t->rules[*recent], rule, sizeof(*rule)) != 0) {
		err = add_rule(w, rule, recent);
		if (err)
			return err;
	}
	*ret_number = *recent;
	return 0;
}

int unwind_rows_init(struct unwind_rows *w, size_t max_rows, size_t max_rules)
{
	static const struct unwind_rule none;
	uint32_t number;
	int err;

	*w = (struct unwind_rows){ .max_rows = max_rows, .max_rules = max_rules };
	map_init(&w->numbers, sizeof(struct unwind_rule), sizeof(uint32_t), max_rules);
	w->table = calloc(1, sizeof(*w->table));
	if (!w->table)
		return -ENOMEM;
	err = number_of(w, &none, &number);
	assert(err || number == UNWIND_NONE);
	return err;
}

void unwind_rows_fini(struct unwind_rows *w)
{
	map_fini(&w->numbers);
	unwind_table_free(w->table);
	w->table = NULL;
}

/*
 * Whether the last row is a gap that only pads the function that begins at `off` to its
 * alignment, with `rule` on both sides of it. Nothing runs there, so that two rows are saved for
 * each such function. A function of up to 15 bytes without FDE could hide there, but hardly
 * one that needs another rule than that of any function's first instruction.
 */
static bool is_padding(const struct unwind_rows *w, uint64_t off, uint32_t rule)
{
	const struct unwind_table *t = w->table;
	const struct unwind_row *gap;

	if (t->row_count < 2 || off % ALIGNMENT != 0)
		return false;
	gap = &t->rows[t->row_count - 1];
	return gap->rule == UNWIND_NONE && off - gap->off < ALIGNMENT && gap->off != w->code_gap &&
	       gap[-1].rule == rule;
}

int unwind_rows_put(struct unwind_rows *w, uint64_t off, const struct unwind_rule *rule)
{
	struct unwind_table *t = w->table;
	uint32_t number;
	int err;

	err = number_of(w, rule, &number);
	if (err)
		return err;
	assert(t->row_count == 0 || t->rows[t->row_count - 1].off <= off);
	if (t->row_count && t->rows[t->row_count - 1].off == off)
		t->row_count--;
	if (is_padding(w, off, number))
		t->row_count--;
	if (number == (t->row_count ? t->rows[t->row_count - 1].rule : UNWIND_NONE))
		return 0;
	err = reserve(&t->rows, sizeof(*t->rows), t->row_count, FIRST_ROWS, w->max_rows,
		      &w->row_cap);
	if (err)
		return err;
	t->rows[t->row_count++] = (struct unwind_row){ .off = off, .rule = number };
	return 0;
}

static void trim(void *array_ptr, size_t bytes)
{
	void **array = array_ptr, *smaller;

	if (bytes == 0)
		return;
	smaller = realloc(*array, bytes);
	if (smaller)
		*array = smaller;
}

struct unwind_table *unwind_rows_finish(struct unwind_rows *w)
{
	struct unwind_table *t = w->table;

	trim(&t->rows, t->row_count * sizeof(*t->rows));
	trim(&t->rules, t->rule_count * sizeof(*t->rules));
	t->bytes = sizeof(*t) + t->row_count * sizeof(*t->rows) + t->rule_count * sizeof(*t->rules);
	for (size_t i = 0; i + 1 < t->row_count; i++) {
		if (t->rules[t->rows[i].rule].cfa == UNWIND_UNSUPPORTED)
			t->unsupported += t->rows[i + 1].off - t->rows[i].off;
	}
	w->table = NULL;
	return t;
}

void unwind_table_free(struct unwind_table *table)
{
	if (!table)
		return;
	free(table->rows);
	free(table->rules);
	free(table);
}

const struct unwind_rule *unwind_table_find(const struct unwind_table *table, uint64_t off)
{
	size_t low = 0, high = table->row_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->rows[middle].off <= off)
			low = middle + 1;
		else
			high = middle;
	}
	return &table->rules[low ? table->rows[low - 1].rule : 0];
}
