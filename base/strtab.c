/* SPDX-License-Identifier: Apache-2.0 */
/* String table; see strtab.h. */
#include "base/strtab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

enum { FIRST_CAP = 64 };

int strtab_init(struct strtab *t, size_t max_bytes)
{
	*t = (struct strtab){ 0 };
	arena_init(&t->text, max_bytes);
	return strtab_add(t, "", 0) == 0 ? 0 : -ENOMEM;
}

void strtab_fini(struct strtab *t)
{
	arena_fini(&t->text);
	free(t->strings);
	free(t->slots);
	*t = (struct strtab){ 0 };
}

static size_t slot_of(const struct strtab *t, const char *text, size_t len)
{
	size_t i = hash_key(text, len) & (t->slot_cap - 1);

	for (; t->slots[i]; i = (i + 1) & (t->slot_cap - 1)) {
		const char *have = t->strings[t->slots[i] - 1];

		if (strncmp(have, text, len) == 0 && have[len] == 0)
			break;
	}
	return i;
}

static int grow(struct strtab *t)
{
	size_t cap = t->cap ? t->cap * 2 : FIRST_CAP;
	const char **strings = reallocarray(t->strings, cap, sizeof(*strings));
	uint32_t *slots;

	if (!strings)
		return -ENOMEM;
	t->strings = strings;
	slots = calloc(cap * 2, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(t->slots);
	t->slots = slots;
	t->slot_cap = cap * 2;
	t->cap = cap;
	for (size_t n = 0; n < t->count; n++)
		t->slots[slot_of(t, t->strings[n], strlen(t->strings[n]))] = (uint32_t)n + 1;
	return 0;
}

int64_t strtab_add(struct strtab *t, const char *text, size_t len)
{
	size_t slot;
	char *copy;

	len = strnlen(text, len);
	if (t->slot_cap) {
		slot = slot_of(t, text, len);
		if (t->slots[slot])
			return t->slots[slot] - 1;
	}
	if (t->count == t->cap && grow(t))
		return -ENOMEM;
	if (t->count >= UINT32_MAX - 1)
		return -ENOMEM;
	copy = arena_copy(&t->text, text, len);
	if (!copy)
		return -ENOMEM;
	slot = slot_of(t, text, len);
	t->strings[t->count++] = copy;
	t->slots[slot] = (uint32_t)t->count;
	return (int64_t)t->count - 1;
}
