/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A finished table of symbols: sorted, non-overlapping ranges of addresses, each with a name.
 * 18 bytes a range and one block of names. Made by sym_builder.
 */
#ifndef SYMBOLIZER_SYM_TABLE_H
#define SYMBOLIZER_SYM_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sym_range {
	uint64_t addr;
	uint32_t size;
	uint32_t name; /* offset in names or SYM_NAMELESS; the top bit is SYM_RESUMED */
};

_Static_assert(sizeof(struct sym_range) == 16, "one cache line holds four");

/* The range goes on with a symbol that began before another one that lies inside it. */
#define SYM_RESUMED 0x80000000u

/* A function of which only the extent is known. */
#define SYM_NAMELESS 0x7fffffffu

/* Where the symbol of a resumed range began. */
struct sym_resumed {
	uint64_t addr; /* of the range */
	uint64_t start;
};

struct sym_table {
	struct sym_range *ranges;
	struct sym_resumed *resumed;
	char *names;
	size_t count;
	size_t resumed_count;
	size_t names_len;
	/*
	 * The addresses from the first range on are cut into buckets of 2^bucket_shift bytes, two
	 * ranges each on average: the last range that begins at or below each bucket's start. So
	 * a look-up touches two or three cache lines, and never takes more steps than a plain
	 * binary search.
	 */
	uint32_t *buckets;
	size_t bucket_count; /* one more is there, for the end */
	unsigned int bucket_shift;
};

struct sym_found {
	const char *name; /* lives with the table; NULL: only the start is known */
	uint64_t start;
};

/* Makes the buckets, once all ranges are there: 0 or -ENOMEM. */
int sym_table_index(struct sym_table *table);

/* The symbol that covers `addr`. 10 to 60 ns: it grows with the size of the table. */
bool sym_table_find(const struct sym_table *table, uint64_t addr, struct sym_found *ret_found);

/* Bytes on the heap. */
size_t sym_table_bytes(const struct sym_table *table);

void sym_table_fini(struct sym_table *table);

#endif
