/* SPDX-License-Identifier: Apache-2.0 */
/* Bump allocator; see arena.h. */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_SIZE = 64 * 1024, ALIGN = 8 };

struct arena_chunk {
	struct arena_chunk *next;
	size_t used;
	size_t cap;
	_Alignas(ALIGN) uint8_t data[];
};

void arena_init(struct arena *a, size_t max)
{
	*a = (struct arena){ .max = max };
}

void arena_fini(struct arena *a)
{
	struct arena_chunk *chunk = a->chunks;

	while (chunk) {
		struct arena_chunk *next = chunk->next;

		free(chunk);
		chunk = next;
	}
	arena_init(a, a->max);
}

static struct arena_chunk *chunk_new(struct arena *a, size_t size)
{
	size_t cap = size > CHUNK_SIZE ? size : CHUNK_SIZE;
	struct arena_chunk *chunk = malloc(sizeof(*chunk) + cap);

	if (!chunk)
		return NULL;
	chunk->next = a->chunks;
	chunk->used = 0;
	chunk->cap = cap;
	a->chunks = chunk;
	return chunk;
}

void *arena_alloc(struct arena *a, size_t size)
{
	struct arena_chunk *chunk = a->chunks;
	void *p;

	if (size > a->max - a->used || size > SIZE_MAX / 2)
		return NULL;
	size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (!chunk || chunk->cap - chunk->used < size) {
		chunk = chunk_new(a, size);
		if (!chunk)
			return NULL;
	}
	p = chunk->data + chunk->used;
	chunk->used += size;
	a->used = size > a->max - a->used ? a->max : a->used + size;
	return p;
}

char *arena_copy(struct arena *a, const void *bytes, size_t len)
{
	char *p = len < SIZE_MAX ? arena_alloc(a, len + 1) : NULL;

	if (!p)
		return NULL;
	if (len)
		memcpy(p, bytes, len);
	p[len] = 0;
	return p;
}
