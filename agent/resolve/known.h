/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of what the kernel side has sent once and then refers to by id: stacks, processes,
 * thread names, cgroups, files. Both sides must agree on what is known, so an entry goes in two
 * steps. Not used for `keep` drains: the id is put on the list to forget, and the kernel
 * side sends the thing anew at its next use. Two drains later no count can refer to the old
 * entry any more, and it is freed, unless it was sent again meanwhile.
 */
#ifndef AGENT_RESOLVE_KNOWN_H
#define AGENT_RESOLVE_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

struct known_table {
	struct map map;
	void (*free_object)(void *object);
	uint32_t keep; /* drains without use */
};

/* A list of ids to forget, of one table. */
struct forget_list {
	uint64_t *ids;
	size_t count;
	size_t cap;
};

void known_init(struct known_table *t, size_t max_entries, uint32_t keep,
		void (*free_object)(void *object));
void known_fini(struct known_table *t);

/* Takes over `object` (replacing an older one): 0, or -ENOMEM / -ENOSPC and frees it. */
int known_put(struct known_table *t, uint64_t id, void *object, uint32_t now);

/* The object, whose use at drain `now` is noted; NULL if it is not known. */
void *known_get(struct known_table *t, uint64_t id, uint32_t now);

/*
 * The same for a thing that was sent again: it also is no longer on its way to be forgotten,
 * since the kernel side has just noted that it is known here.
 */
void *known_renew(struct known_table *t, uint64_t id, uint32_t now);

/*
 * The entry that was unused for longest, of those that `eligible` says yes to: its object, id and
 * age in drains, or NULL. Walks the table.
 */
void *known_oldest(struct known_table *t, uint32_t now, bool (*eligible)(const void *object),
		   uint64_t *ret_id, uint32_t *ret_age);

/* Drains since the last use; UINT32_MAX if it is not known. */
uint32_t known_age(const struct known_table *t, uint64_t id, uint32_t now);

/*
 * Ages the table after drain `now`. More than half full, it keeps things for two drains only.
 * An id that finds no room in the list stays until the next time.
 */
void known_expire(struct known_table *t, uint32_t now, struct forget_list *list);

int forget_list_add(struct forget_list *list, uint64_t id);

#endif
