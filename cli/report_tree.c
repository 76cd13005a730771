/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call trees under the rows of `sonde report`: the stacks of each row.
 *
 * No tree is ever built. A row has a list of the stacks that count for it; printing splits the
 * list by the next frame and goes on only with parts over the threshold. So memory is that of
 * the stacks, and what is not printed is not looked at.
 *
 * What a row's tree shows: in callee order, from the row's frame to its callers. In caller
 * order, from the row's frame inwards; but for a row that never called anything that would be
 * nothing, so there the whole stacks, from the outermost frame.
 */
#include "cli/report_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report_private.h"

static const double MIN_PERCENT = 0.5; /* perf's */

static int allocate_stacks(struct report *r, struct report_trees *t)
{
	const struct profile *p = r->p;
	size_t count = 0;

	t->texts_start = calloc(p->sample_count + 1, sizeof(*t->texts_start));
	if (!t->texts_start)
		return -ENOMEM;
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *sample = &p->samples[i];
		size_t len = sample->location_count ? 0 : 1;

		for (size_t j = 0; j < sample->location_count; j++)
			len += r->first_frame[sample->locations[j]] -
			       r->first_frame[sample->locations[j] - 1];
		if (len > UINT32_MAX)
			return -ENOMEM;
		count += len;
		t->texts_start[i + 1] = count;
	}
	t->texts = reallocarray(NULL, count + 1, sizeof(*t->texts));
	return t->texts ? 0 : -ENOMEM;
}

static int copy_stacks(struct report *r, struct report_trees *t)
{
	int err = allocate_stacks(r, t);

	for (size_t i = 0; i < r->p->sample_count && !err; i++) {
		const uint32_t *chain;

		err = report_chain_build(r, &r->p->samples[i]);
		if (err)
			break;
		chain = (const uint32_t *)r->chain.data;
		for (size_t at = t->texts_start[i]; at < t->texts_start[i + 1]; at++)
			t->texts[at] = r->frames[*chain++].text;
	}
	return err;
}

static int allocate_items(struct report *r, struct report_trees *t)
{
	size_t count = 0, largest = 0;

	t->items_end = calloc(t->row_count + 1, sizeof(*t->items_end));
	if (!t->items_end)
		return -ENOMEM;
	/* Until filled, the end of a row is its start. */
	for (size_t i = 0; i < t->row_count; i++) {
		t->items_end[i] = count;
		count += r->rows[i].stacks;
		largest = r->rows[i].stacks > largest ? r->rows[i].stacks : largest;
	}
	t->items = reallocarray(NULL, count + 1, sizeof(*t->items));
	t->spare = reallocarray(NULL, largest + 1, sizeof(*t->spare));
	return t->items && t->spare ? 0 : -ENOMEM;
}

static int add_item(struct report *r, uint32_t row, const struct report_visit *visit)
{
	struct report_trees *t = r->trees;
	struct report_item item = { (uint32_t)visit->sample, (uint32_t)visit->at };

	if (row >= t->row_count)
		return 0;
	if (t->caller && r->rows[row].self == r->rows[row].total)
		item.at = (uint32_t)visit->len - 1;
	t->items[t->items_end[row]++] = item;
	return 0;
}

int report_trees_build(struct report *r, size_t row_count)
{
	struct report_trees *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	r->trees = t;
	map_init(&t->numbers, sizeof(uint32_t), sizeof(uint32_t), UINT32_MAX);
	t->min_percent = r->options->percent_limit > 0 ? r->options->percent_limit : MIN_PERCENT;
	t->caller = strcmp(r->options->call_graph, "caller") == 0;
	/* A row below the threshold has no branch over it. */
	while (t->row_count < row_count &&
	       report_percent(r, report_row_value(r, &r->rows[t->row_count])) >= t->min_percent)
		t->row_count++;
	err = copy_stacks(r, t);
	if (!err)
		err = allocate_items(r, t);
	return err ? err : report_walk(r, add_item);
}

void report_trees_free(struct report_trees *t)
{
	if (!t)
		return;
	free(t->texts);
	free(t->texts_start);
	free(t->items);
	free(t->spare);
	free(t->items_end);
	map_fini(&t->numbers);
	free(t);
}
