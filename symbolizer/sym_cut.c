/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Overlapping symbols to separate ranges; see sym_cut.h.
 *
 * A sweep over the addresses with a heap of the symbols that may cover the current one, the
 * winner on top. Ended ones are removed only when they come to the top, which keeps each step
 * at log n also for nests and chains of overlaps made to hurt.
 */
#include "symbolizer/sym_cut.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sweep {
	const struct sym_builder *b;
	struct sym_table *table;
	uint32_t *heap; /* candidate numbers */
	size_t heap_len;
	size_t range_cap;
	size_t resumed_cap;
};

static uint64_t end_of(const struct sweep *s, uint32_t number)
{
	return s->b->candidates[number].addr + s->b->candidates[number].size;
}

/* The higher one wins the overlap. */
static uint32_t priority(const struct sweep *s, uint32_t number)
{
	return s->b->overlap == SYM_NEWEST_WINS ? s->b->candidates[number].name : number;
}

static void heap_push(struct sweep *s, uint32_t number)
{
	size_t i = s->heap_len++;

	while (i > 0) {
		size_t parent = (i - 1) / 2;

		if (priority(s, s->heap[parent]) >= priority(s, number))
			break;
		s->heap[i] = s->heap[parent];
		i = parent;
	}
	s->heap[i] = number;
}

static void heap_pop(struct sweep *s)
{
	uint32_t last = s->heap[--s->heap_len];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < s->heap_len) {
		if (child + 1 < s->heap_len &&
		    priority(s, s->heap[child + 1]) > priority(s, s->heap[child]))
			child++;
		if (priority(s, last) >= priority(s, s->heap[child]))
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = last;
}

/* Makes room for one more element of `size` bytes in a growing array. */
static int grow(void *array_ptr, size_t count, size_t *cap, size_t size)
{
	void **array = array_ptr, *bigger;
	size_t want = *cap ? *cap * 2 : 64;

	if (count < *cap)
		return 0;
	bigger = reallocarray(*array, want, size);
	if (!bigger)
		return -ENOMEM;
	*array = bigger;
	*cap = want;
	return 0;
}

/* Ends the table's last range at `stop`, or adds the range [from, stop) of this candidate. */
static int emit(struct sweep *s, uint64_t from, uint64_t stop, uint32_t number)
{
	struct sym_table *t = s->table;
	uint64_t start = s->b->candidates[number].addr, size = stop - from;
	struct sym_range *last = t->count ? &t->ranges[t->count - 1] : NULL;
	int err;

	if (last && last->name == number && last->addr + last->size == from) {
		size = stop - last->addr;
		last->size = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
		return 0;
	}
	err = grow(&t->ranges, t->count, &s->range_cap, sizeof(*t->ranges));
	if (err)
		return err;
	t->ranges[t->count++] = (struct sym_range){
		.addr = from,
		.size = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX,
		.name = number,
	};
	if (from == start)
		return 0;
	err = grow(&t->resumed, t->resumed_count, &s->resumed_cap, sizeof(*t->resumed));
	if (err)
		return err;
	t->resumed[t->resumed_count++] = (struct sym_resumed){ from, start };
	return 0;
}

static int run_sweep(struct sweep *s)
{
	const struct sym_candidate *c = s->b->candidates;
	size_t next = 0, count = s->b->count;
	uint64_t at = 0;

	for (;;) {
		uint64_t stop;
		int err;

		while (s->heap_len && end_of(s, s->heap[0]) <= at)
			heap_pop(s);
		if (!s->heap_len) {
			if (next == count)
				return 0;
			at = c[next].addr;
		}
		while (next < count && c[next].addr == at)
			heap_push(s, (uint32_t)next++);
		/* What was just pushed may be empty. */
		while (s->heap_len && end_of(s, s->heap[0]) <= at)
			heap_pop(s);
		if (!s->heap_len)
			continue;
		stop = end_of(s, s->heap[0]);
		if (next < count && c[next].addr < stop)
			stop = c[next].addr;
		err = emit(s, at, stop, s->heap[0]);
		if (err)
			return err;
		at = stop;
	}
}

int sym_cut_overlaps(const struct sym_builder *b, struct sym_table *table)
{
	struct sweep s = { .b = b, .table = table, .range_cap = b->count };
	int err = -ENOMEM;

	if (b->count == 0)
		return 0;
	s.heap = reallocarray(NULL, b->count, sizeof(*s.heap));
	table->ranges = reallocarray(NULL, b->count, sizeof(*table->ranges));
	if (s.heap && table->ranges)
		err = run_sweep(&s);
	free(s.heap);
	return err;
}

static size_t record_size(const char *name, bool with_notes)
{
	size_t size = strlen(name) + 1;

	return with_notes ? size + strlen(name + size) + 1 : size;
}

/* Gives back what was allocated in advance; failing to do so is no failure. */
static void trim(void *array_ptr, size_t size)
{
	void **array = array_ptr, *smaller = size ? realloc(*array, size) : NULL;

	if (smaller)
		*array = smaller;
}

int sym_move_names(struct sym_builder *b, bool with_notes, struct sym_table *table)
{
	struct sym_candidate *c = b->candidates;
	size_t size = 0, resumed = 0;
	char *to;

	/* Sizes first. A candidate may have several ranges; its size field is free by now. */
	for (size_t i = 0; i < b->count; i++)
		c[i].size = 0;
	for (size_t i = 0; i < table->count; i++) {
		struct sym_candidate *owner = &c[table->ranges[i].name];

		if (owner->size == 0) {
			owner->size = record_size(b->names + owner->name, with_notes);
			size += owner->size;
		}
	}
	to = table->names = malloc(size ? size : 1);
	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < table->count; i++) {
		struct sym_range *range = &table->ranges[i];
		struct sym_candidate *owner = &c[range->name];

		if (owner->size) {
			memcpy(to, b->names + owner->name, owner->size);
			owner->name = (uint32_t)(to - table->names);
			to += owner->size;
			owner->size = 0;
		}
		range->name = owner->name;
		if (resumed < table->resumed_count && table->resumed[resumed].addr == range->addr) {
			range->name |= SYM_RESUMED;
			resumed++;
		}
	}
	table->names_len = size;
	trim(&table->ranges, table->count * sizeof(*table->ranges));
	trim(&table->resumed, table->resumed_count * sizeof(*table->resumed));
	return 0;
}
