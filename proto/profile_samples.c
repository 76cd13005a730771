/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of the profile model: checked, merged by stack and labels, summed without wrap. */
#include <errno.h>
#include <string.h>

#include "proto/profile.h"
#include "proto/profile_private.h"

/* What a row is found by, and the row's values. */
struct row {
	const uint32_t *locations;
	const struct profile_label *labels;
	const int64_t *values;
	size_t location_count;
	size_t label_count;
};

/* A label as bytes without padding, chained to the hash so far. */
struct label_key {
	uint64_t hash;
	uint32_t key, str;
	int64_t num;
	uint32_t unit, zero;
};

_Static_assert(sizeof(struct label_key) == 32, "no padding");

static bool row_valid(const struct profile *p, const struct row *row)
{
	if (p->type_count == 0 || row->location_count > UINT32_MAX ||
	    row->label_count > UINT32_MAX)
		return false;
	for (size_t i = 0; i < row->location_count; i++) {
		if (row->locations[i] == 0 || row->locations[i] > p->location_count)
			return false;
	}
	for (size_t i = 0; i < row->label_count; i++) {
		const struct profile_label *label = &row->labels[i];

		if (label->key >= p->strings.count || label->str >= p->strings.count ||
		    label->unit >= p->strings.count)
			return false;
	}
	for (size_t i = 0; i < p->type_count; i++) {
		if (row->values[i] < 0)
			return false;
	}
	return true;
}

static bool row_is_zero(const struct profile *p, const struct row *row)
{
	for (size_t i = 0; i < p->type_count; i++) {
		if (row->values[i])
			return false;
	}
	return true;
}

static uint64_t row_hash(const struct row *row)
{
	uint64_t hash = row->location_count ?
				hash_key(row->locations,
					   row->location_count * sizeof(*row->locations)) :
				0;

	for (size_t i = 0; i < row->label_count; i++) {
		struct label_key key = {
			.hash = hash,
			.key = row->labels[i].key,
			.str = row->labels[i].str,
			.num = row->labels[i].num,
			.unit = row->labels[i].unit,
		};

		hash = hash_key(&key, sizeof(key));
	}
	return hash;
}

static bool labels_equal(const struct profile_label *a, const struct profile_label *b)
{
	return a->key == b->key && a->str == b->str && a->num == b->num && a->unit == b->unit;
}

static bool row_matches(const struct row *row, const struct profile_sample *sample)
{
	if (row->location_count != sample->location_count ||
	    row->label_count != sample->label_count)
		return false;
	if (row->location_count && memcmp(row->locations, sample->locations,
					  row->location_count * sizeof(*row->locations)) != 0)
		return false;
	for (size_t i = 0; i < row->label_count; i++) {
		if (!labels_equal(&row->labels[i], &sample->labels[i]))
			return false;
	}
	return true;
}

static void add_values(const struct profile *p, struct profile_sample *sample,
		       const int64_t *values)
{
	for (size_t i = 0; i < p->type_count; i++) {
		if (p->maxima >> i & 1) {
			if (sample->values[i] < values[i])
				sample->values[i] = values[i];
		} else if (__builtin_add_overflow(sample->values[i], values[i], &sample->values[i])) {
			sample->values[i] = INT64_MAX;
		}
	}
}

static void *copy_of(struct profile *p, const void *from, size_t count, size_t size)
{
	void *to = profile_alloc(p, count * size);

	if (to && count)
		memcpy(to, from, count * size);
	return to;
}

/* Makes the row's sample, not yet counted in sample_count. */
static int place_sample(struct profile *p, const struct row *row)
{
	struct profile_sample sample = {
		.location_count = (uint32_t)row->location_count,
		.label_count = (uint32_t)row->label_count,
	};

	if (profile_grow_array(p, &p->samples, sizeof(*p->samples), p->sample_count,
			       &p->sample_cap))
		return -ENOMEM;
	sample.locations =
		copy_of(p, row->locations, row->location_count, sizeof(*row->locations));
	sample.labels = copy_of(p, row->labels, row->label_count, sizeof(*row->labels));
	sample.values = copy_of(p, row->values, p->type_count, sizeof(*row->values));
	if (!sample.locations || !sample.labels || !sample.values)
		return -ENOMEM;
	p->samples[p->sample_count] = sample;
	return 0;
}

int profile_add_sample(struct profile *p, const uint32_t *locations, size_t location_count,
		       const int64_t *values, const struct profile_label *labels,
		       size_t label_count)
{
	struct row row = { locations, labels, values, location_count, label_count };
	uint64_t hash;
	uint32_t *have;

	if (!row_valid(p, &row))
		return -EINVAL;
	if (row_is_zero(p, &row))
		return 0;
	hash = row_hash(&row);
	while ((have = map_find(&p->sample_index, &hash)) != NULL) {
		if (row_matches(&row, &p->samples[*have])) {
			add_values(p, &p->samples[*have], values);
			return 0;
		}
		hash++;
	}
	if (place_sample(p, &row) ||
	    profile_index_add(p, &p->sample_index, &hash, (uint32_t)p->sample_count))
		return -ENOMEM;
	p->sample_count++;
	return 0;
}

int profile_append_sample(struct profile *p, const uint32_t *locations, size_t location_count,
			  const int64_t *values, const struct profile_label *labels,
			  size_t label_count)
{
	struct row row = { locations, labels, values, location_count, label_count };

	if (!row_valid(p, &row))
		return -EINVAL;
	if (row_is_zero(p, &row))
		return 0;
	if (place_sample(p, &row))
		return -ENOMEM;
	p->sample_count++;
	return 0;
}

int profile_name_location(struct profile *p, uint32_t location_id, const struct profile_line *lines,
			  size_t line_count)
{
	size_t size = line_count * sizeof(*lines);
	struct profile_location *l;
	struct profile_line *copy;

	if (location_id == 0 || location_id > p->location_count || line_count > UINT32_MAX)
		return -EINVAL;
	l = &p->locations[location_id - 1];
	if (l->line_count)
		return -EINVAL;
	copy = profile_has_room(p, size) ? arena_alloc(&p->memory, size) : NULL;
	if (!copy)
		return -ENOMEM;
	memcpy(copy, lines, size);
	l->lines = copy;
	l->line_count = (uint32_t)line_count;
	return 0;
}
