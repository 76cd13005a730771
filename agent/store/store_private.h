/* SPDX-License-Identifier: Apache-2.0 */
/* What store.c (open, write) and store_index.c (what is there, caps, catalogue) share. */
#ifndef AGENT_STORE_STORE_PRIVATE_H
#define AGENT_STORE_STORE_PRIVATE_H

#include <stdbool.h>

#include "agent/store/catalogue.h"
#include "agent/store/store.h"
#include "agent/store/store_files.h"

struct store_file {
	struct store_name name;
	int64_t written_s; /* mtime */
	uint64_t bytes;
};

struct store {
	char *dir, *profiles_dir, *catalogue_path, *lock_path;
	int lock_fd;
	uint64_t max_bytes, max_age_ns;
	int64_t longest_gap_s; /* that counts as recorded time, by the last window's length */

	/* Oldest first, by the later of start and mtime: setting the clock makes none too old. */
	struct store_file *files;
	size_t count, cap;

	struct catalogue *catalogue; /* NULL while it cannot be used */
	bool catalogue_behind;       /* it does not say what the files say */
	struct store_totals totals;
};

void store_path(const struct store *s, const struct store_name *name, char path[]);

/* Fills the index from the directory anew. 0 or -errno. */
int store_index_build(struct store *s);

/* NULL if there is no such file. */
const struct store_file *store_index_find(const struct store *s, const struct store_name *name);

/* Adds a file, or sets the size and time of one that is there. 0 or -ENOMEM. */
int store_index_put(struct store *s, const struct store_name *name, int64_t written_s,
		    uint64_t bytes);

/* Makes the catalogue say what the index says, if it can be done: see catalogue_behind. */
void store_catalogue_sync(struct store *s);

/*
 * After a write: notes `fresh` in the catalogue and drops the oldest until the caps hold, but never
 * `fresh` itself.
 */
void store_settle(struct store *s, const struct store_name *fresh, const struct store_facts *facts);

#endif
