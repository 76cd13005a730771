/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the rows of an unwind table in ascending order, merging, and numbers its rules. */
#ifndef SYMBOLIZER_UNWIND_ROWS_H
#define SYMBOLIZER_UNWIND_ROWS_H

#include "base/map.h"
#include "symbolizer/unwind.h"

enum { UNWIND_RECENT_RULES = 256 };

struct unwind_rows {
	struct unwind_table *table; /* owned until unwind_rows_finish */
	size_t row_cap;
	size_t rule_cap;
	size_t max_rows;
	size_t max_rules;
	uint64_t code_gap;  /* where a gap begins that is code, and no padding */
	struct map numbers; /* rule -> its number */
	/* Numbers met lately, by a cheap hash: most rules of a function are those of the others. */
	uint32_t recent[UNWIND_RECENT_RULES];
};

int unwind_rows_init(struct unwind_rows *w, size_t max_rows, size_t max_rules);
void unwind_rows_fini(struct unwind_rows *w);

/*
 * From `off` on `rule` holds; off is not below that of the call before, and takes its place
 * if it is the same. 0, -EFBIG over a bound, -ENOMEM.
 */
int unwind_rows_put(struct unwind_rows *w, uint64_t off, const struct unwind_rule *rule);

/* Trims the table and hands it over. */
struct unwind_table *unwind_rows_finish(struct unwind_rows *w);

#endif
