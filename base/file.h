/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading files in whole or in part, with bounds, without mmap: a file of somebody else may
 * be truncated under a mapping, which kills the reader.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"

/*
 * Reads exactly `len` bytes at `off`: 0, -ENODATA if the file ends before, or -errno.
 */
int file_read_at(int fd, void *to, size_t len, off_t off);

/*
 * Appends the whole file (to its end, also where its size reads as 0, as in /proc) to `out`,
 * whose bound applies: 0, -ENOSPC when the file is larger than the bound, or -errno.
 */
int file_read_all(int fd, struct buf *out);
int file_read_path(const char *path, struct buf *out);

/*
 * Opens a regular file for reading, by a path that somebody else may have a say in: what is there is
 * looked at before it is opened, since to open a device or a FIFO can have effects. Needs /proc. A
 * descriptor, -EPERM for anything but a regular file, or -errno.
 */
int file_open_regular(const char *path);

/* The same of what an O_PATH descriptor stands for; that one stays open. */
int file_open_place(int place_fd);

/* Writes all `len` bytes: 0 or -errno. */
int file_write_all(int fd, const void *bytes, size_t len);

#endif
