/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of labels and classes of frames (see report_private.h), with the filters applied where
 * they are made: once per distinct labels and once per frame, not once per sample.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report_private.h"

/* A label's value as it is in the file; no padding. */
struct raw_label {
	int64_t num;
	uint32_t str;
	uint32_t present;
};

static bool item_matches(const char *item, size_t len, const char *text, bool prefix)
{
	if (len && item[len - 1] == '*')
		return strncmp(item, text, len - 1) == 0;
	if (prefix && len)
		return strncmp(item, text, len) == 0;
	return strlen(text) == len && strncmp(item, text, len) == 0;
}

/* The list as a whole is tried as well: names of C++ functions have commas in them. */
bool report_matches(const char *list, const char *text, bool prefix)
{
	if (!list || item_matches(list, strlen(list), text, prefix))
		return true;
	for (;;) {
		size_t len = strcspn(list, ",");

		if (item_matches(list, len, text, prefix))
			return true;
		if (!list[len])
			return false;
		list += len + 1;
	}
}

static int set_init(struct report_set *set)
{
	map_init(&set->index, sizeof(struct report_cells), sizeof(uint32_t), UINT32_MAX);
	set->cap = 64;
	set->cells = calloc(set->cap, sizeof(*set->cells));
	set->count = 1; /* 0: refused */
	return set->cells ? 0 : -ENOMEM;
}

static void set_fini(struct report_set *set)
{
	if (set->index.key_size)
		map_fini(&set->index);
	free(set->cells);
}

static int64_t set_add(struct report_set *set, const struct report_cells *cells)
{
	uint32_t *slot;
	int got = map_add(&set->index, cells, &slot);

	if (got < 0)
		return -ENOMEM;
	if (got == 0)
		return *slot;
	*slot = (uint32_t)set->count;
	if (set->count == set->cap) {
		struct report_cells *bigger =
			reallocarray(set->cells, set->cap * 2, sizeof(*set->cells));

		if (!bigger)
			return -ENOMEM;
		set->cells = bigger;
		set->cap *= 2;
	}
	set->cells[set->count] = *cells;
	return (int64_t)set->count++;
}

static int64_t class_of(struct report *r, const struct report_frame *frame)
{
	struct report_cells cells = { 0 };

	if (!report_matches(r->options->dso, report_text(r, frame->dso), false) ||
	    !report_matches(r->options->sym, report_text(r, frame->name), false))
		return 0;
	for (size_t i = 0; i < r->key_count; i++) {
		if (!r->keys[i]->label)
			memcpy(&cells.text[i], (const uint8_t *)frame + r->keys[i]->frame_field,
			       sizeof(cells.text[i]));
	}
	return set_add(&r->classes, &cells);
}

int report_groups_init(struct report *r)
{
	map_init(&r->group_of_labels, sizeof(struct raw_label) * (r->label_count + 1),
		 sizeof(uint32_t), UINT32_MAX);
	r->frame_class = calloc(r->frame_count, sizeof(*r->frame_class));
	if (set_init(&r->groups) || set_init(&r->classes) || !r->frame_class)
		return -ENOMEM;
	for (size_t i = 0; i < r->frame_count; i++) {
		int64_t class = class_of(r, &r->frames[i]);

		if (class < 0)
			return -ENOMEM;
		r->frame_class[i] = (uint32_t)class;
	}
	return 0;
}

void report_groups_fini(struct report *r)
{
	set_fini(&r->groups);
	set_fini(&r->classes);
	if (r->group_of_labels.key_size)
		map_fini(&r->group_of_labels);
	free(r->frame_class);
}

static void read_labels(const struct report *r, const struct profile_sample *sample,
			struct raw_label *raw)
{
	for (size_t i = 0; i < r->label_count; i++) {
		for (size_t j = 0; j < sample->label_count && !raw[i].present; j++) {
			const struct profile_label *label = &sample->labels[j];

			if (label->key == r->labels[i].key)
				raw[i] = (struct raw_label){ label->num, label->str, 1 };
		}
	}
}

static int64_t label_text(struct report *r, const struct raw_label *raw)
{
	char number[32];
	const char *text = number;

	if (!raw->present)
		text = "-";
	else if (raw->str)
		text = profile_text(r->p, raw->str);
	else
		snprintf(number, sizeof(number), "%lld", (long long)raw->num);
	return strtab_add(&r->texts, text, strlen(text));
}

static int64_t make_group(struct report *r, const struct raw_label *raw)
{
	struct report_cells cells = { 0 };

	for (size_t i = 0; i < r->label_count; i++) {
		int64_t text = label_text(r, &raw[i]);

		if (text < 0)
			return -ENOMEM;
		if (!report_matches(r->labels[i].filter, report_text(r, (uint32_t)text),
				    r->labels[i].prefix))
			return 0;
		if (r->labels[i].cell >= 0)
			cells.text[r->labels[i].cell] = (uint32_t)text;
	}
	return set_add(&r->groups, &cells);
}

int64_t report_group_find(struct report *r, const struct profile_sample *sample)
{
	struct raw_label raw[REPORT_MAX_KEYS + REPORT_MAX_FILTERS] = { 0 };
	uint32_t *slot;
	int64_t group;
	int got;

	read_labels(r, sample, raw);
	got = map_add(&r->group_of_labels, raw, &slot);
	if (got < 0)
		return -ENOMEM;
	if (got == 0)
		return *slot;
	group = make_group(r, raw);
	if (group >= 0)
		*slot = (uint32_t)group;
	return group;
}
