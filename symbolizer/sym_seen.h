/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of symbols by place, size and rank, names aside: .dynsym mostly repeats what .symtab
 * has said, and fetching and comparing the names again would cost half of the loading.
 */
#ifndef SYMBOLIZER_SYM_SEEN_H
#define SYMBOLIZER_SYM_SEEN_H

#include "symbolizer/sym_builder.h"

struct sym_seen {
	uint64_t *slots; /* hashes; 0: free */
	size_t mask;
};

/* The set of all candidates of `b`; empty if there are none or memory is short. */
void sym_seen_init(struct sym_seen *seen, const struct sym_builder *b);
void sym_seen_fini(struct sym_seen *seen);

bool sym_seen_has(const struct sym_seen *seen, const struct sym_candidate *candidate);

#endif
