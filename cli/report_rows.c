/* SPDX-License-Identifier: Apache-2.0 */
/* From samples to rows: filters, hash aggregation, order. Linear in the frames of the file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report_private.h"

static bool item_matches(const char *item, size_t len, const char *text)
{
	if (len && item[len - 1] == '*')
		return strncmp(item, text, len - 1) == 0;
	return strlen(text) == len && strncmp(item, text, len) == 0;
}

/* The list as a whole is tried as well: names of C++ functions have commas in them. */
bool report_matches(const char *list, const char *text)
{
	if (!list || item_matches(list, strlen(list), text))
		return true;
	for (;;) {
		size_t len = strcspn(list, ",");

		if (item_matches(list, len, text))
			return true;
		if (!list[len])
			return false;
		list += len + 1;
	}
}

static bool label_passes(struct report *r, const struct profile_sample *sample, uint32_t label,
			 const char *list)
{
	int64_t text;

	if (!list)
		return true;
	text = report_label_text(r, sample, label);
	return text >= 0 && report_matches(list, report_text(r, (uint32_t)text));
}

static bool labels_pass(struct report *r, const struct profile_sample *sample)
{
	return label_passes(r, sample, r->comm_label, r->options->comm) &&
	       label_passes(r, sample, r->pid_label, r->options->pid);
}

static bool frame_passes(const struct report *r, const struct report_frame *frame)
{
	return report_matches(r->options->dso, report_text(r, frame->dso)) &&
	       report_matches(r->options->sym, report_text(r, frame->name));
}

bool report_sample_passes(struct report *r, const struct profile_sample *sample)
{
	uint32_t leaf = sample->location_count ? r->first_frame[sample->locations[0] - 1] : 0;

	return labels_pass(r, sample) && frame_passes(r, &r->frames[leaf]);
}

static int build_chain(struct report *r, const struct profile_sample *sample)
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

static int fill_label_cells(struct report *r, const struct profile_sample *sample,
			    uint32_t cells[REPORT_MAX_KEYS])
{
	for (size_t i = 0; i < r->key_count; i++) {
		int64_t text;

		if (!r->keys[i]->label)
			continue;
		text = report_label_text(r, sample, r->key_labels[i]);
		if (text < 0)
			return -ENOMEM;
		cells[i] = (uint32_t)text;
	}
	return 0;
}

static void fill_frame_cells(const struct report *r, const struct report_frame *frame,
			     uint32_t cells[REPORT_MAX_KEYS])
{
	for (size_t i = 0; i < r->key_count; i++) {
		const struct report_key *key = r->keys[i];

		if (!key->label)
			memcpy(&cells[i], (const uint8_t *)frame + key->frame_field,
			       sizeof(cells[i]));
	}
}

static int find_row(struct report *r, const uint32_t cells[REPORT_MAX_KEYS], uint32_t *ret_row)
{
	uint32_t *slot;
	int got = map_add(&r->row_index, cells, &slot);

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
	r->rows[r->row_count] = (struct report_row){ 0 };
	memcpy(r->rows[r->row_count++].cells, cells, sizeof(r->rows->cells));
	return 0;
}

/*
 * The position of step `i` of a walk over a stack. The leaf comes first, as it carries the
 * self value. Then, since the first meeting of a row counts: for callee trees from the leaf
 * outwards, for caller trees from the outermost frame inwards, so that recursion is all shown.
 */
static size_t position(const struct report *r, size_t i, size_t len)
{
	bool inwards = r->options->call_graph && strcmp(r->options->call_graph, "caller") == 0;

	return i == 0 || !inwards ? i : len - i;
}

static int walk_stack(struct report *r, uint32_t cells[REPORT_MAX_KEYS], struct report_visit *at,
		      int (*visit)(struct report *, uint32_t, const struct report_visit *))
{
	size_t steps = r->options->children ? at->len : 1;

	r->stamp++;
	for (size_t i = 0; i < steps; i++) {
		const struct report_frame *frame;
		uint32_t row;

		at->at = position(r, i, at->len);
		frame = &r->frames[at->chain[at->at]];
		if (!frame_passes(r, frame))
			continue;
		fill_frame_cells(r, frame, cells);
		if (find_row(r, cells, &row))
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
		uint32_t cells[REPORT_MAX_KEYS] = { 0 };
		struct report_visit at = { .value = sample->values[r->type] };

		if (r->samples_type != REPORT_NO_TYPE)
			at.samples = sample->values[r->samples_type];
		if ((!at.value && !at.samples) || !labels_pass(r, sample))
			continue;
		if (build_chain(r, sample) || fill_label_cells(r, sample, cells))
			return -ENOMEM;
		at.chain = (const uint32_t *)r->chain.data;
		at.len = r->chain.len / sizeof(uint32_t);
		if (walk_stack(r, cells, &at, visit))
			return -ENOMEM;
	}
	return 0;
}

static int count_visit(struct report *r, uint32_t row_number, const struct report_visit *visit)
{
	struct report_row *row = &r->rows[row_number];

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
	for (size_t i = 0; i < r->key_count && !order; i++) {
		if (left->cells[i] != right->cells[i])
			order = strcmp(report_text(r, left->cells[i]),
				       report_text(r, right->cells[i]));
	}
	return order;
}

/* Sorting moves rows, so the index is filled anew. */
static int sort_rows(struct report *r)
{
	qsort_r(r->rows, r->row_count, sizeof(*r->rows), compare_rows, r);
	map_clear(&r->row_index);
	for (size_t i = 0; i < r->row_count; i++) {
		uint32_t *slot;

		if (map_add(&r->row_index, r->rows[i].cells, &slot) < 0)
			return -ENOMEM;
		*slot = (uint32_t)i;
	}
	return 0;
}

int report_rows_build(struct report *r)
{
	int err;

	map_init(&r->row_index, sizeof(r->rows->cells), sizeof(uint32_t), UINT32_MAX);
	sum_totals(r);
	err = report_walk(r, count_visit);
	if (err || r->row_count == 0)
		return err;
	return sort_rows(r);
}
