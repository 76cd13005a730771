/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines and inlined calls; see go_lines.h.
 *
 * A function's record tells where its tables of values by pc are: file, line, and the number of
 * the innermost inlined call, an index into the function's tree of calls.
 */
#include <string.h>

#include "symbolizer/go_record.h"

/* The value that a table has for the place `target` bytes into the function; -1 without one. */
static int32_t value_at(const struct go_lines *g, uint32_t table, uint64_t target)
{
	struct go_walk w = go_walk_begin(g, table);

	while (table && go_walk_next(g, &w)) {
		if (target < w.pc)
			return (int32_t)w.value;
	}
	return -1;
}

static const char *file_of(const struct go_lines *g, const struct go_record *r, uint64_t place)
{
	int32_t number = value_at(g, r->files, place);
	uint64_t files = g->header.files;
	uint32_t off;

	if (number < 0)
		return "";
	if (g->header.version == 2) {
		uint32_t list;

		/* The table of files is named behind that of functions. */
		if (!go_get32(g, g->header.functab + (2 * g->header.func_count + 1) * go_pc_size(g),
			      &list) ||
		    !go_get32(g, list + (uint64_t)number * 4, &off))
			return "";
		return go_text_at(g, off);
	}
	if (!go_get32(g, g->header.units + ((uint64_t)r->unit + (uint32_t)number) * 4, &off) ||
	    off == UINT32_MAX)
		return "";
	return go_text_at(g, files + off);
}

/* One call of the function's tree: its name and where in the function it was called. */
static bool read_call(const struct go_lines *g, const struct go_record *r, int32_t number,
		      uint32_t *ret_name, uint32_t *ret_parent)
{
	size_t size = go_call_size(g);
	uint64_t at = (uint64_t)r->tree + (uint64_t)number * size;

	if (number > GO_CALLS_MAX || at > g->trees_size || size > g->trees_size - at)
		return false;
	memcpy(ret_name, g->trees + at + (size == 20 ? 12 : 4), 4);
	memcpy(ret_parent, g->trees + at + (size == 20 ? 16 : 8), 4);
	/* A name begins where another one has ended, or the tree is not what we take it for. */
	return *ret_parent<r->size && * ret_name> 0 &&
	       *ret_name < g->header.size - g->header.names &&
	       g->table[g->header.names + *ret_name - 1] == 0;
}

static void set_line(const struct go_lines *g, const struct go_record *r, uint64_t place,
		     uint32_t name, struct sym_line *ret)
{
	int32_t line = value_at(g, r->lines, place);

	*ret = (struct sym_line){
		.function = go_text_at(g, g->header.names + name),
		.file = file_of(g, r, place),
		.line = line > 0 ? (uint32_t)line : 0,
	};
}

/* The number of the function that holds pc: the last one that begins at or below it. */
static bool find_function(const struct go_lines *g, uint64_t pc, uint64_t *ret_number)
{
	uint64_t low = 0, high = g->header.func_count;

	if (pc < go_entry(g, 0) || pc >= go_entry(g, high))
		return false;
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (go_entry(g, middle) <= pc)
			low = middle;
		else
			high = middle;
	}
	*ret_number = low;
	return true;
}

size_t go_lines_find(const struct go_lines *g, uint64_t pc, struct sym_line *ret_lines, size_t max)
{
	uint32_t name, parent;
	uint64_t number, place;
	struct go_record r;
	size_t count = 0;

	if (max == 0 || !find_function(g, pc, &number) || !go_record_read(g, number, &r) ||
	    pc - r.entry >= r.size)
		return 0;
	place = pc - r.entry;
	while (r.tree != GO_NO_DATA && count + 1 < max) {
		int32_t call = value_at(g, r.inlined, place);

		if (call < 0)
			break;
		if (!read_call(g, &r, call, &name, &parent)) {
			/* Without the calls the lines would be those of another function. */
			return 0;
		}
		set_line(g, &r, place, name, &ret_lines[count++]);
		place = parent;
	}
	set_line(g, &r, place, r.name, &ret_lines[count++]);
	for (size_t i = 0; i < count; i++) {
		if (!ret_lines[i].function[0])
			return 0;
	}
	return count;
}
