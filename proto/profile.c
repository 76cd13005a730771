/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of the profile model; samples are in profile_samples.c. See profile.h.
 *
 * Merging: mappings and functions have keys of fixed size, so their index maps the key to the
 * id. A location's key has any number of lines, so its index maps a 64-bit hash; on a collision
 * the next number is tried until the entry is equal or absent, which makes merging exact.
 */
#include "proto/profile.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "proto/profile_private.h"

enum { FIRST_CAP = 16 };

/* Keys are compared as bytes: no padding. */
struct mapping_key {
	uint64_t memory_start, memory_limit, file_offset;
	uint32_t filename, build_id;
};

struct function_key {
	uint32_t name, system_name, filename, zero;
	int64_t start_line;
};

struct line_key {
	uint64_t hash; /* of what came before */
	uint64_t function_id;
	int64_t line;
};

_Static_assert(sizeof(struct mapping_key) == 32, "no padding");
_Static_assert(sizeof(struct function_key) == 24, "no padding");

int profile_new(size_t max_bytes, struct profile **ret_profile)
{
	struct profile *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->max_bytes = max_bytes;
	arena_init(&p->memory, max_bytes);
	map_init(&p->mapping_index, sizeof(struct mapping_key), sizeof(uint32_t), UINT32_MAX);
	map_init(&p->function_index, sizeof(struct function_key), sizeof(uint32_t), UINT32_MAX);
	map_init(&p->location_index, sizeof(uint64_t), sizeof(uint32_t), UINT32_MAX);
	map_init(&p->sample_index, sizeof(uint64_t), sizeof(uint32_t), UINT32_MAX);
	if (strtab_init(&p->strings, max_bytes)) {
		profile_free(p);
		return -ENOMEM;
	}
	*ret_profile = p;
	return 0;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	map_fini(&p->mapping_index);
	map_fini(&p->function_index);
	map_fini(&p->location_index);
	map_fini(&p->sample_index);
	free(p->mappings);
	free(p->functions);
	free(p->locations);
	free(p->samples);
	free(p->comments);
	strtab_fini(&p->strings);
	arena_fini(&p->memory);
	free(p);
}

static size_t map_bytes(const struct map *m, size_t cap)
{
	return cap * (m->key_size + m->val_size + 1);
}

static size_t bytes_used(const struct profile *p)
{
	return p->strings.text.used + p->strings.cap * sizeof(*p->strings.strings) +
	       p->strings.slot_cap * sizeof(*p->strings.slots) + p->memory.used +
	       p->mapping_cap * sizeof(*p->mappings) + p->function_cap * sizeof(*p->functions) +
	       p->location_cap * sizeof(*p->locations) + p->sample_cap * sizeof(*p->samples) +
	       p->comment_cap * sizeof(*p->comments) +
	       map_bytes(&p->mapping_index, p->mapping_index.cap) +
	       map_bytes(&p->function_index, p->function_index.cap) +
	       map_bytes(&p->location_index, p->location_index.cap) +
	       map_bytes(&p->sample_index, p->sample_index.cap);
}

bool profile_has_room(struct profile *p, size_t more)
{
	size_t used = bytes_used(p);

	if (used <= p->max_bytes && more <= p->max_bytes - used)
		return true;
	p->full = true;
	return false;
}

int profile_grow_array(struct profile *p, void *array_ptr, size_t size, size_t count,
		       size_t *cap)
{
	void **array = array_ptr;
	size_t want = *cap ? *cap * 2 : FIRST_CAP;
	void *bigger;

	if (count < *cap)
		return 0;
	if (count >= UINT32_MAX - 1 || !profile_has_room(p, (want - *cap) * size))
		return -ENOMEM;
	bigger = reallocarray(*array, want, size);
	if (!bigger)
		return -ENOMEM;
	*array = bigger;
	*cap = want;
	return 0;
}

void *profile_alloc(struct profile *p, size_t size)
{
	if (!profile_has_room(p, size))
		return NULL;
	return arena_alloc(&p->memory, size);
}

int profile_index_add(struct profile *p, struct map *index, const void *key, uint32_t value)
{
	size_t cap = index->cap ? index->cap * 2 : FIRST_CAP;
	uint32_t *slot;

	if (index->count + 1 > index->cap / 4 * 3 &&
	    !profile_has_room(p, map_bytes(index, cap - index->cap)))
		return -ENOMEM;
	if (map_add(index, key, &slot) < 0)
		return -ENOMEM;
	*slot = value;
	return 0;
}

/*
 * Appends clean text; see profile_string_n. A backslash passes as it is, so that text which
 * was escaped before (by the adding side, or in a file being read) stays the same.
 */
static void clean_text(struct buf *out, const char *text, size_t len)
{
	const char *end = text + len;

	while (text < end) {
		const char *stop = memchr(text, '\\', (size_t)(end - text));
		size_t part = (size_t)((stop ? stop : end) - text);

		text_escape(out, text, part);
		if (!stop)
			break;
		buf_put_byte(out, '\\');
		text = stop + 1;
	}
}

static bool all_plain_ascii(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] < 0x20 || text[i] > 0x7e)
			return false;
	}
	return true;
}

static int64_t add_string(struct profile *p, const char *text, size_t len)
{
	size_t table = p->strings.count == p->strings.cap ? p->strings.cap : 0;

	/* Growing doubles both arrays; the room is asked for even if the string is known. */
	table *= sizeof(*p->strings.strings) + 2 * sizeof(*p->strings.slots);
	if (len >= p->max_bytes || !profile_has_room(p, len + 1 + table))
		return -ENOMEM;
	return strtab_add(&p->strings, text, len);
}

/* Bytes that are not clean UTF-8 are escaped here too: no writer makes an invalid file. */
int64_t profile_string_n(struct profile *p, const char *text, size_t len)
{
	struct buf clean;
	int64_t number;

	if (all_plain_ascii(text, len))
		return add_string(p, text, len);
	buf_init(&clean, p->max_bytes);
	clean_text(&clean, text, len);
	number = buf_error(&clean) ? -ENOMEM :
				     add_string(p, (const char *)clean.data, clean.len);
	buf_fini(&clean);
	return number;
}

int64_t profile_string(struct profile *p, const char *text)
{
	return profile_string_n(p, text, strlen(text));
}

int profile_add_type(struct profile *p, const char *type, const char *unit)
{
	int64_t type_string, unit_string;

	/* Samples that exist have values for the types of then. */
	if (p->type_count == PROFILE_MAX_TYPES || p->sample_count)
		return -EINVAL;
	type_string = profile_string(p, type);
	unit_string = profile_string(p, unit);
	if (type_string < 0 || unit_string < 0)
		return -ENOMEM;
	p->types[p->type_count++] = (struct profile_type){
		.type = (uint32_t)type_string,
		.unit = (uint32_t)unit_string,
	};
	return (int)p->type_count;
}

static bool is_string(const struct profile *p, uint32_t number)
{
	return number < p->strings.count;
}

int64_t profile_add_mapping(struct profile *p, const struct profile_mapping *mapping)
{
	struct mapping_key key = {
		.memory_start = mapping->memory_start,
		.memory_limit = mapping->memory_limit,
		.file_offset = mapping->file_offset,
		.filename = mapping->filename,
		.build_id = mapping->build_id,
	};
	uint32_t *have;

	if (!is_string(p, mapping->filename) || !is_string(p, mapping->build_id))
		return -EINVAL;
	have = map_find(&p->mapping_index, &key);
	if (have) {
		/* "Every location is named" holds only if all who add say so. */
		p->mappings[*have - 1].has_functions &= mapping->has_functions;
		return *have;
	}
	if (profile_grow_array(p, &p->mappings, sizeof(*p->mappings), p->mapping_count,
			       &p->mapping_cap) ||
	    profile_index_add(p, &p->mapping_index, &key, (uint32_t)p->mapping_count + 1))
		return -ENOMEM;
	p->mappings[p->mapping_count++] = *mapping;
	return (int64_t)p->mapping_count;
}

int64_t profile_add_function(struct profile *p, const struct profile_function *function)
{
	struct function_key key = {
		.name = function->name,
		.system_name = function->system_name,
		.filename = function->filename,
		.start_line = function->start_line,
	};
	uint32_t *have;

	if (!is_string(p, function->name) || !is_string(p, function->system_name) ||
	    !is_string(p, function->filename))
		return -EINVAL;
	have = map_find(&p->function_index, &key);
	if (have)
		return *have;
	if (profile_grow_array(p, &p->functions, sizeof(*p->functions), p->function_count,
			       &p->function_cap) ||
	    profile_index_add(p, &p->function_index, &key, (uint32_t)p->function_count + 1))
		return -ENOMEM;
	p->functions[p->function_count++] = *function;
	return (int64_t)p->function_count;
}

static uint64_t location_hash(const struct profile_location *wanted)
{
	struct line_key key = { .function_id = wanted->mapping_id,
				.line = (int64_t)wanted->address };
	uint64_t hash = hash_key(&key, sizeof(key));

	for (size_t i = 0; i < wanted->line_count; i++) {
		key = (struct line_key){ .hash = hash,
					 .function_id = wanted->lines[i].function_id,
					 .line = wanted->lines[i].line };
		hash = hash_key(&key, sizeof(key));
	}
	return hash;
}

static bool location_equal(const struct profile_location *a, const struct profile_location *b)
{
	if (a->mapping_id != b->mapping_id || a->address != b->address ||
	    a->line_count != b->line_count)
		return false;
	for (size_t i = 0; i < a->line_count; i++) {
		if (a->lines[i].function_id != b->lines[i].function_id ||
		    a->lines[i].line != b->lines[i].line)
			return false;
	}
	return true;
}

static bool location_valid(const struct profile *p, const struct profile_location *wanted)
{
	if (wanted->mapping_id > p->mapping_count)
		return false;
	for (size_t i = 0; i < wanted->line_count; i++) {
		uint32_t id = wanted->lines[i].function_id;

		if (id == 0 || id > p->function_count)
			return false;
	}
	return true;
}

static int64_t append_location(struct profile *p, uint64_t hash,
			       const struct profile_location *wanted)
{
	struct profile_line *lines =
		profile_alloc(p, wanted->line_count * sizeof(struct profile_line));

	if (!lines || profile_grow_array(p, &p->locations, sizeof(*p->locations),
					 p->location_count, &p->location_cap) ||
	    profile_index_add(p, &p->location_index, &hash, (uint32_t)p->location_count + 1))
		return -ENOMEM;
	if (wanted->line_count)
		memcpy(lines, wanted->lines, wanted->line_count * sizeof(*lines));
	p->locations[p->location_count] = *wanted;
	p->locations[p->location_count++].lines = lines;
	return (int64_t)p->location_count;
}

int64_t profile_add_location(struct profile *p, uint32_t mapping_id, uint64_t address,
			     const struct profile_line *lines, size_t line_count)
{
	struct profile_location wanted = {
		.mapping_id = mapping_id,
		.line_count = (uint32_t)line_count,
		.address = address,
		.lines = lines,
	};
	uint64_t hash;
	uint32_t *have;

	if (line_count > UINT32_MAX || !location_valid(p, &wanted))
		return -EINVAL;
	hash = location_hash(&wanted);
	while ((have = map_find(&p->location_index, &hash)) != NULL) {
		if (location_equal(&p->locations[*have - 1], &wanted))
			return *have;
		hash++;
	}
	return append_location(p, hash, &wanted);
}

int profile_add_comment(struct profile *p, const char *format, ...)
{
	int64_t string;
	va_list args;
	char *text;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	if (len < 0)
		return -ENOMEM;
	string = profile_string_n(p, text, (size_t)len);
	free(text);
	if (string < 0 || profile_grow_array(p, &p->comments, sizeof(*p->comments),
					     p->comment_count, &p->comment_cap))
		return -ENOMEM;
	p->comments[p->comment_count++] = (uint32_t)string;
	return 0;
}
