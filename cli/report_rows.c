/* SPDX-License-Identifier: Apache-2.0 */
/* From samples to rows: hash aggregation, totals, order. Linear in the frames of the file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report_private.h"

struct row_key {
	uint32_t group, class;
};

int report_chain_build(struct report *r, const struct profile_sample *sample)
{
	static const uint32_t empty_stack = 0;

	buf_reset(&r->chain);
	for (size_t i = 0; i < sample->location_count; i++) {
		size_t location = sample->locations[i] - 1;
		uint32_t end = r->first_frame[location + 1];

		for (uint32_t frame = r->first_frame[location]; frame < end; frame++)
			buf_put(&r->chain, &frame, sizeof(frame));
	}
	if (sample->location_count == 0)
		buf_put(&r->chain, &empty_stack, sizeof(empty_stack));
	return buf_error(&r->chain) ? -ENOMEM : 0;
}

static int find_row(struct report *r, struct row_key key, uint32_t *ret_row)
{
	uint32_t *slot;
	int got = map_add(&r->row_index, &key, &slot);

	if (got < 0)
		return -ENOMEM;
	if (got == 0) {
		*ret_row = *slot;
		return 0;
	}
	if (r->row_count == r->row_cap) {
		size_t cap = r->row_cap ? r->row_cap * 2 : 256;
		struct report_row *rows = reallocarray(r->rows, cap, sizeof(*rows));

		if (!rows)
			return -ENOMEM;
		r->rows = rows;
		r->row_cap = cap;
	}
	*slot = *ret_row = (uint32_t)r->row_count;
	r->rows[r->row_count++] = (struct report_row){ .group = key.group, .class = key.class };
	return 0;
}

/*
 * The position of step `i` of a walk over a stack. The leaf comes first, as it carries the
 * self value. Then, since the first meeting of a row counts: for callee trees from the leaf
 * outwards, for caller trees from the outermost frame inwards, so that recursion is all shown.
 */
static size_t position(bool inwards, size_t i, size_t len)
{
	return i == 0 || !inwards ? i : len - i;
}

static int walk_stack(struct report *r, uint32_t group, struct report_visit *at,
		      int (*visit)(struct report *, uint32_t, const struct report_visit *))
{
	const uint32_t *chain = (const uint32_t *)r->chain.data;
	const char *order = r->options->call_graph;
	bool inwards = order && strcmp(order, "caller") == 0;
	size_t steps = r->options->children ? at->len : 1;

	r->stamp++;
	for (size_t i = 0; i < steps; i++) {
		struct row_key key = { .group = group };
		uint32_t row;

		at->at = position(inwards, i, at->len);
		key.class = r->frame_class[chain[at->at]];
		if (!key.class)
			continue;
		if (find_row(r, key, &row))
			return -ENOMEM;
		if (r->rows[row].stamp == r->stamp)
			continue;
		r->rows[row].stamp = r->stamp;
		if (visit(r, row, at))
			return -ENOMEM;
	}
	return 0;
}

int report_walk(struct report *r,
		int (*visit)(struct report *, uint32_t, const struct report_visit *))
{
	for (size_t i = 0; i < r->p->sample_count; i++) {
		const struct profile_sample *sample = &r->p->samples[i];
		struct report_visit at = { .sample = i, .value = sample->values[r->type] };
		int64_t group;

		if (r->samples_type != REPORT_NO_TYPE)
			at.samples = sample->values[r->samples_type];
		if (!at.value && !at.samples)
			continue;
		group = report_group_find(r, sample);
		if (group == 0)
			continue;
		if (group < 0 || report_chain_build(r, sample))
			return -ENOMEM;
		at.len = r->chain.len / sizeof(uint32_t);
		if (walk_stack(r, (uint32_t)group, &at, visit))
			return -ENOMEM;
	}
	return 0;
}

static int count_visit(struct report *r, uint32_t row_number, const struct report_visit *visit)
{
	struct report_row *row = &r->rows[row_number];

	row->stacks++;
	row->total = report_add(row->total, visit->value);
	if (visit->at == 0) {
		row->self = report_add(row->self, visit->value);
		row->self_samples = report_add(row->self_samples, visit->samples);
	}
	if (r->shown_stamp != r->stamp) {
		r->shown_stamp = r->stamp;
		r->shown = report_add(r->shown, visit->value);
		r->shown_samples = report_add(r->shown_samples, visit->samples);
	}
	return 0;
}

static void sum_totals(struct report *r)
{
	for (size_t i = 0; i < r->p->sample_count; i++) {
		const struct profile_sample *sample = &r->p->samples[i];

		r->total = report_add(r->total, sample->values[r->type]);
		if (r->samples_type != REPORT_NO_TYPE)
			r->total_samples = report_add(r->total_samples,
						      sample->values[r->samples_type]);
	}
}

int64_t report_row_value(const struct report *r, const struct report_row *row)
{
	return r->options->children ? row->total : row->self;
}

double report_percent(const struct report *r, int64_t value)
{
	return r->total ? 100.0 * (double)value / (double)r->total : 0;
}

/* Largest first; equal ones by their texts, so that output does not depend on hashing. */
static int compare_rows(const void *a, const void *b, void *context)
{
	const struct report_row *left = a, *right = b;
	const struct report *r = context;
	int64_t left_value = report_row_value(r, left), right_value = report_row_value(r, right);
	int order = 0;

	if (left_value != right_value)
		return left_value < right_value ? 1 : -1;
	if (left->self != right->self)
		return left->self < right->self ? 1 : -1;
	for (size_t i = 0; i < r->key_count && !order; i++)
		order = strcmp(report_cell(r, left, i), report_cell(r, right, i));
	return order;
}

/* Sorting moves rows, so the index is filled anew. */
static int sort_rows(struct report *r)
{
	qsort_r(r->rows, r->row_count, sizeof(*r->rows), compare_rows, r);
	map_clear(&r->row_index);
	for (size_t i = 0; i < r->row_count; i++) {
		struct row_key key = { r->rows[i].group, r->rows[i].class };
		uint32_t *slot;

		if (map_add(&r->row_index, &key, &slot) < 0)
			return -ENOMEM;
		*slot = (uint32_t)i;
	}
	return 0;
}

int report_rows_build(struct report *r)
{
	int err;

	map_init(&r->row_index, sizeof(struct row_key), sizeof(uint32_t), UINT32_MAX);
	sum_totals(r);
	err = report_walk(r, count_visit);
	return err || r->row_count == 0 ? err : sort_rows(r);
}
