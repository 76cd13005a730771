/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Printing call trees in the shape of perf report --stdio -g graph: percentages are of the
 * file's total, a run of frames without a fork is one branch, branches under the threshold are
 * summed in the last line.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report_private.h"
#include "cli/report_tree.h"

enum {
	LEFT_MARGIN = 12,
	MAX_FORKS = 64, /* branches inside branches; bounds recursion and the width of lines */
};

struct printer {
	const struct report *r;
	struct report_trees *t;
	struct buf *out;
	struct buf prefix; /* what is left of the branch being printed */
	size_t forks;
};

/* Stacks of one row that are equal up to here, and how many frames that is. */
struct part {
	struct report_item *items;
	size_t count;
	size_t level;
};

struct branch {
	uint32_t text;
	uint32_t number; /* in order of arrival */
	int64_t total;
	size_t count;
	size_t start; /* in the part, once it is split */
};

struct fork {
	struct branch *branches;
	size_t count, cap;
};

/* How many frames the item has from this level on. */
static size_t frames_left(const struct report_trees *t, const struct report_item *item,
			  size_t level)
{
	size_t len = t->texts_start[item->sample + 1] - t->texts_start[item->sample];
	size_t all = t->caller ? item->at + 1 : len - item->at;

	return level < all ? all - level : 0;
}

/* The item's frame at a level it has; the next one is at [-1] in caller order, else at [1]. */
static const uint32_t *frame_at(const struct report_trees *t, const struct report_item *item,
				size_t level)
{
	const uint32_t *leaf = t->texts + t->texts_start[item->sample];

	return leaf + (t->caller ? item->at - level : item->at + level);
}

/*
 * How many frames from its level on all stacks of the part share. One stack after the other,
 * not one frame after the other: that is how they lie in memory.
 */
static size_t shared_frames(const struct report_trees *t, const struct part *part)
{
	size_t run = frames_left(t, &part->items[0], part->level);
	ptrdiff_t step = t->caller ? -1 : 1;

	for (size_t i = 1; i < part->count && run; i++) {
		size_t left = frames_left(t, &part->items[i], part->level), same = 0;
		const uint32_t *first, *other;

		if (left < run)
			run = left;
		if (!run)
			break;
		first = frame_at(t, &part->items[0], part->level);
		other = frame_at(t, &part->items[i], part->level);
		while (same < run && first[step * (ptrdiff_t)same] == other[step * (ptrdiff_t)same])
			same++;
		run = same;
	}
	return run;
}

static int new_branch(struct fork *f, uint32_t text)
{
	if (f->count == f->cap) {
		size_t cap = f->cap ? f->cap * 2 : 8;
		struct branch *bigger = reallocarray(f->branches, cap, sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		f->branches = bigger;
		f->cap = cap;
	}
	f->branches[f->count] = (struct branch){ .text = text, .number = (uint32_t)f->count };
	f->count++;
	return 0;
}

static int find_branch(struct printer *pr, struct fork *f, uint32_t text, uint32_t *ret_number)
{
	uint32_t *slot;
	int got = map_add(&pr->t->numbers, &text, &slot);

	if (got < 0 || (got == 1 && new_branch(f, text)))
		return -ENOMEM;
	if (got == 1)
		*slot = (uint32_t)f->count - 1;
	*ret_number = *slot;
	return 0;
}

/* Sums the part by next frame; stacks that have none are in no branch. */
static int sum_branches(struct printer *pr, const struct part *part, struct fork *f)
{
	const struct report *r = pr->r;
	uint32_t number = 0, text;

	map_clear(&pr->t->numbers);
	for (size_t i = 0; i < part->count; i++) {
		const struct report_item *item = &part->items[i];

		if (!frames_left(pr->t, item, part->level))
			continue;
		text = *frame_at(pr->t, item, part->level);
		if ((f->count == 0 || f->branches[number].text != text) &&
		    find_branch(pr, f, text, &number))
			return -ENOMEM;
		f->branches[number].count++;
		f->branches[number].total = report_add(f->branches[number].total,
						       r->p->samples[item->sample].values[r->type]);
	}
	return 0;
}

static int compare_branches(const void *a, const void *b, void *context)
{
	const struct branch *left = a, *right = b;

	if (left->total != right->total)
		return left->total < right->total ? 1 : -1;
	return strcmp(report_text(context, left->text), report_text(context, right->text));
}

/* Sorts the branches, and the items of the part into the same order; ended ones go last. */
static int split(struct printer *pr, const struct part *part, struct fork *f)
{
	size_t *next = calloc(f->count + 1, sizeof(*next)), at = 0;
	const uint32_t *number;

	if (!next)
		return -ENOMEM;
	qsort_r(f->branches, f->count, sizeof(*f->branches), compare_branches, (void *)pr->r);
	for (size_t i = 0; i < f->count; i++) {
		f->branches[i].start = next[f->branches[i].number] = at;
		at += f->branches[i].count;
	}
	for (size_t i = 0; i < part->count; i++) {
		const struct report_item *item = &part->items[i];

		if (frames_left(pr->t, item, part->level)) {
			number = map_find(&pr->t->numbers, frame_at(pr->t, item, part->level));
			pr->t->spare[next[*number]++] = *item;
		} else {
			pr->t->spare[at++] = *item;
		}
	}
	memcpy(part->items, pr->t->spare, part->count * sizeof(*part->items));
	free(next);
	return 0;
}

static void put_prefix(struct printer *pr)
{
	buf_put(pr->out, pr->prefix.data, pr->prefix.len);
}

static void print_bar(struct printer *pr)
{
	put_prefix(pr);
	buf_put_str(pr->out, "|\n");
}

static int print_part(struct printer *pr, struct part part);

static int print_branch(struct printer *pr, const struct part *part, const struct branch *branch,
			bool last)
{
	struct part below = { part->items + branch->start, branch->count, part->level + 1 };
	size_t len = pr->prefix.len;
	int err;

	print_bar(pr);
	put_prefix(pr);
	buf_printf(pr->out, "%s%.2f%%--%s\n", last ? " --" : "|--",
		   report_percent(pr->r, branch->total), report_text(pr->r, branch->text));
	buf_put_str(&pr->prefix, last ? "           " : "|          ");
	pr->forks++;
	err = print_part(pr, below);
	pr->forks--;
	pr->prefix.len = len;
	return err;
}

static int print_fork(struct printer *pr, const struct part *part, struct fork *f)
{
	size_t shown = 0;
	int64_t rest = 0;
	int err = split(pr, part, f);

	while (!err && shown < f->count && pr->forks < MAX_FORKS &&
	       report_percent(pr->r, f->branches[shown].total) >= pr->t->min_percent)
		shown++;
	for (size_t i = 0; i < shown && !err; i++)
		err = print_branch(pr, part, &f->branches[i], i + 1 == f->count);
	for (size_t i = shown; i < f->count; i++)
		rest = report_add(rest, f->branches[i].total);
	if (err || shown == f->count)
		return err;
	print_bar(pr);
	put_prefix(pr);
	buf_printf(pr->out, " --%.2f%%--[%zu more]\n", report_percent(pr->r, rest),
		   f->count - shown);
	return 0;
}

static void print_shared(struct printer *pr, const struct part *part, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t level = part->level + i;

		if (level == 0)
			print_bar(pr);
		put_prefix(pr);
		buf_printf(pr->out, "%s%s\n", level ? "" : "---",
			   report_text(pr->r, *frame_at(pr->t, &part->items[0], level)));
		if (level == 0)
			buf_put_str(&pr->prefix, "   ");
	}
}

/* The frames that all stacks of the part share, one a line, then the fork. */
static int print_part(struct printer *pr, struct part part)
{
	size_t shared = shared_frames(pr->t, &part);
	struct fork f = { 0 };
	int err;

	print_shared(pr, &part, shared);
	part.level += shared;
	err = sum_branches(pr, &part, &f);
	if (!err && f.count)
		err = print_fork(pr, &part, &f);
	free(f.branches);
	return err;
}

void report_trees_print(const struct report *r, size_t row, struct buf *out)
{
	struct report_trees *t = r->trees;
	struct printer pr = { .r = r, .t = t, .out = out };
	size_t start;
	int err;

	if (!t || row >= t->row_count)
		return;
	start = report_items_start(t, row);
	buf_init(&pr.prefix, SIZE_MAX / 4);
	buf_printf(&pr.prefix, "%*s", LEFT_MARGIN, "");
	err = print_part(&pr, (struct part){ t->items + start, t->items_end[row] - start, 0 });
	buf_put_byte(out, '\n');
	if (err || buf_error(&pr.prefix))
		out->err = -ENOMEM;
	buf_fini(&pr.prefix);
}
