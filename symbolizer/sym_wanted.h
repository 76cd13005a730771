/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses that will be asked for, when they are known beforehand: `sonde symbolize` asks for
 * a few hundred addresses of a file with a hundred thousand symbols. What cannot be part of an answer is
 * then left out before names are fetched, sorted and kept, which is most of the work. The answers
 * are the same ones. Private to symbolizer/.
 */
#ifndef SYMBOLIZER_SYM_WANTED_H
#define SYMBOLIZER_SYM_WANTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sym_builder;

struct sym_wanted {
	uint64_t *addrs; /* sorted; NULL: all addresses are wanted */
	size_t count;
};

/* Adds addresses, which need not be sorted: 0 or -ENOMEM. */
int sym_wanted_add(struct sym_wanted *w, const uint64_t *addrs, size_t count);
void sym_wanted_fini(struct sym_wanted *w);

/* Number of the first wanted address that is not below `addr`. */
size_t sym_wanted_first(const struct sym_wanted *w, uint64_t addr);

/* Whether an address in [from, to) is wanted. */
bool sym_wanted_in(const struct sym_wanted *w, uint64_t from, uint64_t to);

/*
 * Takes out the builder's candidates from `first` on that no wanted address needs: neither covers it,
 * nor is next to it, below or above. *ret_functions: how many were functions, with those taken
 * out. 0 or -ENOMEM.
 */
int sym_wanted_filter(struct sym_builder *b, size_t first, size_t *ret_functions);

#endif
