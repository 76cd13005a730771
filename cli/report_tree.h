/* SPDX-License-Identifier: Apache-2.0 */
/* Call trees: report_tree.c lists the stacks of each row, report_tree_print.c splits them. */
#ifndef CLI_REPORT_TREE_H
#define CLI_REPORT_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

/* A stack of a row. Position 0 is the leaf. */
struct report_item {
	uint32_t sample;
	uint32_t at;
};

struct report_trees {
	uint32_t *texts;     /* the frames of all samples, leaf first */
	size_t *texts_start; /* by sample; the end is the next one's */
	struct report_item *items;  /* by row */
	struct report_item *spare;  /* as many as the largest row has */
	size_t *items_end;   /* by row: filled so far; a row begins where the one before ends */
	size_t row_count;    /* the first rows have trees */
	struct map numbers;  /* scratch: text -> number of the branch */
	double min_percent;
	bool caller;
};

static inline size_t report_items_start(const struct report_trees *t, size_t row)
{
	return row ? t->items_end[row - 1] : 0;
}

#endif
