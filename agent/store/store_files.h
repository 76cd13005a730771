/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a store: their names, what a walk over the directory finds, and the few facts
 * that the catalogue keeps about each.
 */
#ifndef AGENT_STORE_STORE_FILES_H
#define AGENT_STORE_STORE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "proto/profile.h"

enum { STORE_TYPE_MAX = 32, STORE_DAY_MAX = 16, STORE_NAME_MAX = 80 };

/* No window is longer; what starts earlier than that before a time is over by then. */
#define STORE_WINDOW_MAX_S (24 * 60 * 60)

/*
 * A file's name in numbers: YYYY-MM-DD/HHMMSS-<type>.pb.gz, the start in UTC. Two windows may
 * begin in the same second, when the clock was set back: the later ones are HHMMSS-<type>.1.pb.gz
 * and so on. Compared as bytes: unused bytes are zero.
 */
struct store_name {
	int64_t start_s;
	char type[STORE_TYPE_MAX];
	uint32_t variant, zero;
};

_Static_assert(sizeof(struct store_name) == 48, "no padding");

/* 0 or -EINVAL: a bad type, or a time before 1970. */
int store_name_init(struct store_name *name, int64_t start_ns, const char *type);
void store_name_format(const struct store_name *name, char ret_day[STORE_DAY_MAX],
		       char ret_file[STORE_NAME_MAX]);

/* Only what store_name_format makes, to the letter. */
bool store_name_parse(const char *day, const char *file, struct store_name *ret_name);

/*
 * Calls `visit` for each profile of the days from from_s to to_s (both in them), in no order; ends
 * at its first error. With `clean`, what a write left over is deleted. 0 or -errno.
 */
int store_walk(const char *profiles_dir, int64_t from_s, int64_t to_s, bool clean,
	       int (*visit)(void *context, const struct store_name *name, const struct stat *st),
	       void *context);

struct store_facts {
	int64_t start_ns, end_ns;
	uint64_t bytes;   /* of the file */
	char host[256];   /* of the comment "host: ..." */
	char labels[512]; /* all other comments "word: ...", a line each */
};

void store_facts_of(const struct profile *p, struct store_facts *ret_facts);

/*
 * Writes the facts into the header of a gzip file in `gz` (an extra field, which all readers
 * skip), so that store_facts_read needs the first bytes of the file only. 0 or -errno.
 */
int store_facts_stamp(struct buf *gz, const struct store_facts *facts);

/*
 * The facts of a file: from its header, else (another program's file) from its content, which
 * costs a millisecond. 0, -EBADMSG or -errno.
 */
int store_facts_read(const char *path, struct store_facts *ret_facts);

#endif
