/* SPDX-License-Identifier: Apache-2.0 */
/* Look-up in a finished symbol table; see sym_table.h. */
#include "symbolizer/sym_table.h"

#include <errno.h>
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

int sym_table_index(struct sym_table *table)
{
	uint64_t first, span;
	size_t at = 0;

	if (table->count == 0)
		return 0;
	first = table->ranges[0].addr;
	span = table->ranges[table->count - 1].addr - first;
	while (span >> table->bucket_shift > table->count / 2)
		table->bucket_shift++;
	table->bucket_count = (size_t)(span >> table->bucket_shift) + 1;
	table->buckets = reallocarray(NULL, table->bucket_count + 1, sizeof(*table->buckets));
	if (!table->buckets)
		return -ENOMEM;
	for (size_t i = 0; i < table->bucket_count; i++) {
		uint64_t start = first + ((uint64_t)i << table->bucket_shift);

		while (at + 1 < table->count && table->ranges[at + 1].addr <= start)
			at++;
		table->buckets[i] = (uint32_t)at;
	}
	table->buckets[table->bucket_count] = (uint32_t)(table->count - 1);
	return 0;
}

bool sym_table_find(const struct sym_table *table, uint64_t addr, struct sym_found *ret_found)
{
	const struct sym_range *range = table->ranges;
	size_t bucket, count;

	if (table->count == 0 || addr < range->addr)
		return false;
	bucket = (size_t)((addr - range->addr) >> table->bucket_shift);
	if (bucket >= table->bucket_count)
		bucket = table->bucket_count - 1;
	range += table->buckets[bucket];
	count = table->buckets[bucket + 1] - table->buckets[bucket] + 1;
	/* The last range that begins at or before addr; compiles to conditional moves. */
	while (count > 1) {
		size_t half = count / 2;

		range += range[half].addr <= addr ? half : 0;
		count -= half;
	}
	if (addr - range->addr >= range->size)
		return false;
	ret_found->name = (range->name & SYM_NAMELESS) == SYM_NAMELESS
				  ? NULL
				  : table->names + (range->name & ~SYM_RESUMED);
	ret_found->start =
		range->name & SYM_RESUMED ? start_of_resumed(table, range->addr) : range->addr;
	return true;
}

size_t sym_table_bytes(const struct sym_table *table)
{
	return table->count * sizeof(*table->ranges) +
	       table->resumed_count * sizeof(*table->resumed) +
	       (table->bucket_count + 1) * sizeof(*table->buckets) + table->names_len;
}

void sym_table_fini(struct sym_table *table)
{
	free(table->ranges);
	free(table->resumed);
	free(table->buckets);
	free(table->names);
	*table = (struct sym_table){ 0 };
}
