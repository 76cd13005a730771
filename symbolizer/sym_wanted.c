/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidates that matter; see sym_wanted.h.
 *
 * What is at an address x depends on the symbols with a size that cover it, on the nearest ones at
 * or below x (if they have no size, they may reach x), on those that cover these (labels inside a
 * function are no symbols), and on the nearest above, where one without a size ends. Which of
 * those that are no functions will be dropped for their names is not known yet: so "nearest"
 * counts functions only, and what lies between stays.
 */
#include "symbolizer/sym_wanted.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/sym_builder.h"

enum { PARTS = 4096 };

static int compare(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

int sym_wanted_add(struct sym_wanted *w, const uint64_t *addrs, size_t count)
{
	uint64_t *bigger = reallocarray(w->addrs, w->count + count + 1, sizeof(*bigger));
	size_t kept = 0;

	if (!bigger)
		return -ENOMEM;
	w->addrs = bigger;
	if (count)
		memcpy(w->addrs + w->count, addrs, count * sizeof(*addrs));
	w->count += count;
	qsort(w->addrs, w->count, sizeof(*w->addrs), compare);
	for (size_t i = 0; i < w->count; i++) {
		if (kept == 0 || w->addrs[i] != w->addrs[kept - 1])
			w->addrs[kept++] = w->addrs[i];
	}
	w->count = kept;
	return 0;
}

void sym_wanted_fini(struct sym_wanted *w)
{
	free(w->addrs);
	*w = (struct sym_wanted){ 0 };
}

/* The first of [low, high) that is not below `addr`, or high. */
static size_t search(const uint64_t *addrs, size_t low, size_t high, uint64_t addr)
{
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (addrs[middle] < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t sym_wanted_first(const struct sym_wanted *w, uint64_t addr)
{
	return search(w->addrs, 0, w->count, addr);
}

bool sym_wanted_in(const struct sym_wanted *w, uint64_t from, uint64_t to)
{
	size_t i = sym_wanted_first(w, from);

	return i < w->count && w->addrs[i] < to;
}

/* For as many questions as a file has symbols: the span of addresses in equal parts. */
struct parts {
	const struct sym_wanted *w;
	unsigned int shift;
	uint32_t firsts[PARTS + 2]; /* first address of each part, or of a later one */
};

static void cut_in_parts(const struct sym_wanted *w, struct parts *p)
{
	uint64_t first = w->addrs[0], span = w->addrs[w->count - 1] - first;
	size_t part = 0;

	p->w = w;
	p->shift = 0;
	while (span >> p->shift >= PARTS)
		p->shift++;
	for (size_t i = 0; i < w->count; i++) {
		while (part <= (w->addrs[i] - first) >> p->shift)
			p->firsts[part++] = (uint32_t)i;
	}
	while (part < PARTS + 2)
		p->firsts[part++] = (uint32_t)w->count;
}

static uint32_t first_by_parts(const struct parts *p, uint64_t addr)
{
	uint64_t first = p->w->addrs[0], part = (addr - first) >> p->shift;

	if (addr <= first)
		return 0;
	if (part >= PARTS)
		return (uint32_t)p->w->count;
	return (uint32_t)search(p->w->addrs, p->firsts[part], p->firsts[part + 1], addr);
}

/* The nearest function at or below each wanted address, and above it. */
struct nearest {
	uint64_t below;
	uint64_t above;
};

static size_t find_nearest(const struct sym_builder *b, size_t first, const uint32_t *numbers,
			   struct nearest *nearest)
{
	const struct sym_candidate *c = b->candidates;
	size_t count = b->wanted.count, functions = 0;

	for (size_t i = 0; i < count; i++)
		nearest[i] = (struct nearest){ 0, UINT64_MAX };
	for (size_t i = first; i < b->count; i++) {
		size_t at = numbers[i - first];

		if (!(c[i].rank & SYM_RANK_TYPED))
			continue;
		functions++;
		if (at < count && c[i].addr > nearest[at].below)
			nearest[at].below = c[i].addr;
		if (at > 0 && c[i].addr < nearest[at - 1].above)
			nearest[at - 1].above = c[i].addr;
	}
	for (size_t i = 1; i < count; i++) {
		if (nearest[i].below < nearest[i - 1].below)
			nearest[i].below = nearest[i - 1].below;
	}
	for (size_t i = count - 1; i > 0; i--) {
		if (nearest[i - 1].above > nearest[i].above)
			nearest[i - 1].above = nearest[i].above;
	}
	return functions;
}

/* at: of the first wanted address that is not below the candidate. */
static bool matters(const struct sym_wanted *w, const struct nearest *nearest, size_t at,
		    const struct sym_candidate *c)
{
	if (at > 0 && c->addr <= nearest[at - 1].above)
		return true;
	if (at == w->count)
		return false;
	return c->addr >= nearest[at].below ||
	       ((c->rank & SYM_RANK_SIZED) && c->addr + c->size > nearest[at].below);
}

int sym_wanted_filter(struct sym_builder *b, size_t first, size_t *ret_functions)
{
	size_t count = b->count - first, kept = first;
	struct parts parts;
	uint32_t *numbers = reallocarray(NULL, count + 1, sizeof(*numbers));
	struct nearest *nearest = reallocarray(NULL, b->wanted.count + 1, sizeof(*nearest));

	if (!numbers || !nearest) {
		free(numbers);
		free(nearest);
		return -ENOMEM;
	}
	cut_in_parts(&b->wanted, &parts);
	for (size_t i = 0; i < count; i++)
		numbers[i] = first_by_parts(&parts, b->candidates[first + i].addr);
	*ret_functions = find_nearest(b, first, numbers, nearest);
	for (size_t i = 0; i < count; i++) {
		if (matters(&b->wanted, nearest, numbers[i], &b->candidates[first + i]))
			b->candidates[kept++] = b->candidates[first + i];
	}
	b->count = kept;
	free(numbers);
	free(nearest);
	return 0;
}
