/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nameless ranges from the extents of functions; see sym_cut.h.
 *
 * An extent whose first byte has a name is that function's: the rest of it, if the symbol is
 * said to be shorter, stays uncovered rather than get a second name.
 */
#include <errno.h>
#include <stdlib.h>

#include "symbolizer/sym_cut.h"

/* A part of an extent that no symbol covers. */
struct piece {
	uint64_t addr;
	uint64_t size;
	uint64_t start; /* of the extent */
};

struct pieces {
	struct piece *list;
	size_t count;
	size_t resumed; /* how many do not begin at their start */
};

static void add_piece(struct pieces *p, uint64_t from, uint64_t to, uint64_t start)
{
	if (from >= to)
		return;
	p->list[p->count++] = (struct piece){ from, to - from, start };
	p->resumed += from != start;
}

static void find_pieces(const struct sym_builder *b, const struct sym_table *t, struct pieces *p)
{
	size_t next = 0;

	for (size_t i = 0; i < b->extent_count; i++) {
		const struct sym_extent *e = &b->extents[i];
		uint64_t at = e->addr, end = e->addr + e->size;

		if (b->wanted.count && !sym_wanted_in(&b->wanted, at, end))
			continue;

		while (next < t->count && t->ranges[next].addr + t->ranges[next].size <= at)
			next++;
		if (next < t->count && t->ranges[next].addr <= at)
			continue;
		for (; next < t->count && t->ranges[next].addr < end; next++) {
			add_piece(p, at, t->ranges[next].addr, e->addr);
			at = t->ranges[next].addr + t->ranges[next].size;
			if (at >= end)
				break; /* it may reach into the next extent */
		}
		add_piece(p, at, end, e->addr);
	}
}

/* Both lists are sorted and apart: merged from the back, in place. */
static void merge_ranges(struct sym_table *t, const struct pieces *p)
{
	size_t old = t->count, left = p->count, to = old + left;

	while (left > 0) {
		const struct piece *piece = &p->list[left - 1];
		uint32_t resumed = piece->addr == piece->start ? 0 : SYM_RESUMED;

		if (old > 0 && t->ranges[old - 1].addr > piece->addr) {
			t->ranges[--to] = t->ranges[--old];
			continue;
		}
		t->ranges[--to] = (struct sym_range){
			.addr = piece->addr,
			.size = piece->size < UINT32_MAX ? (uint32_t)piece->size : UINT32_MAX,
			.name = SYM_NAMELESS | resumed,
		};
		left--;
	}
	t->count += p->count;
}

static void merge_resumed(struct sym_table *t, const struct pieces *p)
{
	size_t old = t->resumed_count, left = p->count, to = old + p->resumed;

	for (; left > 0; left--) {
		const struct piece *piece = &p->list[left - 1];

		if (piece->addr == piece->start)
			continue;
		while (old > 0 && t->resumed[old - 1].addr > piece->addr)
			t->resumed[--to] = t->resumed[--old];
		t->resumed[--to] = (struct sym_resumed){ piece->addr, piece->start };
	}
	t->resumed_count += p->resumed;
}

/* Makes room for `more` elements of `size` bytes behind the `count` that are there. */
static int make_room(void *array_ptr, size_t count, size_t more, size_t size)
{
	void **array = array_ptr, *bigger;

	if (more == 0)
		return 0;
	bigger = reallocarray(*array, count + more, size);
	if (!bigger)
		return -ENOMEM;
	*array = bigger;
	return 0;
}

int sym_fill_gaps(const struct sym_builder *b, struct sym_table *table)
{
	struct pieces p = { 0 };
	int err = 0;

	if (b->extent_count == 0)
		return 0;
	p.list = reallocarray(NULL, b->extent_count + table->count, sizeof(*p.list));
	if (!p.list)
		return -ENOMEM;
	find_pieces(b, table, &p);
	err = make_room(&table->ranges, table->count, p.count, sizeof(*table->ranges));
	if (!err)
		err = make_room(&table->resumed, table->resumed_count, p.resumed,
				sizeof(*table->resumed));
	if (!err) {
		merge_ranges(table, &p);
		merge_resumed(table, &p);
	}
	free(p.list);
	return err;
}
