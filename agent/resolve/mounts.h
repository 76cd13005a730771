/* SPDX-License-Identifier: Apache-2.0 */
/* The mounts that this process sees, to find a file by its device and its path inside it. */
#ifndef AGENT_RESOLVE_MOUNTS_H
#define AGENT_RESOLVE_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct mount {
	uint32_t major, minor;
	const char *root;  /* path in its file system that is mounted; "/" mostly */
	const char *point; /* where */
};

struct mounts {
	struct buf text; /* holds the strings */
	struct mount *list;
	size_t count;
};

/* Reads a mountinfo file (proc_pid_mountinfo(5)); lines that make no sense are skipped. */
int mounts_load(const char *path, struct mounts *ret_mounts);

/* The same from text that is changed in place; *m takes over `text`. */
int mounts_parse(struct buf *text, struct mounts *ret_mounts);
void mounts_fini(struct mounts *m);

/*
 * Where the file `path` (from the root of its file system) is visible through mount `m`:
 * false if it lies outside of the mounted part or is too long.
 */
bool mount_translate(const struct mount *m, const char *path, char *out, size_t size);

#endif
