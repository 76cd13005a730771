/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local store: a directory of window profiles with a cap on size and age, and a catalogue
 * of them in SQLite. Layout:
 *
 *   <dir>/profiles/YYYY-MM-DD/HHMMSS-<type>.pb.gz   one window each, times in UTC; a .1 behind
 *                                                   the type if another began in that second
 *   <dir>/catalogue.db                              time, host, labels, type, file, size
 *   <dir>/journal/                                  see journal.h
 *   <dir>/lock                                      one writer at a time
 *
 * The files are the truth: a catalogue that is missing or damaged is built anew from them, and
 * what is not in it is added at open. Readers need no lock.
 */
#ifndef AGENT_STORE_STORE_H
#define AGENT_STORE_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "proto/profile.h"

struct store;

struct store_options {
	const char *dir;
	uint64_t max_bytes;  /* of profiles; 0: no cap */
	uint64_t max_age_ns; /* 0: no cap */
};

struct store_totals {
	uint64_t written, written_bytes;
	uint64_t dropped_size, dropped_age; /* profiles removed for a cap */
	uint64_t dropped_bytes;
	uint64_t write_errors;
	uint64_t profiles, bytes;  /* there now */
	uint64_t catalogue_errors; /* it is tried again with the next profile */
};

/*
 * Opens for writing: makes the directory, takes the lock. -EBUSY if another agent has it.
 * `reason` gets one line on failure.
 */
int store_open(const struct store_options *options, struct store **ret_store, char *reason,
	       size_t reason_size);
void store_close(struct store *s);

/* New caps, from the next store_add on. */
void store_set_caps(struct store *s, uint64_t max_bytes, uint64_t max_age_ns);

/*
 * Writes a window's profile (temporary name, fsync, rename), notes it in the catalogue, then drops
 * the oldest until the caps hold. `type` is a short word such as "cpu". An equal window and
 * type is replaced: writing again after a crash is harmless. Start and end are those of the profile
 * (time_ns, duration_ns; a window is at most a day). 0 or -errno, and then nothing of it stays on
 * disk; -EINVAL for a time before 1970 or a type with other letters than a-z, 0-9, - and _. A
 * directory that vanished is made and locked again.
 */
int store_add(struct store *s, const struct profile *p, const char *type);

void store_totals(struct store *s, struct store_totals *ret_totals);

/* ---- reading ---- */

/* A profile that overlaps the asked time. */
struct store_entry {
	char *path;
	int64_t start_ns, end_ns;
	char type[32];
};

struct store_list {
	struct store_entry *entries; /* oldest first */
	size_t count;
};

/*
 * The profiles of `dir` that overlap [since_ns, until_ns) (0: open end), by the files' names and
 * the catalogue, or their contents without one. -ENOTDIR / -ENOENT if it is no store.
 */
int store_list(const char *dir, int64_t since_ns, int64_t until_ns, const char *type,
	       struct store_list *ret_list);
void store_list_fini(struct store_list *list);

#endif
