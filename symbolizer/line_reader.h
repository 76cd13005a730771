/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits a stream into lines without holding more than one piece of it: the files of JITs and
 * /proc/kallsyms are megabytes long. Private to symbolizer/.
 */
#ifndef SYMBOLIZER_LINE_READER_H
#define SYMBOLIZER_LINE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINE_MAX_LEN = 64 * 1024 };

/* One line without its end ("\n" or "\r\n"). Anything but 0 stops the reading. */
typedef int (*line_fn)(void *ctx, const char *line, size_t len);

/* Where the next line begins in a file that grows. All zero: at its head. */
struct line_cursor {
	uint64_t off;
	uint64_t too_long; /* lines skipped for their length so far */
	bool is_skipping;  /* `off` is inside such a line */
};

/*
 * Calls `take` for each line between the cursor and `end` (or the file's end, if that comes
 * first) and moves the cursor behind the last one. A last line without an end is left for the
 * next time: its writer may be in the middle of it. Lines over LINE_MAX_LEN are skipped and
 * counted. 0, what `take` returned, or -errno.
 */
int lines_from(int fd, struct line_cursor *cursor, uint64_t end, line_fn take, void *ctx);

/* The same for a text in memory, from its head. */
int lines_of_text(const char *text, size_t len, line_fn take, void *ctx, uint64_t *ret_too_long);

#endif
