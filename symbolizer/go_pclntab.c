/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions out of pclntab; see go_pclntab.h.
 *
 * The table of functions is read in pieces; then, in the order of their positions, the small
 * records that hold the names' offsets; then the names, as those of any string table. So the
 * memory needed is that of the result, however large the table is.
 */
#include "symbolizer/go_pclntab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/elf_names.h"

enum { PIECE = 4096, WINDOW = 256 * 1024 };

static uint64_t read_uint(const uint8_t *p, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, p, size); /* little-endian files on a little-endian machine */
	return value;
}

/* Fields of the header behind the first 8 bytes, by layout; -1: not there. */
static const struct layout {
	uint32_t magic;
	uint8_t version;
	int8_t text, names, units, files, pctab, functab;
	uint8_t fields; /* of pointer size, in all */
} layouts[] = {
	{ 0xfffffffb, 2, -1, -1, -1, -1, -1, -1, 1 },
	{ 0xfffffffa, 16, -1, 2, 3, 4, 5, 6, 7 },
	{ 0xfffffff0, 18, 2, 3, 4, 5, 6, 7, 8 },
	{ 0xfffffff1, 20, 2, 3, 4, 5, 6, 7, 8 },
};

static size_t pc_size(const struct go_header *h)
{
	return h->version >= 18 ? 4 : h->ptr_size;
}

static uint64_t field(const uint8_t *bytes, const struct go_header *h, int number, uint64_t missing)
{
	return number < 0 ? missing : read_uint(bytes + 8 + number * h->ptr_size, h->ptr_size);
}

int go_header_parse(const uint8_t *bytes, size_t len, uint64_t size, struct go_header *ret_header)
{
	struct go_header h = { .size = size };
	const struct layout *l = layouts, *end = l + sizeof(layouts) / sizeof(*l);

	if (len < 8)
		return -ENOENT;
	while (l < end && l->magic != (uint32_t)read_uint(bytes, 4))
		l++;
	if (l == end || bytes[4] || bytes[5])
		return -ENOENT;
	h.version = l->version;
	h.quantum = bytes[6];
	h.ptr_size = bytes[7];
	if ((h.quantum != 1 && h.quantum != 2 && h.quantum != 4) ||
	    (h.ptr_size != 4 && h.ptr_size != 8))
		return -ENOENT;
	if (len < 8 + (size_t)l->fields * h.ptr_size)
		return -EBADMSG;
	h.func_count = field(bytes, &h, 0, 0);
	h.text = field(bytes, &h, l->text, 0);
	h.names = field(bytes, &h, l->names, 0);
	h.units = field(bytes, &h, l->units, 0);
	h.files = field(bytes, &h, l->files, 0);
	h.pctab = field(bytes, &h, l->pctab, 0);
	h.functab = field(bytes, &h, l->functab, 8 + h.ptr_size);
	if (h.func_count == 0 || h.func_count > GO_FUNCS_MAX || h.names >= size ||
	    h.functab >= size || (2 * h.func_count + 1) * pc_size(&h) > size - h.functab)
		return -EBADMSG;
	*ret_header = h;
	return 0;
}

struct reader {
	const struct elf_file *elf;
	const struct go_place *place;
	struct sym_builder *b;
	uint64_t text;
	size_t first; /* candidate of this table */
};

/* A function begins at `addr`; the one before it ends there. */
static void end_last(const struct reader *r, uint64_t addr)
{
	struct sym_candidate *last = &r->b->candidates[r->b->count - 1];

	last->size = addr > last->addr ? addr - last->addr : 0;
}

static int take_pair(struct reader *r, const uint8_t *pair)
{
	const struct go_header *h = &r->place->header;
	uint64_t addr = r->text + read_uint(pair, pc_size(h));
	uint64_t record = read_uint(pair + pc_size(h), pc_size(h));
	/* Records are counted from the functions' table, in the oldest layout from the header. */
	uint64_t at = record + (h->version == 2 ? 0 : h->functab);
	struct sym_candidate c = {
		.addr = addr,
		.name = (uint32_t)at,
		.rank = SYM_RANK_PREFERRED | SYM_RANK_SIZED | SYM_RANK_TYPED,
	};

	if (record > h->size || at > h->size)
		return -EBADMSG;
	if (r->b->count > r->first) {
		if (addr < r->b->candidates[r->b->count - 1].addr)
			return -EBADMSG;
		end_last(r, addr);
	}
	return sym_builder_add(r->b, &c);
}

/* Adds each function, named by the place of its record for now. */
static int take_functab(struct reader *r)
{
	const struct go_header *h = &r->place->header;
	size_t size = 2 * pc_size(h);
	uint64_t off = r->place->off + h->functab, left = h->func_count;
	uint8_t *piece = malloc(PIECE * 2 * 8), end[8];
	int err = piece ? 0 : -ENOMEM;

	while (left > 0 && !err) {
		size_t n = left < PIECE ? (size_t)left : PIECE;

		err = elf_source_read(&r->elf->source, off, piece, n * size);
		for (size_t i = 0; i < n && !err; i++)
			err = take_pair(r, piece + i * size);
		off += n * size;
		left -= n;
	}
	if (!err)
		err = elf_source_read(&r->elf->source, off, end, pc_size(h));
	if (!err)
		end_last(r, r->text + read_uint(end, pc_size(h)));
	free(piece);
	return err;
}

/* From the places of records to those of names, a window at a time. */
static int take_records(struct reader *r)
{
	const struct go_header *h = &r->place->header;
	size_t entry_size = h->version >= 18 ? 4 : h->ptr_size;
	uint64_t begin = 0, end = 0;
	uint8_t *window;
	int err;

	err = sym_builder_sort_by_name(r->b, r->first);
	if (err)
		return err;
	window = malloc(WINDOW);
	if (!window)
		return -ENOMEM;
	for (size_t i = r->first; i < r->b->count && !err; i++) {
		uint64_t at = r->b->candidates[i].name + entry_size;

		if (at + 4 > h->size) {
			err = -EBADMSG;
			break;
		}
		if (at + 4 > end) {
			begin = at;
			end = h->size - begin < WINDOW ? h->size : begin + WINDOW;
			err = elf_source_read(&r->elf->source, r->place->off + begin, window,
					      (size_t)(end - begin));
		}
		if (!err)
			r->b->candidates[i].name = (uint32_t)read_uint(window + (at - begin), 4);
	}
	free(window);
	return err;
}

/* All of the table is in one executable segment, or the text's address was wrong. */
static bool is_in_code(const struct reader *r)
{
	const struct sym_candidate *first = &r->b->candidates[r->first];
	const struct sym_candidate *last = &r->b->candidates[r->b->count - 1];
	const Elf64_Phdr *segment = elf_exec_segment(r->elf, first->addr);

	return segment && last->addr - segment->p_vaddr < segment->p_memsz &&
	       last->size <= segment->p_memsz - (last->addr - segment->p_vaddr);
}

static int take_all(struct reader *r)
{
	const struct go_header *h = &r->place->header;
	struct elf_strings names = { r->place->off + h->names, h->size - h->names };
	size_t functions;
	int err;

	if (h->size > GO_PCLNTAB_MAX)
		return -EFBIG;
	err = sym_builder_reserve(r->b, h->func_count);
	if (!err)
		err = take_functab(r);
	if (!err && !is_in_code(r))
		err = -EBADMSG;
	if (!err && r->b->wanted.count)
		err = sym_wanted_filter(r->b, r->first, &functions);
	if (!err)
		err = take_records(r);
	return err ? err : elf_names_fetch(r->elf, &names, NULL, r->first, r->b);
}

int go_pclntab_add_at(const struct elf_file *elf, const struct go_place *place, uint64_t text,
		      struct sym_builder *b)
{
	struct reader r = { .elf = elf, .place = place, .b = b, .text = text, .first = b->count };
	int err = take_all(&r);

	if (err)
		b->count = r.first;
	return err;
}

int go_pclntab_add(const struct elf_file *elf, struct sym_builder *b)
{
	struct go_place place;
	uint64_t text = 0;
	int err;

	err = go_pclntab_find(elf, &place);
	if (!err && place.header.version >= 18)
		err = go_text_find(elf, &place, &text);
	return err ? err : go_pclntab_add_at(elf, &place, text, b);
}
