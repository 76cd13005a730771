/* SPDX-License-Identifier: Apache-2.0 */
/* Extents of functions from FDEs; see sym_starts.h. */
#include "symbolizer/sym_starts.h"

#include <errno.h>
#include <stdlib.h>

#include "symbolizer/sym_starts_table.h"
#include "symbolizer/unwind_index.h"
#include "symbolizer/unwind_source.h"

static bool to_vaddr(const struct unwind_code *code, uint64_t off, uint64_t *ret_vaddr)
{
	for (size_t i = 0; i < code->count; i++) {
		if (off >= code->segments[i].off &&
		    off - code->segments[i].off < code->segments[i].size) {
			*ret_vaddr = off - code->segments[i].off + code->segments[i].vaddr;
			return true;
		}
	}
	return false;
}

static int compare_extents(const void *a, const void *b)
{
	const struct sym_extent *left = a, *right = b;

	return (left->addr > right->addr) - (left->addr < right->addr);
}

/* They come by file offset, which mostly is the order of their addresses too. */
static bool is_sorted(const struct sym_extent *extents, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		if (extents[i].addr < extents[i - 1].addr)
			return false;
	}
	return true;
}

/* Each one ends at the latest where the next begins. */
static size_t tidy(struct sym_extent *extents, size_t count)
{
	size_t kept = 0;

	if (!is_sorted(extents, count))
		qsort(extents, count, sizeof(*extents), compare_extents);
	for (size_t i = 0; i < count; i++) {
		if (i + 1 < count && extents[i].size > extents[i + 1].addr - extents[i].addr)
			extents[i].size = extents[i + 1].addr - extents[i].addr;
		if (extents[i].size > 0)
			extents[kept++] = extents[i];
	}
	return kept;
}

static int take_index(const struct elf_file *elf, const struct unwind_index *index,
		      const struct unwind_code *code, struct sym_builder *b)
{
	struct sym_extent *extents = reallocarray(NULL, index->count + 1, sizeof(*extents));
	struct sym_stubs stubs;
	size_t count = 0;

	if (!extents)
		return -ENOMEM;
	sym_stubs_find(elf, &stubs);
	for (size_t i = 0; i < index->count; i++) {
		uint64_t vaddr;

		if (to_vaddr(code, index->refs[i].off, &vaddr) && !sym_stubs_have(&stubs, vaddr))
			extents[count++] = (struct sym_extent){ vaddr, index->refs[i].size };
	}
	count = tidy(extents, count);
	return sym_builder_take_extents(b, extents, count);
}

int sym_starts_add(const struct elf_file *elf, struct sym_builder *b)
{
	struct unwind_section section;
	struct unwind_index index = { 0 };
	struct unwind_code code;
	int err;

	err = unwind_source_eh_frame(elf, &section);
	if (err)
		return err == -ENOMEM || err == -EIO ? err : 0;
	unwind_code_find(elf, &code);
	err = b->wanted.count ? sym_starts_by_table(elf, &section, &code, b) : -ENOENT;
	if (err != -ENOENT)
		goto out;
	err = unwind_index_read(&index, &section, &code, SYM_STARTS_MAX);
	if (!err)
		err = take_index(elf, &index, &code, b);
out:
	unwind_index_fini(&index);
	unwind_section_fini(&section);
	return err;
}
