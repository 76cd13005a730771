/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A finished table of symbols: sorted, non-overlapping ranges of addresses, each with a name.
 * 16 bytes a range and one block of names. Made by sym_builder.
 */
#ifndef SYMBOLIZER_SYM_TABLE_H
#define SYMBOLIZER_SYM_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sym_range {
	uint64_t addr;
	uint32_t size;
	uint32_t name; /* offset in names; the top bit is SYM_RESUMED */
};

_Static_assert(sizeof(struct sym_range) == 16, "one cache line holds four");

/* The range goes on with a symbol that began before another one that lies inside it. */
#define SYM_RESUMED 0x80000000u

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
};

struct sym_found {
	const char *name; /* lives with the table */
	uint64_t start;
};

/* The symbol that covers `addr`. About 50 ns in a table of 40,000. */
bool sym_table_find(const struct sym_table *table, uint64_t addr, struct sym_found *ret_found);

/* Bytes on the heap. */
size_t sym_table_bytes(const struct sym_table *table);

void sym_table_fini(struct sym_table *table);

#endif
