/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal of collections: each one is on disk before the next begins, so that a crash loses
 * at most the collection in the making. Files <dir>/journal/<window>-<sequence>.chunk: a header
 * (magic, version, length, CRC-32 of the payload), then the profile as zstd-compressed pprof.
 * Written under another name, synced, renamed: a torn file never has the name, and one
 * that is damaged all the same is set aside as *.bad, counted and never read as good.
 */
#ifndef AGENT_STORE_JOURNAL_H
#define AGENT_STORE_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "proto/profile.h"

struct journal;

struct journal_totals {
	uint64_t written, read, damaged; /* chunks */
	uint64_t bytes;                  /* on disk now */
	uint64_t write_errors;
};

/* Makes <dir>/journal if need be. Returns 0 or -errno. */
int journal_open(const char *dir, struct journal **ret_journal);
void journal_close(struct journal *j);

/* Adds a collection to window number `window` (its start in seconds / window length). */
int journal_append(struct journal *j, uint64_t window, const struct profile *p);

/*
 * Merges all chunks of the oldest window older than `before` into a new profile: 0 and the window's
 * number, -ENOENT if there is none. The chunks stay until journal_remove.
 */
int journal_read_oldest(struct journal *j, uint64_t before, uint64_t *ret_window,
			struct profile **ret_profile);

/* Removes the chunks of a window, after its profile is safe in the store. */
int journal_remove(struct journal *j, uint64_t window);

void journal_totals(const struct journal *j, struct journal_totals *ret_totals);

#endif
