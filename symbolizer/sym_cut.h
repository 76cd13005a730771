/* SPDX-License-Identifier: Apache-2.0 */
/* The last steps of sym_builder_finish; private to it. */
#ifndef SYMBOLIZER_SYM_CUT_H
#define SYMBOLIZER_SYM_CUT_H

#include <stdbool.h>

#include "symbolizer/sym_builder.h"

/*
 * Turns the candidates, sorted by address, all with a size, into ranges that do not overlap.
 * Where several cover an address the later one in order wins (SYM_INNERMOST_WINS), or the one
 * whose name was added last (SYM_NEWEST_WINS). The names of the ranges are candidate numbers
 * until sym_move_names. 0 or -ENOMEM.
 */
int sym_cut_overlaps(const struct sym_builder *b, struct sym_table *table);

/* Copies the names that ranges use, in address order, into the table. 0 or -ENOMEM. */
int sym_move_names(struct sym_builder *b, bool with_notes, struct sym_table *table);

/* Puts the extents that no range covers among the ranges, without a name. 0 or -ENOMEM. */
int sym_fill_gaps(const struct sym_builder *b, struct sym_table *table);

#endif
