/* SPDX-License-Identifier: Apache-2.0 */
/* Where the code of a file lies, and the FDEs of a section in the order of their code. */
#ifndef SYMBOLIZER_UNWIND_INDEX_H
#define SYMBOLIZER_UNWIND_INDEX_H

#include "symbolizer/unwind_entry.h"

enum { UNWIND_CODE_MAX = 16 }; /* executable segments; others are not looked at */

struct unwind_code {
	struct {
		uint64_t off;
		uint64_t size; /* in the file */
		uint64_t vaddr;
	} segments[UNWIND_CODE_MAX]; /* by offset */
	size_t count;
};

void unwind_code_find(const struct elf_file *elf, struct unwind_code *ret_code);

/* One FDE's code, by file offset, and its entry's position in the section. */
struct unwind_ref {
	uint64_t off;
	uint32_t size;
	uint32_t pos;
};

struct unwind_index {
	struct unwind_ref *refs; /* by offset, each one once; overlaps are not resolved */
	size_t count;
	size_t cap;
	uint32_t fdes;
	uint32_t bad_fdes;
};

/*
 * Reads all FDEs of the section, adding to an index that is zeroed. Damage ends the reading
 * where no next entry can be found. 0, -EFBIG if there are more than `max`, -ENOMEM, -EIO.
 */
int unwind_index_read(struct unwind_index *index, struct unwind_section *s,
		      const struct unwind_code *code, size_t max);
void unwind_index_fini(struct unwind_index *index);

#endif
