/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows on disk that wait to be sent: <dir>/spool/<number>-<start>.chunk, one window each, in the
 * form of the journal's chunks (agent/store/chunk.h), written whole or not at all. Numbers
 * grow from window to window and over restarts, and say the order of sending; how far each sink
 * has come is in <dir>/spool/<sink>.cursor. Over the cap the oldest windows go, whoever still
 * wanted them.
 *
 * Not thread-safe, except spool_load.
 */
#ifndef AGENT_EXPORT_SPOOL_H
#define AGENT_EXPORT_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/profile.h"

struct spool;

struct spool_chunk {
	uint64_t number, start_s;
	uint64_t bytes; /* on disk */
};

struct spool_totals {
	uint64_t chunks, bytes; /* there now */
	uint64_t written, dropped, damaged;
};

/* Makes <dir>/spool if need be: 0 or -errno. The caller holds the lock of <dir>. */
int spool_open(const char *dir, uint64_t max_bytes, struct spool **ret_spool);
void spool_close(struct spool *s);
const char *spool_dir(const struct spool *s);

/*
 * Adds a window, then drops the oldest ones over the cap. One with the same start, to the ns, as one
 * of the two added last is known already and not added again: a store that failed makes the windows
 * of samples and of the scheduler's accounts come again and again. 0 or -errno, and then nothing of
 * it stays.
 */
int spool_add(struct spool *s, const struct profile *p);

/* The first chunk with a number >= from. */
bool spool_next(const struct spool *s, uint64_t from, struct spool_chunk *ret_chunk);

/* Chunks with numbers >= from, and their bytes on disk. */
uint64_t spool_count(const struct spool *s, uint64_t from);
uint64_t spool_bytes(const struct spool *s, uint64_t from);

/* The number that the next window will get, and the least that it may be: cursors reach as far. */
uint64_t spool_end(const struct spool *s);
void spool_begin_at(struct spool *s, uint64_t number);

/* Any thread: 0, -ENOENT if it went meanwhile, -EBADMSG for damage, or -errno. */
int spool_load(const char *dir, const struct spool_chunk *chunk, struct profile **ret_profile);

/* Removes all chunks with numbers below. */
void spool_remove_below(struct spool *s, uint64_t number);

/* A damaged chunk goes out of the way: <number>-<start>.bad; the newest 16 stay. */
void spool_set_aside(struct spool *s, const struct spool_chunk *chunk);

void spool_totals(const struct spool *s, struct spool_totals *ret_totals);

/* How far a sink has come: the number of the window to send next. 0 if nothing is known. */
uint64_t spool_read_cursor(const char *dir, const char *sink);
int spool_write_cursor(const char *dir, const char *sink, uint64_t number);

#endif
