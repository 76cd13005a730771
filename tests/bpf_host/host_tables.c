/* SPDX-License-Identifier: Apache-2.0 */
/* BPF maps as plain tables, searched from end to end, and the ring buffer; see host.h. */
#include "host.h"

#include <errno.h>
#include <stdlib.h>

#include "host_maps.h"
#include "host_private.h"

enum { MAX_MAPS = 24, RING_BYTES = 8 << 20, LARGE_BYTES = 1 << 20 };

static struct table {
	__u8 *keys, *values;
	size_t count, limit;
	bool refuse;
} tables[MAX_MAPS];

static _Alignas(8) __u8 ring_bytes[RING_BYTES];
static size_t ring_used;

static size_t index_of(const void *map)
{
	for (size_t i = 0; i < host_map_row_count; i++) {
		if (host_map_rows[i].map == map)
			return i;
	}
	abort(); /* a map that host_maps.c does not list */
}

void host_maps_reset(void)
{
	for (size_t i = 0; i < host_map_row_count; i++) {
		const struct host_map_row *row = &host_map_rows[i];
		struct table *t = &tables[i];

		size_t bytes = row->max_entries * row->value_size;

		if (bytes >= LARGE_BYTES) { /* fresh zero pages cost less than clearing */
			free(t->values);
			t->values = NULL;
		}
		if (!t->keys)
			t->keys = calloc(row->max_entries, row->key_size);
		if (!t->values)
			t->values = calloc(1, bytes);
		else if (row->is_array)
			memset(t->values, 0, bytes);
		t->count = row->is_array ? row->max_entries : 0;
		t->limit = row->max_entries;
		t->refuse = false;
	}
	ring_clear();
}

/* ---- maps ---- */

static size_t find(const struct host_map_row *row, const struct table *t, const void *key)
{
	if (row->is_array) {
		__u32 i;

		memcpy(&i, key, sizeof(i));
		return i < t->limit ? i : SIZE_MAX;
	}
	for (size_t i = 0; i < t->count; i++) {
		if (memcmp(t->keys + i * row->key_size, key, row->key_size) == 0)
			return i;
	}
	return SIZE_MAX;
}

/* Whether it is an element of unwind_rows: an array whose one value begins where it does. */
static bool is_inner_array(const void *map)
{
	const struct host_map_row *row = host_map_rows;
	const __u8 *values;

	while (strcmp(row->name, "unwind_rows") != 0)
		row++;
	values = tables[row - host_map_rows].values;
	return (const __u8 *)map >= values &&
	       (const __u8 *)map < values + row->max_entries * row->value_size;
}

void *bpf_map_lookup_elem(void *map, const void *key)
{
	size_t m, i;

	if (is_inner_array(map))
		return map;
	m = index_of(map);
	i = find(&host_map_rows[m], &tables[m], key);

	return i == SIZE_MAX ? NULL : tables[m].values + i * host_map_rows[m].value_size;
}

long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags)
{
	size_t m = index_of(map), i;
	const struct host_map_row *row = &host_map_rows[m];
	struct table *t = &tables[m];

	if (host.on_update)
		host.on_update(map, key);
	if (t->refuse)
		return -EBUSY;
	i = find(row, t, key);
	if (i != SIZE_MAX && flags == BPF_NOEXIST)
		return -EEXIST;
	if (i == SIZE_MAX) {
		if (t->count >= t->limit)
			return -E2BIG;
		i = t->count++;
		memcpy(t->keys + i * row->key_size, key, row->key_size);
	}
	memcpy(t->values + i * row->value_size, value, row->value_size);
	return 0;
}

long bpf_map_delete_elem(void *map, const void *key)
{
	size_t m = index_of(map), i = find(&host_map_rows[m], &tables[m], key);
	const struct host_map_row *row = &host_map_rows[m];
	struct table *t = &tables[m];

	if (i == SIZE_MAX)
		return -ENOENT;
	t->count--;
	memmove(t->keys + i * row->key_size, t->keys + t->count * row->key_size, row->key_size);
	memmove(t->values + i * row->value_size, t->values + t->count * row->value_size,
		row->value_size);
	return 0;
}

void map_limit(void *map, size_t max_entries)
{
	assert_true(max_entries <= host_map_rows[index_of(map)].max_entries);
	tables[index_of(map)].limit = max_entries;
}

void map_refuse(void *map, bool refuse)
{
	tables[index_of(map)].refuse = refuse;
}

size_t map_count_entries(void *map)
{
	return tables[index_of(map)].count;
}

void map_entry(void *map, size_t i, const void **ret_key, void **ret_value)
{
	size_t m = index_of(map);

	assert_true(i < tables[m].count);
	*ret_key = tables[m].keys + i * host_map_rows[m].key_size;
	*ret_value = tables[m].values + i * host_map_rows[m].value_size;
}

/* ---- ring ---- */

long bpf_ringbuf_output(void *ring, void *data, __u64 size, __u64 flags)
{
	const struct sonde_record *record = data;
	size_t room = (size + 7) & ~(size_t)7;

	if (host.ring_refusals > 0) {
		host.ring_refusals--;
		return -EAGAIN;
	}
	assert_true(size >= sizeof(*record));
	assert_int_equal(record->size, size);
	assert_true(room <= RING_BYTES - ring_used);
	if (flags == BPF_RB_FORCE_WAKEUP)
		host.ring_wakeups++;
	memcpy(ring_bytes + ring_used, data, size);
	ring_used += room;
	return 0;
}

void ring_clear(void)
{
	ring_used = 0;
}

static const struct sonde_record *record_at(size_t *at)
{
	const struct sonde_record *record = (const void *)(ring_bytes + *at);

	if (*at >= ring_used)
		return NULL;
	*at += (record->size + 7) & ~7U;
	return record;
}

const void *ring_record(enum sonde_record_type type, size_t i)
{
	const struct sonde_record *record;
	size_t at = 0;

	while ((record = record_at(&at))) {
		if (record->type == type && i-- == 0)
			return record;
	}
	return NULL;
}

size_t ring_count(enum sonde_record_type type)
{
	size_t n = 0;

	while (ring_record(type, n))
		n++;
	return n;
}

const void *ring_find(enum sonde_record_type type, __u64 id)
{
	const struct sonde_record *record;
	size_t at = 0;

	while ((record = record_at(&at))) {
		if (record->type == type && record->id == id)
			return record;
	}
	return NULL;
}
