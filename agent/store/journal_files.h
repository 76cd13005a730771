/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a journal directory by name: <window>-<sequence> and an ending that says what
 * the file is. Sequence numbers grow from file to file, over windows and restarts.
 */
#ifndef AGENT_STORE_JOURNAL_FILES_H
#define AGENT_STORE_JOURNAL_FILES_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum journal_kind {
	JOURNAL_CHUNK,
	/* The window's chunks up to this sequence number are in the store: to be removed. */
	JOURNAL_DONE,
	JOURNAL_BAD, /* set aside */
	JOURNAL_KIND_COUNT,
};

struct journal_file {
	uint64_t window, sequence;
	uint64_t bytes; /* on disk */
};

/* In order of window, then sequence. */
struct journal_files {
	struct journal_file *files;
	size_t count, cap;
};

enum { JOURNAL_NAME_MAX = 64 };

void journal_name(const struct journal_file *file, enum journal_kind kind,
		  char ret_name[JOURNAL_NAME_MAX]);

int journal_files_add(struct journal_files *list, const struct journal_file *file);
void journal_files_remove(struct journal_files *list, size_t first, size_t count);
void journal_files_fini(struct journal_files *list);

/* Fills lists[kind] from the directory and deletes what a write left over. 0 or -errno. */
int journal_files_scan(const char *dir, struct journal_files lists[JOURNAL_KIND_COUNT]);

/* Makes the directory, BASE/name, and BASE, if they are not there: 0 or -errno. */
int journal_folder_make(const char *dir);

/*
 * Writes a chunk file, and its directory too if that was taken away: 0 or -errno, and then none is
 * there: the caller keeps what failed, so it must not come back at the next open.
 */
int journal_file_write(const char *dir, const struct journal_file *file, const struct buf *bytes);

/* Deletes a file; 0 also if it is gone already, else -errno. */
int journal_file_delete(const char *dir, const struct journal_file *file, enum journal_kind kind);

/* Appends the content of a chunk file to `out`. */
int journal_file_read(const char *dir, const struct journal_file *file, struct buf *out);

#endif
