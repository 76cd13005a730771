/* SPDX-License-Identifier: Apache-2.0 */
/* Open-addressing hash map; see map.h. Deletion moves later entries of the run back. */
#include "base/map.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"

enum { FIRST_CAP = 16 };

static uint64_t mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	x ^= x >> 32;
	return x;
}

/* Constant from the start of the program on. */
static uint64_t seed;

__attribute__((constructor)) static void draw_seed(void)
{
	/* Without entropy, at boot: what is different from run to run all the same. */
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = mix((uintptr_t)&seed ^ (uint64_t)getpid() << 32 ^ clock_monotonic());
}

static uint64_t hash_from(uint64_t start, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	uint64_t h = start ^ 0x9e3779b97f4a7c15ULL ^ len, word;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&word, p, 8);
		h = mix(h ^ word) + 0x9e3779b97f4a7c15ULL;
	}
	word = 0;
	if (len)
		memcpy(&word, p, len);
	return mix(h ^ word);
}

uint64_t hash_bytes(const void *bytes, size_t len)
{
	return hash_from(0, bytes, len);
}

uint64_t hash_key(const void *bytes, size_t len)
{
	return hash_from(seed, bytes, len);
}

void map_init(struct map *m, size_t key_size, size_t val_size, size_t max_entries)
{
	assert(key_size > 0);
	*m = (struct map){ .key_size = key_size, .val_size = val_size, .max_entries = max_entries };
}

void map_fini(struct map *m)
{
	free(m->used);
	free(m->keys);
	free(m->vals);
	m->used = m->keys = m->vals = NULL;
	m->count = m->cap = 0;
}

void map_clear(struct map *m)
{
	if (m->cap)
		memset(m->used, 0, m->cap);
	m->count = 0;
}

static void *key_at(const struct map *m, size_t i)
{
	return m->keys + i * m->key_size;
}

static void *val_at(const struct map *m, size_t i)
{
	return m->vals + i * m->val_size;
}

/* The slot that holds `key`, or the free slot where it would go. Needs cap > 0. */
static size_t slot_of(const struct map *m, const void *key)
{
	size_t i = hash_key(key, m->key_size) & (m->cap - 1);

	while (m->used[i] && memcmp(key_at(m, i), key, m->key_size) != 0)
		i = (i + 1) & (m->cap - 1);
	return i;
}

static int grow(struct map *m)
{
	size_t cap = m->cap ? m->cap * 2 : FIRST_CAP;
	struct map bigger = *m;

	bigger.cap = cap;
	bigger.used = calloc(cap, 1);
	bigger.keys = reallocarray(NULL, cap, m->key_size);
	bigger.vals = reallocarray(NULL, cap, m->val_size ? m->val_size : 1);
	if (!bigger.used || !bigger.keys || !bigger.vals) {
		free(bigger.used);
		free(bigger.keys);
		free(bigger.vals);
		return -ENOMEM;
	}
	for (size_t i = 0; i < m->cap; i++) {
		size_t to;

		if (!m->used[i])
			continue;
		to = slot_of(&bigger, key_at(m, i));
		bigger.used[to] = 1;
		memcpy(key_at(&bigger, to), key_at(m, i), m->key_size);
		memcpy(val_at(&bigger, to), val_at(m, i), m->val_size);
	}
	free(m->used);
	free(m->keys);
	free(m->vals);
	*m = bigger;
	return 0;
}

void *map_find(const struct map *m, const void *key)
{
	size_t i;

	if (!m->count)
		return NULL;
	i = slot_of(m, key);
	return m->used[i] ? val_at(m, i) : NULL;
}

int map_add(struct map *m, const void *key, void *ret_value_ptr)
{
	void **ret = ret_value_ptr;
	size_t i;
	int err;

	if (m->cap) {
		i = slot_of(m, key);
		if (m->used[i]) {
			if (ret)
				*ret = val_at(m, i);
			return 0;
		}
	}
	if (m->count >= m->max_entries)
		return -ENOSPC;
	if (m->count + 1 > m->cap / 4 * 3) {
		err = grow(m);
		if (err)
			return err;
	}
	i = slot_of(m, key);
	m->used[i] = 1;
	m->count++;
	memcpy(key_at(m, i), key, m->key_size);
	memset(val_at(m, i), 0, m->val_size);
	if (ret)
		*ret = val_at(m, i);
	return 1;
}

bool map_del(struct map *m, const void *key)
{
	size_t hole, i, mask = m->cap - 1;

	if (!m->count)
		return false;
	hole = slot_of(m, key);
	if (!m->used[hole])
		return false;
	for (i = (hole + 1) & mask; m->used[i]; i = (i + 1) & mask) {
		size_t home = hash_key(key_at(m, i), m->key_size) & mask;

		/* An entry may fill the hole only if its home is not between hole and i. */
		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		memcpy(key_at(m, hole), key_at(m, i), m->key_size);
		memcpy(val_at(m, hole), val_at(m, i), m->val_size);
		hole = i;
	}
	m->used[hole] = 0;
	m->count--;
	return true;
}

bool map_next(const struct map *m, size_t *cursor, void *ret_key_ptr, void *ret_value_ptr)
{
	void **ret_key = ret_key_ptr, **ret_value = ret_value_ptr;

	while (*cursor < m->cap) {
		size_t i = (*cursor)++;

		if (!m->used[i])
			continue;
		if (ret_key)
			*ret_key = key_at(m, i);
		if (ret_value)
			*ret_value = val_at(m, i);
		return true;
	}
	return false;
}
