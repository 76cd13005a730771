/* SPDX-License-Identifier: Apache-2.0 */
/* Radix sort; see sym_sort.h. */
#include "symbolizer/sym_sort.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

static uint64_t key_of(const struct sym_candidate *c, bool by_name)
{
	return by_name ? c->name : c->addr;
}

/* One pass of a radix sort. */
static void scatter(const struct sym_candidate *from, struct sym_candidate *to, size_t count,
		    unsigned int shift, bool by_name)
{
	uint32_t starts[DIGITS] = { 0 }, sum = 0;

	for (size_t i = 0; i < count; i++)
		starts[key_of(&from[i], by_name) >> shift & (DIGITS - 1)]++;
	for (size_t i = 0; i < DIGITS; i++) {
		uint32_t n = starts[i];

		starts[i] = sum;
		sum += n;
	}
	for (size_t i = 0; i < count; i++)
		to[starts[key_of(&from[i], by_name) >> shift & (DIGITS - 1)]++] = from[i];
}

/* The bits in which the keys differ; 0 if they are in order already. */
static uint64_t bits_to_sort(const struct sym_candidate *c, size_t count, bool by_name)
{
	uint64_t bits = 0;
	bool is_sorted = true;

	for (size_t i = 1; i < count; i++) {
		uint64_t key = key_of(&c[i], by_name), before = key_of(&c[i - 1], by_name);

		bits |= key ^ before;
		is_sorted &= before <= key;
	}
	return is_sorted ? 0 : bits;
}

int sym_sort(struct sym_candidate *candidates, size_t count, bool by_name)
{
	struct sym_candidate *scratch, *from = candidates, *to;
	uint64_t bits = bits_to_sort(candidates, count, by_name);

	if (bits == 0)
		return 0;
	scratch = reallocarray(NULL, count, sizeof(*scratch));
	if (!scratch)
		return -ENOMEM;
	to = scratch;
	for (unsigned int shift = 0; shift < 64 && bits >> shift; shift += DIGIT_BITS) {
		struct sym_candidate *swap = from;

		/* Skips bits that agree, as those of aligned addresses do. */
		shift += (unsigned int)__builtin_ctzll(bits >> shift);
		scatter(from, to, count, shift, by_name);
		from = to;
		to = swap;
	}
	if (from != candidates)
		memcpy(candidates, from, count * sizeof(*candidates));
	free(scratch);
	return 0;
}
