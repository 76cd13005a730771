/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a profile to a file whose form its name tells. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/profile.h"

/* Whether the name has one of the known endings: .pb.gz, .pb.zst, .pb, .folded; or is "-". */
bool output_knows(const char *path);

struct output {
	const char *path; /* borrowed */
	char temporary[PATH_MAX];
	int fd; /* -1: closed */
};

/*
 * Makes a temporary file beside `path`, so that it is known before the work whether it can be
 * written; mode 0600, since a profile tells about all users' processes. A device or pipe is
 * opened itself. "-" is standard output, gzip. 0 or -errno.
 */
int output_open(const char *path, struct output *ret_output);

/* Writes and renames: no half file ever has the name. *ret_bytes is the size. */
int output_write(struct output *o, const struct profile *p, uint64_t *ret_bytes);

/* Removes what was not finished. */
void output_close(struct output *o);

#endif
