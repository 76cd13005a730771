/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing over 64-bit hashes; see sym_seen.h. */
#include "symbolizer/sym_seen.h"

#include <stdlib.h>

static uint64_t hash_of(const struct sym_candidate *c)
{
	uint64_t h = (c->addr ^ (uint64_t)c->rank << 56) * 0x9e3779b97f4a7c15ULL;

	h = (h ^ h >> 32 ^ c->size) * 0xbf58476d1ce4e5b9ULL;
	h ^= h >> 31;
	return h ? h : 1;
}

void sym_seen_init(struct sym_seen *seen, const struct sym_builder *b)
{
	size_t size = 64;

	*seen = (struct sym_seen){ .slots = NULL };
	if (b->count == 0)
		return;
	while (size < 2 * b->count)
		size *= 2;
	seen->slots = calloc(size, sizeof(*seen->slots));
	if (!seen->slots)
		return;
	seen->mask = size - 1;
	for (size_t i = 0; i < b->count; i++) {
		uint64_t hash = hash_of(&b->candidates[i]);
		size_t at = hash & seen->mask;

		while (seen->slots[at] && seen->slots[at] != hash)
			at = (at + 1) & seen->mask;
		seen->slots[at] = hash;
	}
}

void sym_seen_fini(struct sym_seen *seen)
{
	free(seen->slots);
	*seen = (struct sym_seen){ .slots = NULL };
}

bool sym_seen_has(const struct sym_seen *seen, const struct sym_candidate *candidate)
{
	uint64_t hash = hash_of(candidate);

	if (!seen->slots)
		return false;
	for (size_t at = hash & seen->mask; seen->slots[at]; at = (at + 1) & seen->mask) {
		if (seen->slots[at] == hash)
			return true;
	}
	return false;
}
