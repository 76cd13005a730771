/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A string table: each distinct string is kept once and has a small number, from 0 up in
 * order of arrival. Number 0 is always the empty string. Strings are byte strings without
 * NUL; nothing is checked about their encoding.
 */
#ifndef BASE_STRTAB_H
#define BASE_STRTAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct strtab {
	struct arena text;
	const char **strings; /* by number; each NUL-terminated */
	uint32_t *slots;      /* open-addressing index of numbers + 1 */
	size_t count;
	size_t cap;
	size_t slot_cap;
};

/* Returns 0 or -ENOMEM. max_bytes bounds the text. */
int strtab_init(struct strtab *t, size_t max_bytes);
void strtab_fini(struct strtab *t);

/*
 * The number of the string, added if new; -ENOMEM when out of memory or over the bound. It has
 * `len` bytes, or less if there is a NUL among them.
 */
int64_t strtab_add(struct strtab *t, const char *text, size_t len);

/* The string of a number < count; valid until strtab_fini. */
static inline const char *strtab_get(const struct strtab *t, size_t number)
{
	return t->strings[number];
}

#endif
