/* SPDX-License-Identifier: Apache-2.0 */
/* Functions' records and tables of values by pc in a pclntab in memory; private to go_lines. */
#ifndef SYMBOLIZER_GO_RECORD_H
#define SYMBOLIZER_GO_RECORD_H

#include "symbolizer/go_lines.h"

#define GO_NO_DATA UINT32_MAX

enum { GO_CALLS_MAX = 1 << 20 }; /* inlined calls in one function */

struct go_lines {
	uint8_t *table;
	uint8_t *trees;
	size_t trees_size;
	struct go_header header;
	uint64_t text;
};

/* The fields of a function's record that are used. */
struct go_record {
	uint64_t entry;
	uint64_t size;
	uint32_t name;
	uint32_t files; /* its table of file numbers by pc */
	uint32_t lines;
	uint32_t unit;
	uint32_t inlined; /* its table of calls by pc; 0: none */
	uint32_t tree;    /* GO_NO_DATA: none */
};

/* A walk over a table of values by pc. */
struct go_walk {
	uint64_t at;
	uint64_t pc;    /* up to which `value` holds, from the function's start */
	uint32_t value; /* -1 at first */
	uint32_t steps;
};

/* Reading within the table; false outside. */
bool go_get32(const struct go_lines *g, uint64_t at, uint32_t *ret_value);

/* A string that ends within the table, or "". */
const char *go_text_at(const struct go_lines *g, uint64_t at);

/* Where function `i` begins, or the last one ends; 0 if that is not told. */
uint64_t go_entry(const struct go_lines *g, uint64_t i);

bool go_record_read(const struct go_lines *g, uint64_t number, struct go_record *r);

struct go_walk go_walk_begin(const struct go_lines *g, uint32_t table);
bool go_walk_next(const struct go_lines *g, struct go_walk *w);

static inline size_t go_pc_size(const struct go_lines *g)
{
	return g->header.version >= 18 ? 4 : g->header.ptr_size;
}

/* Of one entry of a tree. */
static inline size_t go_call_size(const struct go_lines *g)
{
	return g->header.version == 18 ? 20 : 16;
}

#endif
