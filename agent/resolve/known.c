/* SPDX-License-Identifier: Apache-2.0 */
/* Two-step expiry of what the kernel side sends once; see known.h. */
#include "agent/resolve/known.h"

#include <errno.h>
#include <stdlib.h>

enum { FREE_AFTER = 2, SHORT_KEEP = 2 };

struct known {
	void *object;
	uint32_t last_used;
	uint32_t forgotten; /* drain at which it was listed, 0: not */
};

void known_init(struct known_table *t, size_t max_entries, uint32_t keep,
		void (*free_object)(void *object))
{
	*t = (struct known_table){ .free_object = free_object, .keep = keep };
	map_init(&t->map, sizeof(uint64_t), sizeof(struct known), max_entries);
}

void known_fini(struct known_table *t)
{
	struct known *entry;
	size_t cursor = 0;

	while (map_next(&t->map, &cursor, NULL, &entry))
		t->free_object(entry->object);
	map_fini(&t->map);
}

int known_put(struct known_table *t, uint64_t id, void *object, uint32_t now)
{
	struct known *entry;
	int n = map_add(&t->map, &id, &entry);

	if (n < 0) {
		t->free_object(object);
		return n;
	}
	if (n == 0)
		t->free_object(entry->object);
	*entry = (struct known){ .object = object, .last_used = now };
	return 0;
}

void *known_get(struct known_table *t, uint64_t id, uint32_t now)
{
	struct known *entry = map_find(&t->map, &id);

	if (!entry)
		return NULL;
	entry->last_used = now;
	return entry->object;
}

void *known_renew(struct known_table *t, uint64_t id, uint32_t now)
{
	struct known *entry = map_find(&t->map, &id);

	if (!entry)
		return NULL;
	entry->last_used = now;
	entry->forgotten = 0;
	return entry->object;
}

void *known_oldest(struct known_table *t, uint32_t now, bool (*eligible)(const void *object),
		   uint64_t *ret_id, uint32_t *ret_age)
{
	struct known *entry, *oldest = NULL;
	const uint64_t *id;
	size_t cursor = 0;

	while (map_next(&t->map, &cursor, &id, &entry)) {
		if (!eligible(entry->object) || (oldest && entry->last_used >= oldest->last_used))
			continue;
		oldest = entry;
		*ret_id = *id;
		*ret_age = now - entry->last_used;
	}
	return oldest ? oldest->object : NULL;
}

uint32_t known_age(const struct known_table *t, uint64_t id, uint32_t now)
{
	const struct known *entry = map_find(&t->map, &id);

	return entry ? now - entry->last_used : UINT32_MAX;
}

int forget_list_add(struct forget_list *list, uint64_t id)
{
	if (list->count == list->cap) {
		size_t cap = list->cap ? list->cap * 2 : 64;
		uint64_t *ids = reallocarray(list->ids, cap, sizeof(*ids));

		if (!ids)
			return -ENOMEM;
		list->ids = ids;
		list->cap = cap;
	}
	list->ids[list->count++] = id;
	return 0;
}

void known_expire(struct known_table *t, uint32_t now, struct forget_list *list)
{
	uint32_t keep = t->map.count > t->map.max_entries / 2 ? SHORT_KEEP : t->keep;
	struct forget_list dead = { 0 };
	const uint64_t *id;
	struct known *entry;
	size_t cursor = 0;

	while (map_next(&t->map, &cursor, &id, &entry)) {
		if (entry->forgotten) {
			if (now - entry->forgotten >= FREE_AFTER)
				forget_list_add(&dead, *id);
		} else if (now - entry->last_used > keep && !forget_list_add(list, *id)) {
			entry->forgotten = now;
		}
	}
	for (size_t i = 0; i < dead.count; i++) {
		entry = map_find(&t->map, &dead.ids[i]);
		t->free_object(entry->object);
		map_del(&t->map, &dead.ids[i]);
	}
	free(dead.ids);
}
