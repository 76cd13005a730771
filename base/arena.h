/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bump allocator: many small allocations that die together. Bounded in bytes.
 * Pointers stay valid until arena_fini. Not thread-safe.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks;
	size_t used; /* bytes asked for so far */
	size_t max;  /* bound on `used` */
};

void arena_init(struct arena *a, size_t max);
void arena_fini(struct arena *a);

/* `size` bytes, aligned to 8, not zeroed; NULL when out of memory or over the bound. */
void *arena_alloc(struct arena *a, size_t size);

/* A copy of `len` bytes with a NUL behind them, or NULL. */
char *arena_copy(struct arena *a, const void *bytes, size_t len);

#endif
