/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PLT entries to symbols; see elf_plt.h.
 *
 * First the relocations that fill GOT slots are read, then the code of the sections is looked
 * through for jumps by such a slot, then the symbols' names are fetched for those in use.
 */
#include "symbolizer/elf_plt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/elf_names.h"
#include "symbolizer/elf_syms.h"

enum {
	RELOCS_MAX = 1024 * 1024,
	RELOC_PIECE = 2048,
	SECTION_MAX = 16 * 1024 * 1024,
	ENTRY_SIZE = 16,
	GOT_ENTRY_SIZE = 8, /* of .plt.got without IBT */
	NO_SYMBOL = 0,
};

static const char *const section_names[] = { ".plt", ".plt.sec", ".plt.got", ".iplt" };

/* A GOT slot and the symbol that ends up in it. */
struct slot {
	uint64_t vaddr;
	uint32_t symbol;
	bool is_jump; /* of .rela.plt */
};

struct plt {
	const struct elf_file *elf;
	struct sym_builder *b;
	struct slot *slots;
	size_t count;
	size_t cap;
	uint32_t *pushed; /* symbols of .rela.plt in its order */
	size_t pushed_count;
};

bool elf_plt_is_section(const struct elf_file *elf, const Elf64_Shdr *section)
{
	if (!(section->sh_flags & SHF_EXECINSTR))
		return false;
	for (size_t i = 0; i < sizeof(section_names) / sizeof(section_names[0]); i++) {
		if (elf_section_is_named(elf, section, section_names[i]))
			return true;
	}
	return false;
}

static int add_slot(struct plt *p, const Elf64_Rela *rela, bool is_jump)
{
	struct slot *bigger;

	if (p->count == p->cap) {
		size_t want = p->cap ? 2 * p->cap : 256;

		if (want > RELOCS_MAX)
			return -EFBIG;
		bigger = reallocarray(p->slots, want, sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		p->slots = bigger;
		p->cap = want;
	}
	p->slots[p->count++] = (struct slot){
		.vaddr = rela->r_offset,
		.symbol = (uint32_t)ELF64_R_SYM(rela->r_info),
		.is_jump = is_jump,
	};
	return 0;
}

/* JUMP_SLOT and GLOB_DAT relocations of one section; with is_jump all others as nameless ones. */
static int read_relocs(struct plt *p, const Elf64_Shdr *s, bool is_jump)
{
	uint64_t count = s->sh_size / sizeof(Elf64_Rela), off = s->sh_offset;
	Elf64_Rela *piece = malloc(RELOC_PIECE * sizeof(*piece));
	int err = piece ? 0 : -ENOMEM;

	while (count > 0 && !err) {
		size_t n = count < RELOC_PIECE ? (size_t)count : RELOC_PIECE;

		err = elf_source_read(&p->elf->source, off, piece, n * sizeof(*piece));
		for (size_t i = 0; i < n && !err; i++) {
			unsigned int type = ELF64_R_TYPE(piece[i].r_info);

			if (is_jump || type == R_X86_64_GLOB_DAT || type == R_X86_64_JUMP_SLOT)
				err = add_slot(p, &piece[i], is_jump);
		}
		off += n * sizeof(*piece);
		count -= n;
	}
	free(piece);
	return err;
}

/* The relocations of .rela.plt come first and are numbered by the entries' pushes. */
static int read_all_relocs(struct plt *p, const Elf64_Shdr *dynsym)
{
	size_t link = (size_t)(dynsym - p->elf->sections);

	for (int jumps = 1; jumps >= 0; jumps--) {
		for (size_t i = 0; i < p->elf->section_count; i++) {
			const Elf64_Shdr *s = &p->elf->sections[i];
			bool is_jump = s->sh_type == SHT_RELA && s->sh_link == link &&
				       elf_section_is_named(p->elf, s, ".rela.plt");
			int err;

			if (s->sh_type != SHT_RELA || s->sh_link != link || is_jump != jumps ||
			    !(s->sh_flags & SHF_ALLOC) || !elf_section_is_readable(p->elf, s))
				continue;
			err = read_relocs(p, s, is_jump);
			if (err)
				return err;
		}
	}
	return 0;
}

static int compare_slots(const void *a, const void *b)
{
	const struct slot *left = a, *right = b;

	return (left->vaddr > right->vaddr) - (left->vaddr < right->vaddr);
}

/* Keeps the order of .rela.plt, then sorts the slots by address. */
static int index_slots(struct plt *p)
{
	p->pushed = reallocarray(NULL, p->count ? p->count : 1, sizeof(*p->pushed));
	if (!p->pushed)
		return -ENOMEM;
	while (p->pushed_count < p->count && p->slots[p->pushed_count].is_jump) {
		p->pushed[p->pushed_count] = p->slots[p->pushed_count].symbol;
		p->pushed_count++;
	}
	if (p->count > 0)
		qsort(p->slots, p->count, sizeof(*p->slots), compare_slots);
	return 0;
}

static uint32_t symbol_of_slot(const struct plt *p, uint64_t vaddr)
{
	struct slot key = { .vaddr = vaddr };
	const struct slot *slot;

	if (p->count == 0)
		return NO_SYMBOL;
	slot = bsearch(&key, p->slots, p->count, sizeof(key), compare_slots);

	return slot ? slot->symbol : NO_SYMBOL;
}

static uint32_t read_u32(const uint8_t *p)
{
	uint32_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

/*
 * The symbol of one entry: jmp *slot(%rip), maybe behind endbr64 and a bnd prefix; else, as in
 * the first of two sections for IBT, push $number; jmp.
 */
static uint32_t symbol_of_entry(const struct plt *p, const uint8_t *code, size_t len,
				uint64_t vaddr)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t at = 0;

	if (len >= sizeof(endbr64) && memcmp(code, endbr64, sizeof(endbr64)) == 0)
		at = sizeof(endbr64);
	if (at < len && code[at] == 0xf2)
		at++;
	if (len - at >= 6 && code[at] == 0xff && code[at + 1] == 0x25)
		return symbol_of_slot(
			p, vaddr + at + 6 + (uint64_t)(int64_t)(int32_t)read_u32(code + at + 2));
	if (len - at >= 5 && code[at] == 0x68 && read_u32(code + at + 1) < p->pushed_count)
		return p->pushed[read_u32(code + at + 1)];
	return NO_SYMBOL;
}

/* For what has no better name, up to the next symbol: a linker may leave some in there. */
static int add_nameless(struct plt *p, const Elf64_Shdr *s, uint64_t at)
{
	struct sym_candidate c = { .addr = s->sh_addr + at, .size = s->sh_addr + s->sh_size };
	int err = sym_builder_add_name(p->b, "[plt]", 5, NULL, &c.name);

	return err ? err : sym_builder_add(p->b, &c);
}

static int add_entries(struct plt *p, const Elf64_Shdr *s, const uint8_t *code, bool is_named)
{
	size_t step = s->sh_entsize == GOT_ENTRY_SIZE ? GOT_ENTRY_SIZE : ENTRY_SIZE;
	int err = 0;

	for (uint64_t at = 0; at < s->sh_size && !err; at += step) {
		size_t len = s->sh_size - at < step ? (size_t)(s->sh_size - at) : step;
		struct sym_candidate c = {
			.addr = s->sh_addr + at,
			.size = len,
			.name = symbol_of_entry(p, code + at, len, s->sh_addr + at),
			.rank = SYM_RANK_SIZED | SYM_RANK_STRONG,
		};

		if (is_named && c.name != NO_SYMBOL)
			err = sym_builder_add(p->b, &c);
		else if (!is_named && c.name == NO_SYMBOL)
			err = add_nameless(p, s, at);
	}
	return err;
}

static int look_through(struct plt *p, const Elf64_Shdr *s, bool is_named)
{
	uint8_t *code;
	int err;

	if (s->sh_size > SECTION_MAX || s->sh_size > UINT64_MAX - s->sh_addr)
		return 0;
	code = malloc(s->sh_size ? s->sh_size : 1);
	if (!code)
		return -ENOMEM;
	err = elf_source_read(&p->elf->source, s->sh_offset, code, s->sh_size);
	if (!err)
		err = add_entries(p, s, code, is_named);
	free(code);
	return err;
}

static int look_through_all(struct plt *p, bool is_named)
{
	for (size_t i = 0; i < p->elf->section_count; i++) {
		const Elf64_Shdr *s = &p->elf->sections[i];
		int err;

		if (!elf_section_is_readable(p->elf, s) || s->sh_size == 0 ||
		    !elf_plt_is_section(p->elf, s))
			continue;
		err = look_through(p, s, is_named);
		if (err)
			return err;
	}
	return 0;
}

static int add_named(struct plt *p)
{
	const Elf64_Shdr *dynsym = elf_section_by_type(p->elf, SHT_DYNSYM);
	struct elf_symtab table;
	size_t first = p->b->count;
	int err;

	if (!dynsym || p->elf->ehdr.e_machine != EM_X86_64 || p->elf->is_32)
		return 0;
	err = elf_syms_table(p->elf, dynsym, &table);
	if (!err)
		err = read_all_relocs(p, dynsym);
	if (!err)
		err = index_slots(p);
	if (!err)
		err = look_through_all(p, true);
	if (!err)
		err = elf_syms_name_by_number(p->elf, &table, "@plt", first, p->b);
	if (err)
		p->b->count = first;
	return err == -EBADMSG || err == -ENOENT ? 0 : err;
}

/* Entries are not neighbours of what lies outside of their sections. */
static bool is_wanted(const struct elf_file *elf, const struct sym_builder *b)
{
	if (b->wanted.count == 0)
		return true;
	for (size_t i = 0; i < elf->section_count; i++) {
		const Elf64_Shdr *s = &elf->sections[i];

		if (s->sh_size <= UINT64_MAX - s->sh_addr && elf_plt_is_section(elf, s) &&
		    sym_wanted_in(&b->wanted, s->sh_addr, s->sh_addr + s->sh_size))
			return true;
	}
	return false;
}

int elf_plt_add(const struct elf_file *elf, struct sym_builder *b)
{
	struct plt p = { .elf = elf, .b = b };
	int err;

	if (!is_wanted(elf, b))
		return 0;
	err = add_named(&p);
	if (!err)
		err = look_through_all(&p, false);
	free(p.slots);
	free(p.pushed);
	return err;
}
