/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding pclntab and runtime.text; see go_pclntab.h.
 *
 * The table has a section of its own but where the system's linker has made a PIE of an older
 * Go: there it is in the middle of .data.rel.ro. The runtime's moduledata is found by its first
 * two pointers, to the table and to the names in it: as they stand in the data, or, in a PIE, as
 * addends of relocations.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/go_pclntab.h"

enum {
	LOOK_PIECE = 256 * 1024,
	LOOK_MAX = 256 * 1024 * 1024, /* bytes looked through in one file */
	RELOC_PIECE = 4096,
	/* Of moduledata, in pointers: pcHeader, names, 5 more slices, findfunctab, minpc, maxpc. */
	TEXT_FIELD = 1 + 6 * 3 + 1 + 2,
	MODULE_WORDS = TEXT_FIELD + 24,
};

static const char *const table_sections[] = { ".gopclntab", ".data.rel.ro.gopclntab" };

static int read_header(const struct elf_file *elf, uint64_t off, uint64_t size,
		       struct go_header *ret_header)
{
	uint8_t bytes[GO_HEADER_MAX];
	size_t len = size < sizeof(bytes) ? (size_t)size : sizeof(bytes);
	int err = elf_source_read(&elf->source, off, bytes, len);

	return err ? err : go_header_parse(bytes, len, size, ret_header);
}

static bool is_go(const struct elf_file *elf)
{
	return elf_section_by_name(elf, ".go.buildinfo") ||
	       elf_section_by_name(elf, ".note.go.buildid");
}

/* Looks for a header in the part of the file; tables are aligned by 8 at least. */
static int look_through(const struct elf_file *elf, uint64_t off, uint64_t size, uint64_t vaddr,
			struct go_place *ret_place)
{
	uint8_t *piece = malloc(LOOK_PIECE);
	int err = piece ? 0 : -ENOMEM;

	for (uint64_t at = 0; at < size && !err; at += LOOK_PIECE) {
		size_t len = size - at < LOOK_PIECE ? (size_t)(size - at) : LOOK_PIECE;

		err = elf_source_read(&elf->source, off + at, piece, len);
		for (size_t i = 0; i + 8 <= len && !err; i += 8) {
			struct go_place place = { .off = off + at + i, .vaddr = vaddr + at + i };

			/* All magics but their lowest byte. */
			if (piece[i + 1] != 0xff || piece[i + 2] != 0xff || piece[i + 3] != 0xff ||
			    read_header(elf, place.off, size - at - i, &place.header))
				continue;
			*ret_place = place;
			free(piece);
			return 0;
		}
	}
	free(piece);
	return err ? err : -ENOENT;
}

/* Read-only data by sections; without any by segments, if there is a note of Go. */
static int look_everywhere(const struct elf_file *elf, struct go_place *ret_place)
{
	uint64_t looked_at = 0;

	if (!is_go(elf))
		return -ENOENT;
	for (size_t i = 0; i < elf->section_count; i++) {
		const Elf64_Shdr *s = &elf->sections[i];
		int err;

		if (!(s->sh_flags & SHF_ALLOC) || (s->sh_flags & SHF_EXECINSTR) ||
		    s->sh_type != SHT_PROGBITS || !elf_section_is_readable(elf, s) ||
		    s->sh_size > LOOK_MAX - looked_at)
			continue;
		looked_at += s->sh_size;
		err = look_through(elf, s->sh_offset, s->sh_size, s->sh_addr, ret_place);
		if (err != -ENOENT)
			return err;
	}
	return -ENOENT;
}

int go_pclntab_find(const struct elf_file *elf, struct go_place *ret_place)
{
	for (size_t i = 0; i < sizeof(table_sections) / sizeof(table_sections[0]); i++) {
		const Elf64_Shdr *s = elf_section_by_name(elf, table_sections[i]);
		struct go_place place;
		int err;

		if (!s || s->sh_type == SHT_NOBITS)
			continue;
		if (!elf_section_is_readable(elf, s))
			return -EBADMSG;
		place = (struct go_place){ .off = s->sh_offset, .vaddr = s->sh_addr };
		err = read_header(elf, place.off, s->sh_size, &place.header);
		if (!err)
			*ret_place = place;
		return err == -ENOENT ? -EBADMSG : err;
	}
	return look_everywhere(elf, ret_place);
}

/* A relative relocation: the word at `at` is to be `value`. */
struct fixup {
	uint64_t at;
	uint64_t value;
};

/* Whether this is the one that is looked for; *before is the one before it. */
typedef bool (*fixup_fn)(const struct fixup *now, const struct fixup *before, const void *wanted);

static bool is_relative(const struct elf_file *elf, const Elf64_Rela *rela)
{
	unsigned int type = ELF64_R_TYPE(rela->r_info);

	return elf->ehdr.e_machine == EM_AARCH64 ? type == R_AARCH64_RELATIVE
						 : type == R_X86_64_RELATIVE;
}

static int find_in_section(const struct elf_file *elf, const Elf64_Shdr *s, fixup_fn fits,
			   const void *wanted, struct fixup *ret_fixup)
{
	uint64_t left = s->sh_size / sizeof(Elf64_Rela), off = s->sh_offset;
	Elf64_Rela *piece = malloc(RELOC_PIECE * sizeof(*piece));
	struct fixup before = { 0 };
	int err = piece ? 0 : -ENOMEM;

	while (left > 0 && !err) {
		size_t n = left < RELOC_PIECE ? (size_t)left : RELOC_PIECE;

		err = elf_source_read(&elf->source, off, piece, n * sizeof(*piece));
		for (size_t i = 0; i < n && !err; i++) {
			struct fixup now = { piece[i].r_offset, (uint64_t)piece[i].r_addend };

			if (!is_relative(elf, &piece[i]))
				continue;
			if (fits(&now, &before, wanted)) {
				*ret_fixup = now;
				free(piece);
				return 0;
			}
			before = now;
		}
		off += n * sizeof(*piece);
		left -= n;
	}
	free(piece);
	return err ? err : -ENOENT;
}

static int find_fixup(const struct elf_file *elf, fixup_fn fits, const void *wanted,
		      struct fixup *ret_fixup)
{
	for (size_t i = 0; i < elf->section_count; i++) {
		const Elf64_Shdr *s = &elf->sections[i];
		int err;

		if (s->sh_type != SHT_RELA || !(s->sh_flags & SHF_ALLOC) || elf->is_32 ||
		    !elf_section_is_readable(elf, s))
			continue;
		err = find_in_section(elf, s, fits, wanted, ret_fixup);
		if (err != -ENOENT)
			return err;
	}
	return -ENOENT;
}

/* The first two words of moduledata. */
struct module_head {
	uint64_t table;
	uint64_t names;
};

static bool is_module_head(const struct fixup *now, const struct fixup *before, const void *wanted)
{
	const struct module_head *head = wanted;

	return now->value == head->names && before->value == head->table &&
	       before->at + 8 == now->at;
}

/* moduledata, wherever it was found: its words, by what the file holds or by relocations. */
struct module {
	uint64_t vaddr;
	uint64_t words[MODULE_WORDS]; /* 0 where neither tells one */
};

/* By relocations: fills in the words of moduledata that have one. */
static bool is_in_module(const struct fixup *now, const struct fixup *before, const void *wanted)
{
	struct module *m = (struct module *)wanted;
	uint64_t word = (now->at - m->vaddr) / 8;

	if (now->at >= m->vaddr && word < MODULE_WORDS && (now->at - m->vaddr) % 8 == 0)
		m->words[word] = now->value;
	return false; /* look at all of them */
}

static int module_by_fixups(const struct elf_file *elf, const struct module_head *head,
			    struct module *m)
{
	struct fixup found;
	int err = find_fixup(elf, is_module_head, head, &found);

	if (err)
		return err;
	*m = (struct module){ .vaddr = found.at - 8 };
	err = find_fixup(elf, is_in_module, m, &found);
	return err == -ENOENT ? 0 : err;
}

/* By the pointers as they stand in a section: 0, or -ENOENT. */
static int module_in_section(const struct elf_file *elf, const Elf64_Shdr *s,
			     const struct module_head *head, size_t ptr, struct module *m)
{
	size_t overlap = MODULE_WORDS * ptr;
	uint8_t *piece = malloc(LOOK_PIECE + overlap);
	int err = piece ? -ENOENT : -ENOMEM;

	for (uint64_t at = 0; at < s->sh_size && err == -ENOENT; at += LOOK_PIECE) {
		size_t left = s->sh_size - at < LOOK_PIECE + overlap ? (size_t)(s->sh_size - at)
								     : LOOK_PIECE + overlap;
		int failed = elf_source_read(&elf->source, s->sh_offset + at, piece, left);

		err = failed ? failed : err;
		for (size_t i = 0; i + overlap <= left && err == -ENOENT; i += ptr) {
			if (memcmp(piece + i, &head->table, ptr) != 0 ||
			    memcmp(piece + i + ptr, &head->names, ptr) != 0)
				continue;
			*m = (struct module){ .vaddr = s->sh_addr + at + i };
			for (size_t w = 0; w < MODULE_WORDS; w++)
				memcpy(&m->words[w], piece + i + w * ptr, ptr);
			err = 0;
		}
	}
	free(piece);
	return err;
}

static int module_by_data(const struct elf_file *elf, const struct module_head *head, size_t ptr,
			  struct module *m)
{
	uint64_t looked_at = 0;

	for (size_t i = 0; i < elf->section_count; i++) {
		const Elf64_Shdr *s = &elf->sections[i];
		int err;

		if (!(s->sh_flags & SHF_WRITE) || s->sh_type != SHT_PROGBITS ||
		    !elf_section_is_readable(elf, s) || s->sh_size > LOOK_MAX - looked_at)
			continue;
		looked_at += s->sh_size;
		err = module_in_section(elf, s, head, ptr, m);
		if (err != -ENOENT)
			return err;
	}
	return -ENOENT;
}

static int find_module(const struct elf_file *elf, const struct go_place *place, struct module *m)
{
	struct module_head head = { place->vaddr, place->vaddr + place->header.names };
	int err = module_by_data(elf, &head, place->header.ptr_size, m);

	return err == -ENOENT ? module_by_fixups(elf, &head, m) : err;
}

int go_text_find(const struct elf_file *elf, const struct go_place *place, uint64_t *ret_text)
{
	struct module m;
	int err;

	if (place->header.text) {
		*ret_text = place->header.text;
		return 0;
	}
	err = find_module(elf, place, &m);
	if (!err && m.words[TEXT_FIELD] == 0)
		err = -ENOENT;
	if (!err)
		*ret_text = m.words[TEXT_FIELD];
	return err;
}

/*
 * Behind text come pairs of addresses, of which 1.20 added one; since 1.27 a length stands between
 * the two of "types", and an offset and a length behind them.
 */
int go_funcdata_find(const struct elf_file *elf, const struct go_place *place,
		     uint64_t *ret_funcdata)
{
	struct module m;
	size_t types = TEXT_FIELD + (place->header.version == 18 ? 13 : 15), at;
	int err = find_module(elf, place, &m);

	if (err)
		return err;
	at = types + (m.words[types + 1] < m.words[types] ? 6 : 3);
	if (m.words[at] < m.words[at - 1] || m.words[at - 1] == 0)
		return -EBADMSG;
	*ret_funcdata = m.words[at];
	return 0;
}
