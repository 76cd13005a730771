/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source lines and inlined calls of a Go program, out of its pclntab, which is kept in memory:
 * about a fifth of the program's size.
 */
#ifndef SYMBOLIZER_GO_LINES_H
#define SYMBOLIZER_GO_LINES_H

#include "symbolizer/go_pclntab.h"
#include "symbolizer/symbolizer.h"

enum { GO_LINES_MAX = 16 * 1024 * 1024 }; /* larger tables are not kept */

struct go_lines;

/*
 * 0, -ENOENT (no Go program), -EBADMSG, -EFBIG (over GO_LINES_MAX), -ENOMEM, -EIO. Layouts of before
 * Go 1.18 give no inlined calls.
 */
int go_lines_load(const struct elf_file *elf, struct go_lines **ret_lines);

/* The same for tables in memory, which are copied; `trees` are the bytes at the functions' data. */
int go_lines_parse(const uint8_t *table, size_t size, uint64_t text, const uint8_t *trees,
		   size_t trees_size, struct go_lines **ret_lines);
void go_lines_free(struct go_lines *lines);

size_t go_lines_bytes(const struct go_lines *lines);

/* The calls that the code at `pc` belongs to, the function itself last; 0 if it is not known. */
size_t go_lines_find(const struct go_lines *lines, uint64_t pc, struct sym_line *ret_lines,
		     size_t max);

#endif
