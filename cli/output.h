/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a profile to a file whose form its name tells. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/profile.h"

/* Whether the name has one of the known endings: .pb.gz, .pb.zst, .pb, .folded; or is "-". */
bool output_knows(const char *path);

/*
 * Writes and renames, so that no half file ever has the name; mode 0600, since a profile tells
 * about all users' processes. "-" is standard output, gzip. *ret_bytes is the size.
 */
int output_write(const struct profile *p, const char *path, uint64_t *ret_bytes);

#endif
