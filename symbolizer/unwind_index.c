/* SPDX-License-Identifier: Apache-2.0 */
/* The FDEs of a section, sorted; see unwind_index.h. */
#include "symbolizer/unwind_index.h"

#include <errno.h>
#include <stdlib.h>

enum {
	FIRST_CAP = 256,
	ZEROS_MAX = 64 * 1024, /* lengths of 0: one a joined section is usual */
};

static int compare_segments(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b; /* the offset comes first */

	return (*left > *right) - (*left < *right);
}

void unwind_code_find(const struct elf_file *elf, struct unwind_code *ret_code)
{
	struct unwind_code code = { .count = 0 };

	for (size_t i = 0; i < elf->segment_count && code.count < UNWIND_CODE_MAX; i++) {
		const Elf64_Phdr *s = &elf->segments[i];

		if (s->p_type != PT_LOAD || !(s->p_flags & PF_X) || s->p_filesz == 0 ||
		    !elf_in_file(elf, s->p_offset, s->p_filesz) ||
		    s->p_filesz > UINT64_MAX - s->p_vaddr)
			continue;
		code.segments[code.count].off = s->p_offset;
		code.segments[code.count].size = s->p_filesz;
		code.segments[code.count++].vaddr = s->p_vaddr;
	}
	qsort(code.segments, code.count, sizeof(code.segments[0]), compare_segments);
	*ret_code = code;
}

/* The part of an FDE's code that is in a segment; false if its start is in none. */
static bool place_in_file(const struct unwind_code *code, const struct unwind_fde *fde,
			  struct unwind_ref *ref)
{
	for (size_t i = 0; i < code->count; i++) {
		uint64_t at = fde->start - code->segments[i].vaddr, size;

		if (fde->start < code->segments[i].vaddr || at >= code->segments[i].size)
			continue;
		size = code->segments[i].size - at;
		size = fde->size < size ? fde->size : size;
		ref->off = code->segments[i].off + at;
		ref->size = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
		return true;
	}
	return false;
}

static int add_ref(struct unwind_index *index, const struct unwind_ref *ref, size_t max)
{
	struct unwind_ref *refs;
	size_t cap = index->cap ? index->cap + index->cap / 2 : FIRST_CAP;

	if (index->count == index->cap) {
		if (index->count >= max)
			return -EFBIG;
		refs = reallocarray(index->refs, cap, sizeof(*refs));
		if (!refs)
			return -ENOMEM;
		index->refs = refs;
		index->cap = cap;
	}
	index->refs[index->count++] = *ref;
	return 0;
}

static int take_fde(struct unwind_index *index, struct unwind_section *s,
		    const struct unwind_code *code, const struct unwind_entry *entry,
		    struct unwind_ref *ref, size_t max)
{
	struct unwind_fde fde;
	int err;

	index->fdes++;
	err = unwind_fde_read(s, entry, false, &fde);
	if (err == -EBADMSG || (!err && !place_in_file(code, &fde, ref))) {
		index->bad_fdes++;
		return 0;
	}
	/* Functions that were optimised to nothing keep an empty FDE. */
	return err || ref->size == 0 ? err : add_ref(index, ref, max);
}

static int compare_refs(const void *a, const void *b)
{
	const struct unwind_ref *left = a, *right = b;

	if (left->off != right->off)
		return left->off < right->off ? -1 : 1;
	return (left->pos > right->pos) - (left->pos < right->pos);
}

static bool is_sorted(const struct unwind_index *index)
{
	for (size_t i = 1; i < index->count; i++) {
		if (compare_refs(&index->refs[i - 1], &index->refs[i]) > 0)
			return false;
	}
	return true;
}

/* Sorts, and of those that begin together keeps the first of the section. */
static void sort(struct unwind_index *index)
{
	size_t kept = 0;

	if (!is_sorted(index))
		qsort(index->refs, index->count, sizeof(*index->refs), compare_refs);
	for (size_t i = 0; i < index->count; i++) {
		if (kept == 0 || index->refs[i].off != index->refs[kept - 1].off)
			index->refs[kept++] = index->refs[i];
	}
	index->count = kept;
}

int unwind_index_read(struct unwind_index *index, struct unwind_section *s,
		      const struct unwind_code *code, size_t max)
{
	struct unwind_entry entry;
	size_t zeros = 0;
	int err = 0;

	for (uint64_t pos = 0; s->entries.size - pos >= 4 && pos <= UINT32_MAX; pos = entry.end) {
		struct unwind_ref ref = { .pos = (uint32_t)pos };

		err = unwind_entry_read(s, pos, &entry);
		if (err)
			break;
		/* Data may follow a terminator: that of an object in the middle of the link. */
		if (entry.kind == UNWIND_ENTRY_ZERO && (s->size_unknown || ++zeros > ZEROS_MAX))
			break;
		if (entry.kind == UNWIND_ENTRY_BAD)
			index->bad_fdes++;
		if (entry.kind != UNWIND_ENTRY_FDE)
			continue;
		err = take_fde(index, s, code, &entry, &ref, max);
		if (err)
			break;
	}
	if (err == -EBADMSG || err == -EDQUOT) {
		index->bad_fdes++;
		err = 0;
	}
	sort(index);
	return err;
}

void unwind_index_fini(struct unwind_index *index)
{
	free(index->refs);
	*index = (struct unwind_index){ 0 };
}
