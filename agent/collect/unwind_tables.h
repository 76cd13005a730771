/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwind tables that the kernel side walks by: rows in mapped arrays, pages that say
 * where the rows of 64 KiB of a file lie, and the dictionary of rules. A table is loaded for
 * a file id, shared by all processes, and dropped when room is needed; its rows and rules are
 * used again only after a grace period.
 */
#ifndef AGENT_COLLECT_UNWIND_TABLES_H
#define AGENT_COLLECT_UNWIND_TABLES_H

#include "agent/collect/extents.h"
#include "agent/collect/rule_set.h"
#include "base/map.h"

enum { ROWS_PER_UNIT = 64 }; /* grain of the allocator: 256 bytes */

struct table_row {
	uint64_t off;
	uint32_t rule; /* index into the table's rules */
};

/* A table as it comes: offsets strictly ascending. */
struct table_rows {
	const struct table_row *rows;
	size_t row_count;
	const struct sonde_rule *rules;
	size_t rule_count;
};

/* The kernel's maps, as file descriptors, and the rows' mapping. */
struct unwind_maps {
	int pages_fd, rules_fd;
	struct sonde_row *rows;
	uint32_t row_capacity; /* a multiple of SONDE_ROWS_PER_ELEMENT */
	/* Makes the rows of an element writable, and seen by the kernel; NULL: they are. */
	int (*provide)(void *context, uint32_t element);
	void *context;
};

struct loaded_table;

struct unwind_tables {
	struct unwind_maps maps;
	struct extents extents;
	struct rule_set rules;
	struct map loaded;            /* file id -> struct loaded_table * */
	struct loaded_table *dropped; /* waiting for a grace period */
	uint64_t loads, drops, refused;
};

int unwind_tables_init(struct unwind_tables *t, const struct unwind_maps *maps);
void unwind_tables_fini(struct unwind_tables *t);

/*
 * Loads a table: 0, -ENOSPC (no room for rows, rules or pages now), -EFBIG (more than half of all
 * rows, or 512 MiB of file), -EEXIST, or -errno; on failure nothing of it stays.
 */
int unwind_tables_add(struct unwind_tables *t, uint64_t file, const struct table_rows *rows);

/*
 * Takes a table out of the kernel's sight; its room comes back with unwind_tables_reclaim. Returns
 * its rows, 0 if there is no such table.
 */
size_t unwind_tables_drop(struct unwind_tables *t, uint64_t file);

/* To be called after a grace period: what was dropped before it is free again. */
void unwind_tables_reclaim(struct unwind_tables *t);

/* Bytes of rows in use. */
uint64_t unwind_tables_bytes(const struct unwind_tables *t);

#endif
