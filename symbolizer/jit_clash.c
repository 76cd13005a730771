/* SPDX-License-Identifier: Apache-2.0 */
/* Overlaps of different names; see jit_clash.h. */
#include "symbolizer/jit_clash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A symbol that has a name, as much as the sweep needs. */
struct named {
	uint64_t start, end;
	const char *name;
};

static int by_start(const void *pa, const void *pb)
{
	const struct named *a = pa, *b = pb;

	return a->start < b->start ? -1 : a->start > b->start;
}

static int add(struct jit_clashes *c, uint64_t start, uint64_t end)
{
	if (c->count && c->ranges[c->count - 1].end >= start) {
		if (c->ranges[c->count - 1].end < end)
			c->ranges[c->count - 1].end = end;
		return 0;
	}
	if (c->count == c->cap) {
		size_t want = c->cap ? 2 * c->cap : 16;
		struct jit_range *bigger = reallocarray(c->ranges, want, sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		c->ranges = bigger;
		c->cap = want;
	}
	c->ranges[c->count++] = (struct jit_range){ start, end };
	return 0;
}

/* Of each chain of overlapping symbols the part from the first other name on. */
static int sweep(const struct named *n, size_t count, struct jit_clashes *clashes)
{
	const char *name = NULL;
	uint64_t end = 0;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		if (n[i].start >= end)
			name = n[i].name;
		else if (!name || strcmp(name, n[i].name) != 0)
			name = NULL; /* from here on the chain has several */
		if (!name)
			err = add(clashes, n[i].start, n[i].end > end ? n[i].end : end);
		if (n[i].end > end)
			end = n[i].end;
	}
	return err;
}

int jit_clashes_find(const struct sym_builder *b, struct jit_clashes *ret_clashes)
{
	struct jit_clashes clashes = { 0 };
	struct named *named;
	size_t count = 0;
	int err;

	if (b->count < 2)
		return 0;
	named = reallocarray(NULL, b->count, sizeof(*named));
	if (!named)
		return -ENOMEM;
	for (size_t i = 0; i < b->count; i++) {
		const struct sym_candidate *c = &b->candidates[i];

		if (b->names[c->name])
			named[count++] =
				(struct named){ c->addr, c->addr + c->size, b->names + c->name };
	}
	qsort(named, count, sizeof(*named), by_start);
	err = sweep(named, count, &clashes);
	free(named);
	if (err)
		jit_clashes_fini(&clashes);
	else
		*ret_clashes = clashes;
	return err;
}

bool jit_clashes_at(const struct jit_clashes *clashes, uint64_t addr)
{
	size_t low = 0, high = clashes->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (clashes->ranges[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < clashes->count && clashes->ranges[low].start <= addr;
}

void jit_clashes_fini(struct jit_clashes *clashes)
{
	free(clashes->ranges);
	*clashes = (struct jit_clashes){ 0 };
}
