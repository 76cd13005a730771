/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits a stream into lines without holding more than one piece of it: the files of JITs and
 * /proc/kallsyms are megabytes long. Private to symbolizer/.
 */
#ifndef SYMBOLIZER_LINE_READER_H
#define SYMBOLIZER_LINE_READER_H

#include <stddef.h>
#include <stdint.h>

enum { LINE_MAX_LEN = 64 * 1024 };

/* One line without its end ("\n" or "\r\n"). Anything but 0 stops the reading. */
typedef int (*line_fn)(void *ctx, const char *line, size_t len);

/*
 * Calls `take` for each line of the file or text. A last line without an end is left out: its
 * writer may be in the middle of it. Lines over LINE_MAX_LEN are skipped and counted.
 * 0, what `take` returned, -EFBIG if there are more than max_bytes, or -errno.
 */
int lines_of_fd(int fd, uint64_t max_bytes, line_fn take, void *ctx, uint64_t *ret_too_long);
int lines_of_text(const char *text, size_t len, line_fn take, void *ctx, uint64_t *ret_too_long);

#endif
