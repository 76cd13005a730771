/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash map from keys of one fixed size to values of one fixed size, both plain bytes.
 * Open addressing, at most 3/4 full; entries lie in insertion-independent order.
 *
 * Keys are compared byte by byte: zero any padding. Pointers to values are good until the
 * next map_add, map_del or map_fini on the same map. Not thread-safe.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map {
	size_t key_size;
	size_t val_size;
	size_t max_entries; /* bound; map_add says -ENOSPC past it */
	size_t count;
	size_t cap; /* a power of two, or 0 */
	uint8_t *used;
	uint8_t *keys;
	uint8_t *vals;
};

/* Sets up an empty map; allocates nothing yet. val_size may be 0 (a set). */
void map_init(struct map *m, size_t key_size, size_t val_size, size_t max_entries);
/* Empty again, and usable; also for a map that is all zero. */
void map_fini(struct map *m);

/* Drops all entries, keeps the memory. */
void map_clear(struct map *m);

/* The value of `key`, or NULL. */
void *map_find(const struct map *m, const void *key);

/*
 * Finds or inserts: 0 and the value if the key was there, 1 and a zeroed value if it is new,
 * -ENOMEM or -ENOSPC otherwise. ret_value may be NULL.
 */
int map_add(struct map *m, const void *key, void *ret_value_ptr);

/* Removes `key`; false if it was not there. */
bool map_del(struct map *m, const void *key);

/*
 * Iterates: start with *cursor = 0; true while there is an entry. The map must not change
 * meanwhile. ret_key and ret_value may be NULL; both are pointers to pointers.
 */
bool map_next(const struct map *m, size_t *cursor, void *ret_key_ptr, void *ret_value_ptr);

/* A 64-bit hash of some bytes, the same in each run: who chooses the bytes can make hashes equal. */
uint64_t hash_bytes(const void *bytes, size_t len);

/*
 * The same under a seed that is drawn when the program starts, as all tables here use it: what foreign
 * bytes are in keys, they fall anywhere. Not for what outlives the program.
 */
uint64_t hash_key(const void *bytes, size_t len);

#endif
