/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collecting and choosing symbols; see sym_builder.h. Cutting overlaps is in sym_cut.c.
 *
 * Real tables have a few hundred thousand symbols, hostile ones what fits the bound, so all
 * that is done here takes n log n steps at worst.
 */
#include "symbolizer/sym_builder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/sym_cut.h"

/* Name offsets must leave the top bit free. */
#define NAMES_MAX ((size_t)0x7fffffff)
#define FIRST_CAP ((size_t)256)

/*
 * What a candidate is charged: first for itself and its copy while sorting, then for two
 * ranges and one resumption, the most that comes of it. So the table keeps the bound too, and
 * while it is made both copies of the names stay within twice the bound.
 */
#define CANDIDATE_COST ((size_t)48)

_Static_assert(CANDIDATE_COST >= 2 * sizeof(struct sym_candidate), "sorting");
_Static_assert(CANDIDATE_COST >= 2 * sizeof(struct sym_range) + sizeof(struct sym_resumed),
	       "table");

void sym_builder_init(struct sym_builder *b, enum sym_overlap overlap, size_t max_bytes)
{
	*b = (struct sym_builder){ .overlap = overlap, .max_bytes = max_bytes, .tail = 1 };
	if (b->max_bytes > NAMES_MAX)
		b->max_bytes = NAMES_MAX;
}

void sym_builder_fini(struct sym_builder *b)
{
	free(b->candidates);
	free(b->names);
	b->candidates = NULL;
	b->names = NULL;
	b->count = b->cap = b->names_len = b->names_cap = 0;
}

/* How many candidates fit the bound beside the names. */
static size_t room_for_candidates(const struct sym_builder *b)
{
	return (b->max_bytes - b->names_len) / CANDIDATE_COST;
}

int sym_builder_reserve(struct sym_builder *b, size_t count)
{
	struct sym_candidate *bigger;
	size_t want;

	if (b->count > room_for_candidates(b) || count > room_for_candidates(b) - b->count)
		return -EFBIG;
	want = b->count + count;
	if (want <= b->cap)
		return 0;
	bigger = reallocarray(b->candidates, want, sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	b->candidates = bigger;
	b->cap = want;
	return 0;
}

int sym_builder_add(struct sym_builder *b, const struct sym_candidate *candidate)
{
	int err;

	if (b->count == b->cap) {
		size_t step = b->cap < FIRST_CAP ? FIRST_CAP : b->cap;

		err = sym_builder_reserve(b, step);
		if (err == -EFBIG)
			err = sym_builder_reserve(b, 1);
		if (err)
			return err;
	}
	b->candidates[b->count] = *candidate;
	if (candidate->rank & SYM_RANK_SIZED && candidate->size > UINT64_MAX - candidate->addr)
		b->candidates[b->count].size = UINT64_MAX - candidate->addr;
	b->count++;
	return 0;
}

static int reserve_names(struct sym_builder *b, size_t len)
{
	size_t used = b->count * CANDIDATE_COST + b->names_len, cap;
	char *bigger;

	if (used > b->max_bytes || len > b->max_bytes - used)
		return -EFBIG;
	if (len <= b->names_cap - b->names_len)
		return 0;
	cap = b->names_cap * 2 > b->names_len + len ? b->names_cap * 2 : b->names_len + len;
	cap = cap < 4096 ? 4096 : cap;
	bigger = realloc(b->names, cap);
	if (!bigger)
		return -ENOMEM;
	b->names = bigger;
	b->names_cap = cap;
	return 0;
}

int sym_builder_add_name(struct sym_builder *b, const char *name, size_t len, const char *note,
			 uint32_t *ret_offset)
{
	size_t note_size = note ? strlen(note) + 1 : 0;
	int err;

	err = reserve_names(b, len + 1 + note_size);
	if (err)
		return err;
	*ret_offset = (uint32_t)b->names_len;
	memcpy(b->names + b->names_len, name, len);
	b->names[b->names_len + len] = 0;
	b->names_len += len + 1;
	if (note)
		memcpy(b->names + b->names_len, note, note_size);
	b->names_len += note_size;
	return 0;
}

size_t sym_unversioned_length(const char *name)
{
	/* A leading '@' is part of the name. */
	return *name ? (size_t)(strchrnul(name + 1, '@') - name) : 0;
}

static uint64_t key_of(const struct sym_candidate *c, bool by_name)
{
	return by_name ? c->name : c->addr;
}

/* One pass of a radix sort; false if all keys agree in this byte, so there is nothing to do. */
static bool scatter(const struct sym_candidate *from, struct sym_candidate *to, size_t count,
		    unsigned int shift, bool by_name)
{
	size_t starts[256] = { 0 }, sum = 0;

	for (size_t i = 0; i < count; i++)
		starts[key_of(&from[i], by_name) >> shift & 255]++;
	if (starts[key_of(&from[0], by_name) >> shift & 255] == count)
		return false;
	for (size_t i = 0; i < 256; i++) {
		size_t n = starts[i];

		starts[i] = sum;
		sum += n;
	}
	for (size_t i = 0; i < count; i++)
		to[starts[key_of(&from[i], by_name) >> shift & 255]++] = from[i];
	return true;
}

/* Stable, four to ten times as fast as qsort on real tables. */
static int sort_candidates(struct sym_candidate *candidates, size_t count, bool by_name)
{
	struct sym_candidate *scratch, *from = candidates, *to;

	if (count < 2)
		return 0;
	scratch = reallocarray(NULL, count, sizeof(*scratch));
	if (!scratch)
		return -ENOMEM;
	to = scratch;
	for (unsigned int shift = 0; shift < 64; shift += 8) {
		struct sym_candidate *swap = from;

		if (!scatter(from, to, count, shift, by_name))
			continue;
		from = to;
		to = swap;
	}
	if (from != candidates)
		memcpy(candidates, from, count * sizeof(*candidates));
	free(scratch);
	return 0;
}

int sym_builder_sort_by_name(struct sym_builder *b, size_t first)
{
	return first == b->count ? 0
				 : sort_candidates(b->candidates + first, b->count - first, true);
}

static int compare_ints(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static size_t leading_underscores(const char *name)
{
	size_t n = 0;

	while (name[n] == '_')
		n++;
	return n;
}

/*
 * Orders aliases, the better one last: perf's choose_best_symbol(), then strcmp. Versions do
 * not count, or a stripped file, which has them elsewhere, would make another choice.
 */
static int compare_aliases(const void *pa, const void *pb, void *names_ptr)
{
	const struct sym_candidate *a = pa, *b = pb;
	const char *names = names_ptr, *na = names + a->name, *nb = names + b->name;
	size_t la, lb;
	int c;

	c = compare_ints(a->rank, b->rank);
	if (c)
		return c;
	c = compare_ints(leading_underscores(nb), leading_underscores(na));
	if (c)
		return c;
	la = sym_unversioned_length(na);
	lb = sym_unversioned_length(nb);
	c = compare_ints(la, lb);
	if (c)
		return c;
	c = memcmp(nb, na, la);
	return c ? c : strcmp(nb, na);
}

static void sort_aliases(struct sym_builder *b)
{
	size_t first = 0;

	while (first < b->count) {
		struct sym_candidate *c = b->candidates + first;
		size_t n = 1;

		while (first + n < b->count && c[n].addr == c->addr)
			n++;
		if (n > 1)
			qsort_r(c, n, sizeof(*c), compare_aliases, b->names);
		first += n;
	}
}

/* Where a symbol without a size ends, `next` being the next one at a higher address or NULL. */
static uint64_t end_of_gap(const struct sym_builder *b, const struct sym_candidate *c,
			   const struct sym_candidate *next)
{
	uint64_t end = c->size;

	/* Without section headers only a neighbour of the same section tells that it goes on. */
	if (end == 0 && (!next || next->section != c->section)) {
		if (__builtin_add_overflow(c->addr, b->tail, &end))
			end = UINT64_MAX;
	} else if (end == 0) {
		end = next->addr;
	}
	return next && next->addr < end ? next->addr : end;
}

/*
 * Gives symbols without a size the room up to the next one. Those that lie inside a symbol
 * with a size are labels of it and are dropped, else they would steal its rest; so are all
 * but the best at one address.
 */
static void size_the_unsized(struct sym_builder *b)
{
	struct sym_candidate *c = b->candidates;
	uint64_t covered = 0;
	size_t kept = 0, group = 0;

	for (size_t i = 0; i < b->count; i++) {
		uint64_t addr = c[i].addr, end;

		/* At the first of each address, first look at all of them. */
		for (; i >= group || (group < b->count && c[group].addr == addr); group++) {
			if ((c[group].rank & SYM_RANK_SIZED) && addr + c[group].size > covered)
				covered = addr + c[group].size;
		}
		if (!(c[i].rank & SYM_RANK_SIZED)) {
			if (covered > addr || i + 1 < group)
				continue;
			end = end_of_gap(b, &c[i], group < b->count ? &c[group] : NULL);
			if (end <= addr)
				continue;
			c[i].size = end - addr;
		}
		c[kept++] = c[i];
	}
	b->count = kept;
}

int sym_builder_finish(struct sym_builder *b, bool with_notes, struct sym_table *ret_table)
{
	struct sym_table table = { 0 };
	int err;

	err = sort_candidates(b->candidates, b->count, false);
	if (err)
		goto out;
	if (b->overlap == SYM_INNERMOST_WINS) {
		sort_aliases(b);
		size_the_unsized(b);
	}
	err = sym_cut_overlaps(b, &table);
	if (err)
		goto out;
	err = sym_move_names(b, with_notes, &table);
	if (err)
		goto out;
	*ret_table = table;
	table = (struct sym_table){ 0 };
out:
	sym_table_fini(&table);
	sym_builder_fini(b);
	return err;
}
