/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding a perf map in its process's own root, and trusting it no further than needed: the
 * process chooses what lies there. Private to perf_map.c.
 */
#ifndef SYMBOLIZER_PERF_MAP_OPEN_H
#define SYMBOLIZER_PERF_MAP_OPEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* Where a perf map was found, and its state then. */
struct perf_map_source {
	char *proc_root; /* owned by the user of this struct */
	uint32_t pid;    /* or the id of any live thread */
	uint32_t ns_pid;
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime;
};

/*
 * Opens the map for reading and notes its state: an fd, -ENOENT, -EPERM if it is no regular
 * file or not owned by `uid` or root or only reached over a symbolic link, or another -errno.
 */
int perf_map_open(struct perf_map_source *source, uid_t uid);

/* Whether the file at that place is another one or has another state; false if it is gone. */
bool perf_map_has_changed(const struct perf_map_source *source);

#endif
