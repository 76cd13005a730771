/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal of collections: each one is on disk before the next begins, so that a crash loses
 * at most the collection in the making. Files <dir>/journal/<window>-<sequence>.chunk: a header
 * (magic, version, length, CRC-32), then the profile as zstd-compressed pprof; see chunk.h.
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
	uint64_t dropped; /* chunks, oldest first, because there were too many */
};

/*
 * Makes <dir>/journal if need be. Returns 0 or -errno. The caller holds the directory's lock, as
 * store_open takes it. Chunks of earlier windows stay, rubbish goes, damaged ones are set aside.
 */
int journal_open(const char *dir, struct journal **ret_journal);
void journal_close(struct journal *j);

/*
 * Adds a collection to window number `window` (its start in seconds / window length). On -errno
 * (-ENOSPC, -EROFS ...) nothing of it stays on disk: the caller still has it. A directory that
 * vanished is made again.
 */
int journal_append(struct journal *j, uint64_t window, const struct profile *p);

/*
 * Merges all chunks of the oldest window older than `before` into a new profile: 0 and the window's
 * number, -ENOENT if there is none. The chunks stay until journal_remove.
 *
 * Chunks of one window that cannot become one profile (sample types differ, or more than
 * memory allows) come one part after the other, under the same number. A window later than the
 * newest one written is from before the clock was set back, and is given out too.
 */
int journal_read_oldest(struct journal *j, uint64_t before, uint64_t *ret_window,
			struct profile **ret_profile);

/*
 * Removes the chunks of a window, after its profile is safe in the store: those that were read,
 * all or none, also through a crash. 0 or -errno; then the window will be read again.
 */
int journal_remove(struct journal *j, uint64_t window);

void journal_totals(const struct journal *j, struct journal_totals *ret_totals);

#endif
