/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that frames refer to, by file id: opened when first seen, read by reader.h. Thread: the
 * loop's.
 */
#ifndef AGENT_RESOLVE_FILES_H
#define AGENT_RESOLVE_FILES_H

#include "agent/collect/events.h"
#include "agent/resolve/known.h"
#include "agent/resolve/reader.h"
#include "base/clock.h"

/* A file that has been announced. */
struct known_file {
	struct sym_file *symbols; /* NULL unless reason is SYM_OK */
	enum sym_reason reason;
	nsec_t reading;           /* symbols are on their way since then; 0: they are not */
	char *path;               /* as the process sees it, as far as known; raw bytes */
	uint32_t mapping_id;      /* in the profile numbered `profile`; 0: none yet */
	uint32_t profile;
};

/* An unwind table that was built, on its way to the kernel side; NULL: the file has none. */
struct built_table {
	struct built_table *next;
	uint64_t file;
	struct unwind_table *table;
};

struct file_table {
	struct known_table known;
	struct built_table *built; /* oldest first */
	struct built_table **built_end;
	struct sym_file_options options;
	const char *proc_root;
	size_t budget;       /* for all symbol tables together */
	bool no_reading;     /* over the CPU budget: announced files are not read for now */
	struct forget_list again;   /* ids that shall be announced again */
	nsec_t retried;             /* since the start; when all without room were tried again */
	struct reader *reader;
	uint32_t symbols_due;       /* files whose symbols were not answered yet */
	uint64_t opened, failed;    /* symbols read; not read for an error */
	uint64_t put_off;           /* announced when the reader had too much to do */
};

/* 0 or -errno. The options' strings are borrowed. */
int file_table_init(struct file_table *t, const char *proc_root, size_t budget,
		    const struct sym_file_options *options);
void file_table_fini(struct file_table *t);

/*
 * Takes in a file event: opens the file and has the reader build its unwind table, and load its
 * symbols unless they are there. Returns true if the kernel side shall be told to ask again, since
 * the file could not be opened, or the reader has no room.
 */
bool file_table_event(struct file_table *t, const struct event *event, uint32_t now);

/* NULL if the file was never announced. */
struct known_file *file_table_find(struct file_table *t, uint64_t id, uint32_t now);

/* Takes in, and takes over, a table or symbols that the reader has finished. */
void file_table_take(struct file_table *t, const struct read_result *result, uint32_t now);

/* Whether the symbols of the file are on their way, and worth waiting for: at most half a minute. */
bool file_table_is_reading(const struct file_table *t, const struct known_file *file);

/*
 * After drain `now`, `elapsed` since the start: forgets what was unused for an hour, and adds to
 * `list` what shall be announced again since it went, found no room or changed while it was read.
 */
void file_table_tick(struct file_table *t, uint32_t now, nsec_t elapsed, struct forget_list *list);

/* Frees all symbol tables; the files' ids are added to `list`, so that they are announced again. */
void file_table_drop(struct file_table *t, struct forget_list *list);

/* Reads no more files, or reads again; then those left out meanwhile are added to `list`. */
void file_table_set_reading(struct file_table *t, bool read_files, struct forget_list *list);

/* The next built table: false if there is none. *ret_table is the caller's, or NULL. */
bool file_table_next_built(struct file_table *t, uint64_t *ret_file,
			   struct unwind_table **ret_table);

/* Bytes of all symbol tables, those that wait to be fetched included. Walks the table. */
size_t file_table_bytes(const struct file_table *t);

#endif
