/* SPDX-License-Identifier: Apache-2.0 */
/* What journal.c (the directory, writing, removing) and journal_read.c share. */
#ifndef AGENT_STORE_JOURNAL_PRIVATE_H
#define AGENT_STORE_JOURNAL_PRIVATE_H

#include <stdbool.h>

#include "agent/store/journal.h"
#include "agent/store/journal_files.h"

enum { JOURNAL_MAX_CHUNK = 64 << 20 }; /* bytes of a file, and of memory for its profile */

struct journal {
	char *dir; /* <base>/journal */
	struct journal_files chunks, bad;
	uint64_t next_sequence;
	uint64_t current_window; /* of the newest chunk written since the open */
	bool has_current;
	uint64_t taken_window, taken_sequence; /* what journal_read_oldest gave out last */
	bool has_taken;
	struct journal_totals totals;
};

/* The index of a window's first chunk. */
size_t journal_first_of(const struct journal *j, uint64_t window);

/* Whether an error of reading is the chunk's fault, and not that of memory or descriptors. */
bool journal_is_damage(int err);

/* Makes chunk i a .bad file, counts and forgets it. */
void journal_set_aside(struct journal *j, size_t i);

#endif
