/* SPDX-License-Identifier: Apache-2.0 */
/* First-fit allocation of runs; see extents.h. */
#include "agent/collect/extents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int insert(struct extents *e, size_t at, struct extent run)
{
	if (e->free_count == e->cap) {
		size_t cap = e->cap ? e->cap * 2 : 16;
		struct extent *runs = reallocarray(e->free, cap, sizeof(*runs));

		if (!runs)
			return -ENOMEM;
		e->free = runs;
		e->cap = cap;
	}
	memmove(&e->free[at + 1], &e->free[at], (e->free_count - at) * sizeof(*e->free));
	e->free[at] = run;
	e->free_count++;
	return 0;
}

static void erase(struct extents *e, size_t at)
{
	e->free_count--;
	memmove(&e->free[at], &e->free[at + 1], (e->free_count - at) * sizeof(*e->free));
}

int extents_init(struct extents *e, uint32_t total, uint32_t barrier)
{
	*e = (struct extents){ .barrier = barrier };
	for (uint32_t first = 0; first < total; first += barrier) {
		int err = insert(e, e->free_count, (struct extent){ first, barrier });

		if (err) {
			extents_fini(e);
			return err;
		}
	}
	e->free_units = total;
	return 0;
}

void extents_fini(struct extents *e)
{
	free(e->free);
	*e = (struct extents){ 0 };
}

int extents_alloc(struct extents *e, uint32_t count, uint32_t *ret_first)
{
	for (size_t i = 0; i < e->free_count; i++) {
		struct extent *run = &e->free[i];

		if (run->count < count)
			continue;
		*ret_first = run->first;
		run->first += count;
		run->count -= count;
		e->free_units -= count;
		if (run->count == 0)
			erase(e, i);
		return 0;
	}
	return -ENOSPC;
}

/* Whether run b continues run a without a barrier between. */
static int joins(const struct extents *e, struct extent a, struct extent b)
{
	return a.first + a.count == b.first && b.first % e->barrier != 0;
}

int extents_free(struct extents *e, uint32_t first, uint32_t count)
{
	struct extent run = { first, count };
	size_t low = 0, high = e->free_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (e->free[middle].first < first)
			low = middle + 1;
		else
			high = middle;
	}
	e->free_units += count;
	if (low < e->free_count && joins(e, run, e->free[low])) {
		run.count += e->free[low].count;
		erase(e, low);
	}
	if (low > 0 && joins(e, e->free[low - 1], run)) {
		e->free[low - 1].count += run.count;
		return 0;
	}
	return insert(e, low, run);
}
