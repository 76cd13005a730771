/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting of candidates; private to sym_builder. */
#ifndef SYMBOLIZER_SYM_SORT_H
#define SYMBOLIZER_SYM_SORT_H

#include "symbolizer/sym_builder.h"

/*
 * By name offset or address, stable, in two or three passes on real tables: several times as fast as
 * qsort. At most UINT32_MAX candidates. 0 or -ENOMEM.
 */
int sym_sort(struct sym_candidate *candidates, size_t count, bool by_name);

#endif
