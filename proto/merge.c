/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merging profiles; see merge.h. The source's numbers (strings, mappings, functions, locations)
 * are translated once each, when a sample first needs them: what no kept sample refers to does
 * not come along.
 */
#include "proto/merge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/parse.h"

static const char COUNTER_PREFIX[] = "sonde.";

/* By the source's number: the destination's, or 0 while it is not known. */
struct merge {
	struct profile *dst;
	const struct profile *src;
	bool some_labels; /* only those with the key keep_label */
	const char *keep_label;
	uint32_t *strings, *mappings, *functions, *locations;
	struct buf lines, stack, labels; /* scratch */
};

static void merge_fini(struct merge *m)
{
	free(m->strings);
	free(m->mappings);
	free(m->functions);
	free(m->locations);
	buf_fini(&m->lines);
	buf_fini(&m->stack);
	buf_fini(&m->labels);
}

static int merge_init(struct merge *m, struct profile *dst, const struct profile *src)
{
	*m = (struct merge){
		.dst = dst,
		.src = src,
		.strings = calloc(src->strings.count, sizeof(uint32_t)),
		.mappings = calloc(src->mapping_count + 1, sizeof(uint32_t)),
		.functions = calloc(src->function_count + 1, sizeof(uint32_t)),
		.locations = calloc(src->location_count + 1, sizeof(uint32_t)),
	};
	buf_init(&m->lines, SIZE_MAX / 2);
	buf_init(&m->stack, SIZE_MAX / 2);
	buf_init(&m->labels, SIZE_MAX / 2);
	return m->strings && m->mappings && m->functions && m->locations ? 0 : -ENOMEM;
}

static int64_t string_of(struct merge *m, uint32_t string)
{
	int64_t number = m->strings[string];

	if (number || string == 0)
		return number;
	number = profile_string(m->dst, profile_text(m->src, string));
	if (number > 0)
		m->strings[string] = (uint32_t)number;
	return number;
}

/* Translates in place; false when the string could not be added. */
static bool translate_string(struct merge *m, uint32_t *string)
{
	int64_t number = string_of(m, *string);

	if (number >= 0)
		*string = (uint32_t)number;
	return number >= 0;
}

static int64_t mapping_of(struct merge *m, uint32_t id)
{
	struct profile_mapping mapping;
	int64_t number;

	if (id == 0 || m->mappings[id])
		return m->mappings[id];
	mapping = m->src->mappings[id - 1];
	if (!translate_string(m, &mapping.filename) || !translate_string(m, &mapping.build_id))
		return -ENOMEM;
	number = profile_add_mapping(m->dst, &mapping);
	if (number > 0)
		m->mappings[id] = (uint32_t)number;
	return number;
}

static int64_t function_of(struct merge *m, uint32_t id)
{
	struct profile_function function;
	int64_t number;

	if (m->functions[id])
		return m->functions[id];
	function = m->src->functions[id - 1];
	if (!translate_string(m, &function.name) || !translate_string(m, &function.system_name) ||
	    !translate_string(m, &function.filename))
		return -ENOMEM;
	number = profile_add_function(m->dst, &function);
	if (number > 0)
		m->functions[id] = (uint32_t)number;
	return number;
}

static int64_t add_location(struct merge *m, const struct profile_location *from)
{
	int64_t mapping = mapping_of(m, from->mapping_id), number;

	if (mapping < 0)
		return mapping;
	buf_reset(&m->lines);
	for (size_t i = 0; i < from->line_count; i++) {
		struct profile_line line = from->lines[i];
		int64_t function = function_of(m, line.function_id);

		if (function < 0)
			return function;
		line.function_id = (uint32_t)function;
		buf_put(&m->lines, &line, sizeof(line));
	}
	if (buf_error(&m->lines))
		return -ENOMEM;
	number = profile_add_location(m->dst, (uint32_t)mapping, from->address,
				      (const struct profile_line *)m->lines.data, from->line_count);
	if (number > 0)
		m->dst->locations[number - 1].is_folded |= from->is_folded;
	return number;
}

static int64_t location_of(struct merge *m, uint32_t id)
{
	int64_t number = m->locations[id];

	if (number)
		return number;
	number = add_location(m, &m->src->locations[id - 1]);
	if (number > 0)
		m->locations[id] = (uint32_t)number;
	return number;
}

static bool is_kept(const struct merge *m, const struct profile_label *label)
{
	return !m->some_labels ||
	       strcmp(profile_text(m->src, label->key), m->keep_label) == 0;
}

static int add_sample(struct merge *m, const struct profile_sample *sample)
{
	buf_reset(&m->stack);
	buf_reset(&m->labels);
	for (size_t i = 0; i < sample->location_count; i++) {
		int64_t number = location_of(m, sample->locations[i]);
		uint32_t id = (uint32_t)number;

		if (number < 0)
			return -ENOMEM;
		buf_put(&m->stack, &id, sizeof(id));
	}
	for (size_t i = 0; i < sample->label_count; i++) {
		struct profile_label label = sample->labels[i];

		if (!is_kept(m, &label))
			continue;
		if (!translate_string(m, &label.key) || !translate_string(m, &label.str) ||
		    !translate_string(m, &label.unit))
			return -ENOMEM;
		buf_put(&m->labels, &label, sizeof(label));
	}
	if (buf_error(&m->stack) || buf_error(&m->labels))
		return -ENOMEM;
	return profile_add_sample(m->dst, (const uint32_t *)m->stack.data, sample->location_count,
				  sample->values, (const struct profile_label *)m->labels.data,
				  m->labels.len / sizeof(struct profile_label));
}

/* ---- what the samples mean ---- */

static bool same_type(const struct profile *a, struct profile_type left, const struct profile *b,
		      struct profile_type right)
{
	return strcmp(profile_text(a, left.type), profile_text(b, right.type)) == 0 &&
	       strcmp(profile_text(a, left.unit), profile_text(b, right.unit)) == 0;
}

bool profile_same_types(const struct profile *a, const struct profile *b)
{
	if (a->type_count != b->type_count || !same_type(a, a->period_type, b, b->period_type))
		return false;
	for (size_t i = 0; i < a->type_count; i++) {
		if (!same_type(a, a->types[i], b, b->types[i]))
			return false;
	}
	return true;
}

static int take_types(struct merge *m)
{
	const struct profile *src = m->src;
	struct profile_type period_type = src->period_type;

	for (size_t i = 0; i < src->type_count; i++) {
		if (profile_add_type(m->dst, profile_text(src, src->types[i].type),
				     profile_text(src, src->types[i].unit)) < 0)
			return -ENOMEM;
	}
	if (!translate_string(m, &period_type.type) || !translate_string(m, &period_type.unit))
		return -ENOMEM;
	m->dst->period_type = period_type;
	return 0;
}

static int64_t add_saturated(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* From the earlier start to the later end; a profile without a time has nothing to say. */
static void join_times(struct profile *dst, const struct profile *src)
{
	int64_t dst_end = add_saturated(dst->time_ns, dst->duration_ns);
	int64_t src_end = add_saturated(src->time_ns, src->duration_ns);
	int64_t start = src->time_ns < dst->time_ns ? src->time_ns : dst->time_ns;
	int64_t end = src_end > dst_end ? src_end : dst_end;

	if (src->time_ns <= 0)
		return;
	if (dst->time_ns <= 0) {
		dst->time_ns = src->time_ns;
		dst->duration_ns = src->duration_ns;
		return;
	}
	dst->time_ns = start;
	dst->duration_ns = end - start;
}

/* The longest period, as pprof does: no sample is claimed to be finer than it was. */
static int join_header(struct merge *m)
{
	struct profile *dst = m->dst;
	uint32_t default_type = m->src->default_type;

	if (dst->type_count == 0 && take_types(m))
		return -ENOMEM;
	if (dst->default_type == 0) {
		if (!translate_string(m, &default_type))
			return -ENOMEM;
		dst->default_type = default_type;
	}
	if (m->src->period > dst->period)
		dst->period = m->src->period;
	join_times(dst, m->src);
	return 0;
}

/* ---- comments ---- */

/* The length of a counter's name and its value; 0 if the line is no counter. */
static size_t parse_counter(const char *text, uint64_t *ret_value)
{
	const char *equals = strrchr(text, '=');
	size_t len = equals ? (size_t)(equals - text) : 0;

	if (len < sizeof(COUNTER_PREFIX) ||
	    strncmp(text, COUNTER_PREFIX, strlen(COUNTER_PREFIX)) != 0)
		return 0;
	return parse_u64(equals + 1, 10, ret_value) ? 0 : len;
}

/*
 * The number of what makes a comment the same as another: a counter's name, else the line. No
 * clean text begins with a control byte, so the two kinds do not meet.
 */
static int64_t comment_key(struct strtab *keys, const char *text)
{
	uint64_t value;
	size_t len = parse_counter(text, &value);
	struct buf key;
	int64_t number;

	if (!len)
		return strtab_add(keys, text, strlen(text));
	buf_init(&key, SIZE_MAX / 2);
	buf_put_byte(&key, '\001');
	buf_put(&key, text, len);
	number = buf_error(&key) ? -ENOMEM : strtab_add(keys, (const char *)key.data, key.len);
	buf_fini(&key);
	return number;
}

static int add_to_counter(struct profile *dst, uint32_t *comment, const char *text)
{
	uint64_t have, more;
	size_t len = parse_counter(text, &more);
	struct buf sum;
	int64_t string;

	if (!len || more == 0 || !parse_counter(profile_text(dst, *comment), &have))
		return 0;
	if (__builtin_add_overflow(have, more, &have))
		have = UINT64_MAX;
	buf_init(&sum, SIZE_MAX / 2);
	buf_put(&sum, text, len);
	buf_printf(&sum, "=%" PRIu64, have);
	string = buf_error(&sum) ? -ENOMEM : profile_string_n(dst, (const char *)sum.data, sum.len);
	buf_fini(&sum);
	if (string < 0)
		return -ENOMEM;
	*comment = (uint32_t)string;
	return 0;
}

/* at[key]: the comment of dst with that key, plus one. */
static int join_comment(struct profile *dst, struct strtab *keys, uint32_t *at, const char *text)
{
	int64_t key = comment_key(keys, text);

	if (key < 0)
		return -ENOMEM;
	if (at[key])
		return add_to_counter(dst, &dst->comments[at[key] - 1], text);
	if (profile_add_comment(dst, "%s", text))
		return -ENOMEM;
	at[key] = (uint32_t)dst->comment_count;
	return 0;
}

/* Comments are few (some tens), so the index of those of dst is made anew each time. */
static int join_comments(struct profile *dst, const struct profile *src)
{
	struct strtab keys = { 0 };
	uint32_t *at = calloc(dst->comment_count + src->comment_count + 1, sizeof(*at));
	int err = at ? strtab_init(&keys, SIZE_MAX / 2) : -ENOMEM;

	for (size_t i = 0; !err && i < dst->comment_count; i++) {
		int64_t key = comment_key(&keys, profile_text(dst, dst->comments[i]));

		if (key < 0)
			err = -ENOMEM;
		else if (!at[key])
			at[key] = (uint32_t)i + 1;
	}
	for (size_t i = 0; !err && i < src->comment_count; i++)
		err = join_comment(dst, &keys, at, profile_text(src, src->comments[i]));
	strtab_fini(&keys);
	free(at);
	return err;
}

int profile_merge(struct profile *dst, const struct profile *src)
{
	struct merge m;
	int err;

	if (dst->type_count && !profile_same_types(dst, src))
		return -EINVAL;
	err = merge_init(&m, dst, src);
	if (!err)
		err = join_header(&m);
	for (size_t i = 0; !err && i < src->sample_count; i++)
		err = add_sample(&m, &src->samples[i]);
	if (!err)
		err = join_comments(dst, src);
	merge_fini(&m);
	return err;
}

int profile_extract(const struct profile *src, const uint32_t *samples, size_t count,
		    const char *keep_label, size_t max_bytes, struct profile **ret_profile)
{
	struct profile *p;
	struct merge m;
	int err = profile_new(max_bytes, &p);

	if (err)
		return err;
	err = merge_init(&m, p, src);
	m.some_labels = keep_label != PROFILE_ALL_LABELS;
	m.keep_label = keep_label;
	if (!err)
		err = join_header(&m);
	for (size_t i = 0; !err && i < count; i++)
		err = add_sample(&m, &src->samples[samples[i]]);
	merge_fini(&m);
	if (err)
		err = err == -ENOMEM && p->full ? -EFBIG : err;
	if (err)
		profile_free(p);
	else
		*ret_profile = p;
	return err;
}
