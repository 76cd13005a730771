/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: ELF files, to unwind tables. Whatever builds keeps the promises of unwind.h; it is
 * the same when built again, and stays within its bounds.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/unwind.h"

enum { MAX_ROWS = 4096, MAX_RULES = 512 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_rule(const struct unwind_rule *r)
{
	assert(r->cfa <= UNWIND_BARE && r->fp <= UNWIND_FP_AT_FP);
	if (r->cfa <= UNWIND_END || r->cfa == UNWIND_BARE)
		assert(r->fp == 0 && r->bx == 0 && r->cfa_reg == 0 && !r->cfa_off && !r->cfa_add && !r->fp_off);
	if (r->cfa == UNWIND_GO_STACK)
		assert(r->cfa_reg >= 24 && r->cfa_reg <= 56 && r->fp == UNWIND_FP_SAME);
	else if (r->cfa != UNWIND_REG)
		assert(r->cfa_reg == 0);
	else
		assert(r->cfa_reg < 16);
	if (r->cfa == UNWIND_PLT)
		assert(r->cfa_add >= 0 && r->cfa_add < 16);
}

static void check_table(const struct unwind_table *t, size_t size)
{
	assert(t->rule_count >= 1 && t->rule_count <= MAX_RULES && t->row_count <= MAX_ROWS);
	assert(t->rules[0].cfa == UNWIND_NONE);
	for (size_t i = 0; i < t->rule_count; i++) {
		check_rule(&t->rules[i]);
		for (size_t j = 0; j < i; j++)
			assert(memcmp(&t->rules[i], &t->rules[j], sizeof(t->rules[i])) != 0);
	}
	for (size_t i = 0; i < t->row_count; i++) {
		assert(t->rows[i].rule < t->rule_count && t->rows[i].off <= size);
		assert(i == 0 || t->rows[i].off > t->rows[i - 1].off);
		assert(i == 0 || t->rows[i].rule != t->rows[i - 1].rule);
		assert(unwind_table_find(t, t->rows[i].off) == &t->rules[t->rows[i].rule]);
	}
	assert(t->row_count == 0 || t->rows[t->row_count - 1].rule == 0);
	assert(t->unsupported <= size && t->bytes >= t->row_count * sizeof(*t->rows));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct unwind_options options = { .max_rows = MAX_ROWS,
						       .max_rules = MAX_RULES };
	struct unwind_table *t, *again;

	if (unwind_table_build_image(data, size, &options, &t))
		return 0;
	check_table(t, size);
	if (unwind_table_build_image(data, size, &options, &again))
		abort();
	assert(again->row_count == t->row_count &&
	       (t->row_count == 0 ||
		memcmp(again->rows, t->rows, t->row_count * sizeof(*t->rows)) == 0));
	unwind_table_free(again);
	unwind_table_free(t);
	return 0;
}
