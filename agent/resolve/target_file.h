/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening the file of a sampled mapping: by the process while it lives, by the path that the
 * kernel side sent afterwards. What is opened is verified by inode and mtime, so a file that
 * was replaced or rewritten meanwhile is never taken for the one that ran.
 */
#ifndef AGENT_RESOLVE_TARGET_FILE_H
#define AGENT_RESOLVE_TARGET_FILE_H

#include <limits.h>

#include "agent/collect/events.h"

enum { TARGET_ROOT_BYTES = 256 };

/* What tells a version of a file from all others, as far as stat() shows it. */
struct target_identity {
	uint64_t ino;
	int64_t mtime_sec;
	uint64_t mtime_nsec;
};

struct target_file {
	int fd;              /* to be closed by the caller */
	struct target_identity identity; /* of the record */
	char root[TARGET_ROOT_BYTES]; /* of its process, while that lives */
	char path[PATH_MAX]; /* as the process sees it where known; no " (deleted)" */
};

/*
 * 0, -ENOENT (not found any more), -ESTALE (only another version is there), -EACCES or
 * another -errno. ret_file->path is set in all cases. proc_root is usually "/proc".
 */
int target_file_open(const char *proc_root, const struct sonde_file *record,
		     const struct path_names *names, struct target_file *ret_file);

/* Whether the file behind `fd` is that one still: 0, -ESTALE, -EINVAL (no regular file), -errno. */
int target_file_verify(int fd, const struct target_identity *identity);

/* The path of an open file in the mounts that it was opened through, or NULL. */
const char *target_file_path(int fd, char path[PATH_MAX]);

#endif
