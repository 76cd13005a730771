/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are there in whole or not at all, also after a crash or a power cut. */
#ifndef AGENT_STORE_DURABLE_H
#define AGENT_STORE_DURABLE_H

#include <stdbool.h>
#include <stddef.h>

/* What is being written has this ending; what has it after a crash is rubbish. */
#define DURABLE_TEMPORARY ".tmp"

/*
 * Writes dir/name under a temporary name, syncs it, renames it and syncs the directory: 0
 * or -errno, and then no part of it stays. Takes the place of a file that has the name. Mode 0600:
 * a profile tells about all users' processes.
 */
int durable_write(const char *dir, const char *name, const void *bytes, size_t len);

/* Renames within a directory and syncs that: 0 or -errno. */
int durable_rename(const char *dir, const char *from, const char *to);

/* Makes a directory, mode 0700, in one that is there: 0 (also if it was there) or -errno. */
int durable_mkdir(const char *path);

int durable_sync_dir(const char *dir);

/* Whether `name` is left over from a write that did not end. */
bool durable_is_left_over(const char *name);

#endif
