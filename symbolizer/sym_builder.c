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
#include "symbolizer/sym_sort.h"

/* Name offsets must leave the top bit free. */
#define NAMES_MAX ((size_t)0x7fffffff)
#define FIRST_CAP ((size_t)256)

/*
 * What a candidate is charged: first for itself and its copy while sorting, then for two
 * ranges, one resumption and their bucket, the most that comes of it. So the table keeps the
 * bound too, and while it is made both copies of the names stay within twice the bound.
 */
#define CANDIDATE_COST ((size_t)52)
#define EXTENT_COST    CANDIDATE_COST

_Static_assert(CANDIDATE_COST >= 2 * sizeof(struct sym_candidate), "sorting");
_Static_assert(CANDIDATE_COST >=
		       2 * sizeof(struct sym_range) + sizeof(struct sym_resumed) + sizeof(uint32_t),
	       "table");
_Static_assert(EXTENT_COST >= sizeof(struct sym_extent) + 2 * sizeof(struct sym_range), "extents");

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
	free(b->extents);
	sym_wanted_fini(&b->wanted);
	b->candidates = NULL;
	b->names = NULL;
	b->extents = NULL;
	b->count = b->cap = b->names_len = b->names_cap = b->extent_count = 0;
}

/* How many candidates fit the bound beside the names and extents. */
static size_t room_for_candidates(const struct sym_builder *b)
{
	return (b->max_bytes - b->names_len - b->extent_count * EXTENT_COST) / CANDIDATE_COST;
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

/* The starts of functions with wanted addresses are wanted too. */
static int want_starts(struct sym_builder *b)
{
	const struct sym_extent *e = b->extents, *end = e + b->extent_count;
	uint64_t *starts = reallocarray(NULL, b->wanted.count, sizeof(*starts));
	size_t count = 0;
	int err;

	if (!starts)
		return -ENOMEM;
	for (size_t i = 0; i < b->wanted.count; i++) {
		while (e < end && e->addr + e->size <= b->wanted.addrs[i])
			e++;
		if (e < end && e->addr <= b->wanted.addrs[i])
			starts[count++] = e->addr;
	}
	err = sym_wanted_add(&b->wanted, starts, count);
	free(starts);
	return err;
}

int sym_builder_take_extents(struct sym_builder *b, struct sym_extent *extents, size_t count)
{
	size_t used = b->count * CANDIDATE_COST + b->names_len;

	if (used > b->max_bytes || count > (b->max_bytes - used) / EXTENT_COST) {
		free(extents);
		return -EFBIG;
	}
	b->extents = extents;
	b->extent_count = count;
	return b->wanted.count ? want_starts(b) : 0;
}

static int reserve_names(struct sym_builder *b, size_t len)
{
	size_t used = b->count * CANDIDATE_COST + b->extent_count * EXTENT_COST + b->names_len, cap;
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

int sym_builder_sort_by_name(struct sym_builder *b, size_t first)
{
	return first == b->count ? 0 : sym_sort(b->candidates + first, b->count - first, true);
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

/* Orders aliases, the better one last: perf's choose_best_symbol(), then strcmp. */
static int compare_aliases(const void *pa, const void *pb, void *names_ptr)
{
	const struct sym_candidate *a = pa, *b = pb;
	const char *names = names_ptr, *na = names + a->name, *nb = names + b->name;
	int c;

	c = compare_ints(a->rank, b->rank);
	if (c)
		return c;
	c = compare_ints(leading_underscores(nb), leading_underscores(na));
	if (c)
		return c;
	c = compare_ints(strlen(na), strlen(nb));
	return c ? c : strcmp(nb, na);
}

/*
 * Puts the best of the symbols at one address last. Behind it only those that reach further can
 * ever be seen: the others are taken out. *kept is where the remaining ones go.
 */
static void take_aliases(struct sym_builder *b, struct sym_candidate *c, size_t n, size_t *kept)
{
	struct sym_candidate best, *to = b->candidates + *kept;
	size_t at = 0, left = 0;

	for (size_t i = 1; i < n; i++) {
		if (compare_aliases(&c[i], &c[at], b->names) > 0)
			at = i;
	}
	best = c[at];
	for (size_t i = 0; i < n; i++) {
		bool is_sized = c[i].rank & SYM_RANK_SIZED;

		if (i != at && is_sized && c[i].size > best.size)
			to[left++] = c[i];
	}
	if (left > 1)
		qsort_r(to, left, sizeof(*to), compare_aliases, b->names);
	to[left++] = best;
	*kept += left;
}

static void choose_aliases(struct sym_builder *b)
{
	size_t first = 0, kept = 0, n;

	for (; first < b->count; first += n) {
		struct sym_candidate *c = b->candidates + first;

		for (n = 1; first + n < b->count && c[n].addr == c->addr;)
			n++;
		take_aliases(b, c, n, &kept);
	}
	b->count = kept;
}

/*
 * Where the function that holds `addr` ends, or the next one begins. UINT64_MAX if that is not
 * known. *cursor only grows, as the addresses asked do.
 */
static uint64_t end_by_extents(const struct sym_builder *b, uint64_t addr, size_t *cursor)
{
	const struct sym_extent *e = b->extents;

	while (*cursor < b->extent_count && e[*cursor].addr + e[*cursor].size <= addr)
		(*cursor)++;
	if (*cursor == b->extent_count)
		return UINT64_MAX;
	return e[*cursor].addr > addr ? e[*cursor].addr : e[*cursor].addr + e[*cursor].size;
}

/* Where a symbol without a size ends, `next` being the next one at a higher address or NULL. */
static uint64_t end_of_gap(const struct sym_builder *b, const struct sym_candidate *c,
			   const struct sym_candidate *next, size_t *cursor)
{
	uint64_t end = c->size, extent_end = end_by_extents(b, c->addr, cursor);

	/* Without section headers only a neighbour of the same section tells that it goes on. */
	if (end == 0 && (!next || next->section != c->section)) {
		if (__builtin_add_overflow(c->addr, b->tail, &end))
			end = UINT64_MAX;
	} else if (end == 0) {
		end = next->addr;
	}
	if (next && next->addr < end)
		end = next->addr;
	return extent_end < end ? extent_end : end;
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
	size_t kept = 0, group = 0, cursor = 0;

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
			end = end_of_gap(b, &c[i], group < b->count ? &c[group] : NULL, &cursor);
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

	err = sym_sort(b->candidates, b->count, false);
	if (err)
		goto out;
	if (b->overlap == SYM_INNERMOST_WINS) {
		choose_aliases(b);
		size_the_unsized(b);
	}
	err = sym_cut_overlaps(b, &table);
	if (err)
		goto out;
	err = sym_move_names(b, with_notes, &table);
	if (err)
		goto out;
	err = sym_fill_gaps(b, &table);
	if (err)
		goto out;
	err = sym_table_index(&table);
	if (err)
		goto out;
	*ret_table = table;
	table = (struct sym_table){ 0 };
out:
	sym_table_fini(&table);
	sym_builder_fini(b);
	return err;
}
