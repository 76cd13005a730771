/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalogue of a store, an SQLite file: one row for each profile, in a form that people can
 * query too. It only repeats what the files say: whoever gets an error here closes it and goes
 * on without.
 *
 *   profiles(file, type, start_ns, end_ns, host, labels, bytes)
 */
#ifndef AGENT_STORE_CATALOGUE_H
#define AGENT_STORE_CATALOGUE_H

#include <stdbool.h>

#include "agent/store/store_files.h"
#include "base/map.h"

struct catalogue;

struct catalogue_row {
	int64_t start_ns, end_ns;
	uint64_t bytes;
};

/*
 * For the one writer: a damaged or foreign file is replaced by an empty one. All functions
 * return 0, -EIO, -EBADMSG (the file is damaged: open again to replace it) or -ENOMEM.
 */
int catalogue_open(const char *path, struct catalogue **ret_catalogue);

/* For readers: changes nothing. */
int catalogue_open_readonly(const char *path, struct catalogue **ret_catalogue);
void catalogue_close(struct catalogue *c);

/* Several changes, synced once. */
int catalogue_begin(struct catalogue *c);
int catalogue_commit(struct catalogue *c);

int catalogue_put(struct catalogue *c, const struct store_name *name,
		  const struct store_facts *facts);
int catalogue_remove(struct catalogue *c, const struct store_name *name);

/* A map for catalogue_load: struct store_name -> struct catalogue_row. */
void catalogue_rows_init(struct map *rows);

/* Adds the rows whose start is in [from_ns, to_ns] to `rows`. */
int catalogue_load(struct catalogue *c, int64_t from_ns, int64_t to_ns, struct map *rows);

#endif
