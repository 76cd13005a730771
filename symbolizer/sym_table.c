/* SPDX-License-Identifier: Apache-2.0 */
/* Look-up in a finished symbol table; see sym_table.h. */
#include "symbolizer/sym_table.h"

#include <stdlib.h>

static uint64_t start_of_resumed(const struct sym_table *table, uint64_t addr)
{
	size_t low = 0, high = table->resumed_count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (table->resumed[middle].addr <= addr)
			low = middle;
		else
			high = middle;
	}
	return table->resumed[low].start;
}

bool sym_table_find(const struct sym_table *table, uint64_t addr, struct sym_found *ret_found)
{
	const struct sym_range *range = table->ranges;
	size_t count = table->count;

	if (count == 0 || addr < range->addr)
		return false;
	/* The last range that begins at or before addr; compiles to conditional moves. */
	while (count > 1) {
		size_t half = count / 2;

		range += range[half].addr <= addr ? half : 0;
		count -= half;
	}
	if (addr - range->addr >= range->size)
		return false;
	ret_found->name = table->names + (range->name & ~SYM_RESUMED);
	ret_found->start =
		range->name & SYM_RESUMED ? start_of_resumed(table, range->addr) : range->addr;
	return true;
}

size_t sym_table_bytes(const struct sym_table *table)
{
	return table->count * sizeof(*table->ranges) +
	       table->resumed_count * sizeof(*table->resumed) + table->names_len;
}

void sym_table_fini(struct sym_table *table)
{
	free(table->ranges);
	free(table->resumed);
	free(table->names);
	*table = (struct sym_table){ 0 };
}
