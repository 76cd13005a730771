/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses that were given several names within one reading of a JIT's file: which of them was
 * there when a sample was taken nobody knows. Private to jit_layers.c.
 */
#ifndef SYMBOLIZER_JIT_CLASH_H
#define SYMBOLIZER_JIT_CLASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/sym_builder.h"

struct jit_range {
	uint64_t start, end;
};

/* Sorted, apart from each other. */
struct jit_clashes {
	struct jit_range *ranges;
	size_t count, cap;
};

/*
 * Ranges in which symbols of different names overlap, those without a name left out; rather
 * too large than too small. The builder stays as it is. 0 or -ENOMEM.
 */
int jit_clashes_find(const struct sym_builder *b, struct jit_clashes *ret_clashes);

bool jit_clashes_at(const struct jit_clashes *clashes, uint64_t addr);
void jit_clashes_fini(struct jit_clashes *clashes);

#endif
