/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Function symbols out of ELF symbol tables; see elf_syms.h.
 *
 * Symbols are never in memory as a whole: they are read in pieces and only functions are kept,
 * so that a large table costs what its functions need; then their names are fetched.
 */
#include "symbolizer/elf_syms.h"

#include <errno.h>
#include <stdlib.h>

#include "symbolizer/elf_names.h"
#include "symbolizer/sym_seen.h"

#define STRINGS_MAX ((uint64_t)512 * 1024 * 1024)

enum {
	PIECE = 2048,           /* symbols read at once: 48 KiB */
	CODE_SEGMENTS_MAX = 16, /* others hold no symbols */
};

struct reader {
	const struct elf_file *elf;
	const struct elf_symtab *table;
	struct sym_builder *b;
	const Elf64_Phdr *code[CODE_SEGMENTS_MAX];
	size_t code_count;
	struct sym_seen seen; /* what need not be said again */
};

static void find_code(struct reader *r)
{
	for (size_t i = 0; i < r->elf->segment_count; i++) {
		const Elf64_Phdr *s = &r->elf->segments[i];

		if (s->p_type == PT_LOAD && (s->p_flags & PF_X) &&
		    s->p_memsz <= UINT64_MAX - s->p_vaddr && r->code_count < CODE_SEGMENTS_MAX)
			r->code[r->code_count++] = s;
	}
}

static bool has_section(const struct reader *r, const Elf64_Sym *sym)
{
	return sym->st_shndx < r->elf->section_count && sym->st_shndx != SHN_XINDEX;
}

/*
 * The end of the area that a symbol cannot leave: its section if that is known, else its
 * executable segment. 0 if the symbol is not in code.
 */
static uint64_t end_of_area(const struct reader *r, const Elf64_Sym *sym)
{
	uint64_t addr = sym->st_value;

	if (has_section(r, sym)) {
		const Elf64_Shdr *s = &r->elf->sections[sym->st_shndx];

		if (!(s->sh_flags & SHF_ALLOC) || !(s->sh_flags & SHF_EXECINSTR) ||
		    addr < s->sh_addr || addr - s->sh_addr >= s->sh_size ||
		    s->sh_size > UINT64_MAX - s->sh_addr)
			return 0;
		return s->sh_addr + s->sh_size;
	}
	for (size_t i = 0; i < r->code_count; i++) {
		const Elf64_Phdr *s = r->code[i];

		if (addr >= s->p_vaddr && addr - s->p_vaddr < s->p_memsz)
			return s->p_vaddr + s->p_memsz;
	}
	return 0;
}

/*
 * An IFUNC symbol lies at the function that chooses the implementation. If that one has a
 * name of its own it is the better one: "memcpy" would stand for what never copies.
 */
static uint8_t rank_of(const Elf64_Sym *sym)
{
	unsigned int bind = ELF64_ST_BIND(sym->st_info), type = ELF64_ST_TYPE(sym->st_info);

	return (sym->st_size ? SYM_RANK_SIZED : 0) | (type == STT_FUNC ? SYM_RANK_TYPED : 0) |
	       (bind != STB_WEAK ? SYM_RANK_STRONG : 0) |
	       (bind == STB_GLOBAL ? SYM_RANK_GLOBAL : 0);
}

static bool has_code_type(const Elf64_Sym *sym)
{
	unsigned int type = ELF64_ST_TYPE(sym->st_info);

	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return false;
	if (sym->st_name == 0 || sym->st_shndx == SHN_UNDEF)
		return false;
	/* Of the reserved indices only "the index is elsewhere" stands for a section. */
	return sym->st_shndx < SHN_LORESERVE || sym->st_shndx == SHN_XINDEX;
}

/* Adds a symbol, named by its st_name for now, if it is a function. */
static int take_symbol(struct reader *r, const Elf64_Sym *sym)
{
	struct sym_candidate c = {
		.addr = sym->st_value,
		.size = sym->st_size,
		.name = sym->st_name,
		.section = sym->st_shndx,
		.rank = rank_of(sym),
	};
	uint64_t end;

	if (!has_code_type(sym))
		return 0;
	end = end_of_area(r, sym);
	if (end == 0)
		return 0;
	if (c.size == 0)
		c.size = has_section(r, sym) ? end : 0;
	else if (c.size > end - c.addr)
		c.size = end - c.addr;
	if (sym_seen_has(&r->seen, &c))
		return 0;
	return sym_builder_add(r->b, &c);
}

static int take_symbols(struct reader *r)
{
	Elf64_Sym *piece = malloc(PIECE * sizeof(*piece));
	uint64_t left = r->table->count, off = r->table->off;
	int err = 0;

	if (!piece)
		return -ENOMEM;
	while (left > 0 && !err) {
		size_t n = left < PIECE ? left : PIECE;

		err = elf_read_syms(r->elf, off, n, piece);
		for (size_t i = 0; i < n && !err; i++)
			err = take_symbol(r, &piece[i]);
		left -= n;
		off += n * elf_sym_size(r->elf);
	}
	free(piece);
	return err;
}

int elf_syms_read(const struct elf_file *elf, const struct elf_symtab *table, struct sym_builder *b)
{
	struct reader r = { .elf = elf, .table = table, .b = b };
	size_t first = b->count, functions = 0;
	int err;

	if (table->count > ELF_SYMS_MAX || table->strings.size > STRINGS_MAX)
		return -EFBIG;
	if (!elf_in_file(elf, table->off, table->count * elf_sym_size(elf)) ||
	    !elf_in_file(elf, table->strings.off, table->strings.size))
		return -EBADMSG;
	/* Most symbols of .dynsym are functions; too many to reserve may still be few to keep. */
	err = sym_builder_reserve(b, table->count);
	if (err == -ENOMEM)
		return err;
	find_code(&r);
	sym_seen_init(&r.seen, b);
	err = take_symbols(&r);
	sym_seen_fini(&r.seen);
	if (!err && b->wanted.count)
		err = sym_wanted_filter(b, first, &functions);
	if (!err)
		err = elf_names_fetch(elf, &table->strings, NULL, first, b);
	if (err)
		b->count = first;
	else
		b->found += b->wanted.count ? functions : b->count - first;
	return err;
}

int elf_syms_table(const struct elf_file *elf, const Elf64_Shdr *symbols,
		   struct elf_symtab *ret_table)
{
	const Elf64_Shdr *strings;

	if (!elf_section_is_readable(elf, symbols) || symbols->sh_entsize != elf_sym_size(elf) ||
	    symbols->sh_link >= elf->section_count)
		return -EBADMSG;
	strings = &elf->sections[symbols->sh_link];
	if (strings->sh_type != SHT_STRTAB || !elf_section_is_readable(elf, strings))
		return -EBADMSG;
	*ret_table = (struct elf_symtab){
		.off = symbols->sh_offset,
		.count = symbols->sh_size / elf_sym_size(elf),
		.strings = { strings->sh_offset, strings->sh_size },
	};
	return 0;
}

int elf_syms_of_section(const struct elf_file *elf, uint32_t type, struct sym_builder *b)
{
	const Elf64_Shdr *symbols = elf_section_by_type(elf, type);
	struct elf_symtab table;
	int err;

	if (!symbols)
		return -ENOENT;
	err = elf_syms_table(elf, symbols, &table);
	return err ? err : elf_syms_read(elf, &table, b);
}

int elf_syms_name_by_number(const struct elf_file *elf, const struct elf_symtab *table,
			    const char *suffix, size_t first, struct sym_builder *b)
{
	Elf64_Sym *piece;
	uint64_t begin = 0, end = 0;
	int err;

	if (first == b->count)
		return 0;
	err = sym_builder_sort_by_name(b, first);
	if (err)
		return err;
	piece = malloc(PIECE * sizeof(*piece));
	if (!piece)
		return -ENOMEM;
	for (size_t i = first; i < b->count && !err; i++) {
		uint32_t number = b->candidates[i].name;

		if (number >= table->count) {
			err = -EBADMSG;
			break;
		}
		if (number >= end) {
			begin = number;
			end = table->count - begin < PIECE ? table->count : begin + PIECE;
			err = elf_read_syms(elf, table->off + begin * elf_sym_size(elf),
					    (size_t)(end - begin), piece);
		}
		if (!err)
			b->candidates[i].name = piece[number - begin].st_name;
	}
	free(piece);
	return err ? err : elf_names_fetch(elf, &table->strings, suffix, first, b);
}
