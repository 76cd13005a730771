/* SPDX-License-Identifier: Apache-2.0 */
/* See otlp_dictionary.h. */
#include "proto/otlp_dictionary.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* The dictionary has one bound for all; its parts have none of their own. */
static const size_t NO_BOUND = SIZE_MAX / 4;

_Static_assert(sizeof(struct otlp_mapping) == 32, "no padding");
_Static_assert(sizeof(struct otlp_function) == 24, "no padding");
_Static_assert(sizeof(struct otlp_location) == 24, "no padding");
_Static_assert(sizeof(struct otlp_line) == 16, "no padding");

static void table_init(struct otlp_table *t, size_t key_size)
{
	buf_init(&t->rows, NO_BOUND);
	map_init(&t->index, key_size, sizeof(uint32_t), UINT32_MAX);
}

static void table_fini(struct otlp_table *t)
{
	buf_fini(&t->rows);
	map_fini(&t->index);
}

static void lists_init(struct otlp_lists *l)
{
	arena_init(&l->memory, NO_BOUND);
	table_init(&l->table, sizeof(uint64_t));
}

static void lists_fini(struct otlp_lists *l)
{
	arena_fini(&l->memory);
	table_fini(&l->table);
}

int otlp_dictionary_init(struct otlp_dictionary *d, size_t max_bytes)
{
	int err;

	*d = (struct otlp_dictionary){ .max_bytes = max_bytes };
	table_init(&d->mappings, sizeof(struct otlp_mapping));
	table_init(&d->functions, sizeof(struct otlp_function));
	table_init(&d->locations, sizeof(struct otlp_location));
	table_init(&d->attributes, sizeof(struct otlp_attribute_row));
	lists_init(&d->lines);
	lists_init(&d->stacks);
	err = strtab_init(&d->strings, NO_BOUND);
	return err ? err : strtab_init(&d->texts, NO_BOUND);
}

void otlp_dictionary_fini(struct otlp_dictionary *d)
{
	strtab_fini(&d->strings);
	strtab_fini(&d->texts);
	table_fini(&d->mappings);
	table_fini(&d->functions);
	table_fini(&d->locations);
	table_fini(&d->attributes);
	lists_fini(&d->lines);
	lists_fini(&d->stacks);
}

static int account(struct otlp_dictionary *d, size_t bytes)
{
	if (bytes > d->max_bytes - d->bytes)
		return -EFBIG;
	d->bytes += bytes;
	return 0;
}

static int64_t add_text(struct otlp_dictionary *d, struct strtab *t, const char *text)
{
	size_t before = t->count, len = strlen(text);
	int64_t number = strtab_add(t, text, len);
	int err = t->count > before ? account(d, len) : 0;

	return err ? err : number;
}

int64_t otlp_add_string(struct otlp_dictionary *d, const char *text)
{
	return add_text(d, &d->strings, text);
}

int64_t otlp_add_attribute(struct otlp_dictionary *d, const char *key, const char *text)
{
	int64_t key_string = otlp_add_string(d, key), value;
	struct otlp_attribute_row row;

	if (key_string < 0)
		return key_string;
	value = add_text(d, &d->texts, text);
	if (value < 0)
		return value;
	row = (struct otlp_attribute_row){ (uint32_t)key_string, (uint32_t)value };
	return otlp_add_row(d, &d->attributes, &row);
}

/* `key` is not in the index: the row gets the next number. */
static int64_t append(struct otlp_dictionary *d, struct otlp_table *t, const void *key,
		      const void *row, size_t row_size)
{
	int err = account(d, row_size);
	uint32_t *number;

	if (err)
		return err;
	if (map_add(&t->index, key, &number) < 0)
		return -ENOMEM;
	*number = (uint32_t)t->index.count;
	buf_put(&t->rows, row, row_size);
	return buf_error(&t->rows) ? -ENOMEM : (int64_t)*number;
}

int64_t otlp_add_row(struct otlp_dictionary *d, struct otlp_table *t, const void *row)
{
	uint32_t *number = map_find(&t->index, row);

	return number ? *number : append(d, t, row, row, t->index.key_size);
}

static bool list_is(const struct otlp_lists *l, uint32_t number, const void *bytes, size_t len)
{
	const struct otlp_list *have = (const struct otlp_list *)l->table.rows.data + number - 1;

	return have->len == len && memcmp(have->bytes, bytes, len) == 0;
}

int64_t otlp_add_list(struct otlp_dictionary *d, struct otlp_lists *l, const void *bytes,
		      size_t len)
{
	struct otlp_list list = { .len = len };
	uint64_t hash;
	uint32_t *number;

	if (len == 0)
		return 0;
	/* On a collision the next hash is tried until the entry is equal or absent. */
	hash = hash_key(bytes, len);
	while ((number = map_find(&l->table.index, &hash)) != NULL) {
		if (list_is(l, *number, bytes, len))
			return *number;
		hash++;
	}
	if (account(d, len))
		return -EFBIG;
	list.bytes = arena_copy(&l->memory, bytes, len);
	return list.bytes ? append(d, &l->table, &hash, &list, sizeof(list)) : -ENOMEM;
}
