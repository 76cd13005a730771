/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries unwind tables from resolving, which builds them, to collecting, which loads them into the
 * kernel, and makes room: when the budget is full, the tables that were unused for longest
 * go. Tables that find no room wait here, bounded, for the grace period after which the
 * room of dropped ones is free.
 */
#ifndef AGENT_TABLES_H
#define AGENT_TABLES_H

#include "agent/collect/collect.h"
#include "agent/resolve/resolve.h"

enum { TABLES_MAX_WAITING = 64 };

struct waiting_table {
	uint64_t file;
	struct unwind_table *table; /* NULL: given up for now, ask again when retry_at has come */
	uint32_t retry_at;
};

struct table_feeder {
	struct waiting_table waiting[TABLES_MAX_WAITING];
	size_t waiting_count;
	uint32_t drains;
	uint32_t patience, patience_at; /* see give_up */
	uint64_t given_up; /* tables that found no room though nothing could be dropped */
};

/* After events: loads what was built. */
void tables_feed(struct table_feeder *f, struct collect *c, struct resolver *r);

/* After a drain: tries those that wait. */
void tables_tick(struct table_feeder *f, struct collect *c, struct resolver *r);

/* The vDSO's table, at start. */
void tables_add_vdso(struct collect *c);

void tables_fini(struct table_feeder *f);

#endif
