/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions by .eh_frame_hdr; see sym_starts_table.h.
 *
 * Behind its head (version 1, three encodings, the address of .eh_frame, a count) linkers put pairs
 * of 4 bytes, relative to the header: where a function begins, and where its FDE is; sorted.
 */
#include "symbolizer/sym_starts_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/elf_plt.h"
#include "symbolizer/sym_starts.h"
#include "symbolizer/unwind_dwarf.h"

enum { HEAD = 12, EMPTY_MAX = 64 };

struct pair {
	int32_t start;
	int32_t fde;
};

struct table {
	struct pair *pairs;
	size_t count;
	uint64_t vaddr; /* of the header */
};

void sym_stubs_find(const struct elf_file *elf, struct sym_stubs *stubs)
{
	stubs->count = 0;
	for (size_t i = 0; i < elf->section_count && stubs->count < SYM_STUBS_MAX; i++) {
		const Elf64_Shdr *s = &elf->sections[i];

		if (s->sh_size <= UINT64_MAX - s->sh_addr && elf_plt_is_section(elf, s)) {
			stubs->spans[stubs->count].start = s->sh_addr;
			stubs->spans[stubs->count++].end = s->sh_addr + s->sh_size;
		}
	}
}

bool sym_stubs_have(const struct sym_stubs *stubs, uint64_t addr)
{
	for (size_t i = 0; i < stubs->count; i++) {
		if (addr >= stubs->spans[i].start && addr < stubs->spans[i].end)
			return true;
	}
	return false;
}

static bool is_sorted(const struct table *t)
{
	for (size_t i = 1; i < t->count; i++) {
		if (t->pairs[i].start < t->pairs[i - 1].start)
			return false;
	}
	return true;
}

static int read_table(const struct elf_file *elf, struct table *ret_table)
{
	static const uint8_t usual[4] = { 1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_udata4,
					  DW_EH_PE_datarel | DW_EH_PE_sdata4 };
	const Elf64_Phdr *hdr = elf_segment_by_type(elf, PT_GNU_EH_FRAME);
	struct table t = { 0 };
	uint8_t head[HEAD];
	uint32_t count;

	if (!hdr || hdr->p_filesz < HEAD ||
	    elf_source_read(&elf->source, hdr->p_offset, head, HEAD) ||
	    memcmp(head, usual, sizeof(usual)) != 0)
		return -ENOENT;
	memcpy(&count, head + 8, sizeof(count));
	if (count == 0 || count > SYM_STARTS_MAX ||
	    (hdr->p_filesz - HEAD) / sizeof(struct pair) < count ||
	    !elf_in_file(elf, hdr->p_offset, hdr->p_filesz))
		return -ENOENT;
	t = (struct table){ reallocarray(NULL, count, sizeof(*t.pairs)), count, hdr->p_vaddr };
	if (!t.pairs)
		return -ENOMEM;
	if (elf_source_read(&elf->source, hdr->p_offset + HEAD, t.pairs,
			    count * sizeof(*t.pairs)) ||
	    !is_sorted(&t)) {
		free(t.pairs);
		return -ENOENT;
	}
	*ret_table = t;
	return 0;
}

/* The extent of pair `i`: 0, -ENOENT if there is no such FDE, or another -errno. */
static int read_extent(const struct table *t, size_t i, struct unwind_section *s,
		       struct sym_extent *ret_extent)
{
	uint64_t start = t->vaddr + (uint64_t)(int64_t)t->pairs[i].start;
	uint64_t pos = t->vaddr + (uint64_t)(int64_t)t->pairs[i].fde - s->vaddr, next;
	struct unwind_entry entry;
	struct unwind_fde fde;
	int err = unwind_entry_read(s, pos, &entry);

	if (!err && entry.kind != UNWIND_ENTRY_FDE)
		err = -EBADMSG;
	if (!err)
		err = unwind_fde_read(s, &entry, false, &fde);
	if (!err && fde.start != start)
		err = -EBADMSG;
	if (err)
		return err == -ENOMEM || err == -EIO ? err : -ENOENT;
	*ret_extent = (struct sym_extent){ start, fde.size < UINT32_MAX ? fde.size : UINT32_MAX };
	next = i + 1 < t->count ? (uint64_t)((int64_t)t->pairs[i + 1].start - t->pairs[i].start)
				: UINT64_MAX;
	if (ret_extent->size > next)
		ret_extent->size = next;
	return 0;
}

/* Whether the extent begins in the file's code; it is cut to that. */
static bool is_function(const struct unwind_code *code, const struct sym_stubs *stubs,
			struct sym_extent *e)
{
	for (size_t i = 0; i < code->count; i++) {
		uint64_t at = e->addr - code->segments[i].vaddr;

		if (e->addr < code->segments[i].vaddr || at >= code->segments[i].size)
			continue;
		if (e->size > code->segments[i].size - at)
			e->size = code->segments[i].size - at;
		return e->size > 0 && !sym_stubs_have(stubs, e->addr);
	}
	return false;
}

/* Number of pairs that begin at or below the address. */
static size_t pairs_below(const struct table *t, uint64_t addr)
{
	size_t low = 0, high = t->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->vaddr + (uint64_t)(int64_t)t->pairs[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int take_wanted(const struct table *t, struct unwind_section *s,
		       const struct unwind_code *code, const struct sym_stubs *stubs,
		       const struct sym_wanted *wanted, struct sym_extent *extents,
		       size_t *ret_count)
{
	size_t count = 0;

	for (size_t i = 0; i < wanted->count; i++) {
		size_t at = pairs_below(t, wanted->addrs[i]);
		size_t least = at > EMPTY_MAX ? at - EMPTY_MAX : 0;
		struct sym_extent e = { 0, 0 };
		int err;

		/* Functions that were optimised to nothing keep an empty FDE. */
		for (; at > least; at--) {
			err = read_extent(t, at - 1, s, &e);
			if (err)
				return err;
			if (is_function(code, stubs, &e))
				break;
		}
		if (at > least && (count == 0 || extents[count - 1].addr < e.addr))
			extents[count++] = e;
	}
	*ret_count = count;
	return 0;
}

int sym_starts_by_table(const struct elf_file *elf, struct unwind_section *section,
			const struct unwind_code *code, struct sym_builder *b)
{
	struct sym_extent *extents;
	struct sym_stubs stubs;
	size_t count = 0;
	struct table t;
	int err = read_table(elf, &t);

	if (err)
		return err;
	sym_stubs_find(elf, &stubs);
	extents = reallocarray(NULL, b->wanted.count, sizeof(*extents));
	err = extents ? take_wanted(&t, section, code, &stubs, &b->wanted, extents, &count)
		      : -ENOMEM;
	free(t.pairs);
	if (!err)
		return sym_builder_take_extents(b, extents, count);
	free(extents);
	return err;
}
