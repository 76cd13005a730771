/* SPDX-License-Identifier: Apache-2.0 */
/* Private to sym_starts.c: single functions by .eh_frame_hdr; code that is no function. */
#ifndef SYMBOLIZER_SYM_STARTS_TABLE_H
#define SYMBOLIZER_SYM_STARTS_TABLE_H

#include "symbolizer/sym_builder.h"
#include "symbolizer/unwind_index.h"

enum { SYM_STUBS_MAX = 8 };

/* PLT sections: they have unwind data, but no functions. */
struct sym_stubs {
	struct {
		uint64_t start;
		uint64_t end;
	} spans[SYM_STUBS_MAX];
	size_t count;
};

void sym_stubs_find(const struct elf_file *elf, struct sym_stubs *stubs);
bool sym_stubs_have(const struct sym_stubs *stubs, uint64_t addr);

/*
 * The extents that the builder's wanted addresses need, by the sorted table of .eh_frame_hdr: for
 * each the last function that begins at or below it. -ENOENT if there is no such table, or if it
 * does not agree with .eh_frame: then all of that is to be read. Else as sym_starts_add.
 */
int sym_starts_by_table(const struct elf_file *elf, struct unwind_section *section,
			const struct unwind_code *code, struct sym_builder *b);

#endif
