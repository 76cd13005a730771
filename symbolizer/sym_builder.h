/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a sym_table from symbols as they come: sorts them, chooses between aliases, gives
 * symbols without a size the gap behind them, and cuts overlaps so that each address has at
 * most one symbol. The answer depends on the set of symbols only, not on their order.
 */
#ifndef SYMBOLIZER_SYM_BUILDER_H
#define SYMBOLIZER_SYM_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/sym_table.h"
#include "symbolizer/sym_wanted.h"

/* What speaks for a symbol among several at one address, as in perf: the highest sum wins. */
enum {
	SYM_RANK_GLOBAL = 1,
	SYM_RANK_STRONG = 2, /* not weak */
	SYM_RANK_TYPED = 4,  /* a plain function, not a label or an IFUNC */
	SYM_RANK_SIZED = 8,
	SYM_RANK_PREFERRED = 16, /* of a source that knows better */
};

struct sym_candidate {
	uint64_t addr;
	/* With SYM_RANK_SIZED the size in bytes, else the end of the section or 0: not known. */
	uint64_t size;
	uint32_t name; /* offset in the builder's names; one of its own, or the bound fails */
	uint16_t section;
	uint8_t rank;
};

/* A function's code, as unwind data tells it. */
struct sym_extent {
	uint64_t addr;
	uint64_t size;
};

enum sym_overlap {
	SYM_INNERMOST_WINS, /* ELF, kernel: the symbol that begins last; aliases by rank */
	SYM_NEWEST_WINS,    /* perf maps: the symbol added last */
};

struct sym_builder {
	struct sym_candidate *candidates;
	size_t count;
	size_t cap;
	char *names;
	size_t names_len;
	size_t names_cap;
	struct sym_extent *extents; /* sorted, without overlaps */
	size_t extent_count;
	struct sym_wanted wanted; /* set by the caller; freed with the builder */
	size_t found; /* symbols that sources had, with those that nobody wants */
	size_t max_bytes; /* bound on the finished table; twice that while it is made */
	enum sym_overlap overlap;
	/* Bytes that a symbol of unknown size and section end gets when no other follows. */
	uint64_t tail;
};

void sym_builder_init(struct sym_builder *b, enum sym_overlap overlap, size_t max_bytes);
void sym_builder_fini(struct sym_builder *b);

/* Makes room for `count` more candidates: 0, -ENOMEM or -EFBIG. */
int sym_builder_reserve(struct sym_builder *b, size_t count);

/* Appends a candidate: 0, -ENOMEM or -EFBIG. */
int sym_builder_add(struct sym_builder *b, const struct sym_candidate *candidate);

/*
 * Appends a name of `len` bytes (no NUL inside) and a NUL, and gives its offset. `note` is a
 * second string kept directly behind the first one, or NULL. 0, -ENOMEM or -EFBIG.
 */
int sym_builder_add_name(struct sym_builder *b, const char *name, size_t len, const char *note,
			 uint32_t *ret_offset);

/*
 * Tells where functions lie (owned from now on, sorted, without overlaps). A symbol of unknown
 * size then ends where its function does, and what no symbol covers becomes a nameless range,
 * unless it belongs to a function whose beginning has a name. 0, -ENOMEM or -EFBIG.
 */
int sym_builder_take_extents(struct sym_builder *b, struct sym_extent *extents, size_t count);

/* Sorts the candidates from `first` on by name offset, keeping the order of equals. */
int sym_builder_sort_by_name(struct sym_builder *b, size_t first);

/*
 * Makes the table; the builder is used up, whatever comes back. with_notes: each name was
 * added with a note. 0 or -ENOMEM.
 */
int sym_builder_finish(struct sym_builder *b, bool with_notes, struct sym_table *ret_table);

#endif
