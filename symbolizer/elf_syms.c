/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Function symbols out of ELF symbol tables; see elf_syms.h.
 *
 * Neither the symbols nor the strings are ever in memory as a whole: symbols are read in
 * pieces and only functions are kept; then their names are fetched in the order of the string
 * table, a window at a time. So a large table costs what its functions need, and a small file
 * that claims gigabytes costs next to nothing.
 */
#include "symbolizer/elf_syms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STRINGS_MAX ((uint64_t)512 * 1024 * 1024)

enum {
	PIECE = 2048,             /* symbols read at once: 48 KiB */
	NAME_MAX_LEN = 16 * 1024, /* longer names are cut */
	WINDOW = 256 * 1024,
	CODE_SEGMENTS_MAX = 16, /* others hold no symbols */
};

_Static_assert(WINDOW > 2 * NAME_MAX_LEN, "each window must get further than one name");

struct reader {
	const struct elf_file *elf;
	const struct elf_symtab *table;
	struct sym_builder *b;
	const Elf64_Phdr *code[CODE_SEGMENTS_MAX];
	size_t code_count;
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

		err = elf_source_read(&r->elf->source, off, piece, n * sizeof(*piece));
		for (size_t i = 0; i < n && !err; i++)
			err = take_symbol(r, &piece[i]);
		left -= n;
		off += n * sizeof(*piece);
	}
	free(piece);
	return err;
}

/*
 * Labels that the assembler makes: ARM's and RISC-V's marks of code and data ($x, $d.1), and
 * local labels that a linker left in.
 */
static bool is_label_noise(const char *name, size_t len)
{
	return (len >= 2 && name[0] == '$' && strchr("adtx", name[1])) ||
	       (len >= 2 && name[0] == '.' && name[1] == 'L');
}

/* The strings around the names that are fetched now. */
struct window {
	const char *text;
	uint64_t off;
	size_t len;
	bool is_last;
};

/* Length of the name at `rel` in the window: -1 if it may go on behind it, 0 for no name. */
static ssize_t name_length(const struct window *w, size_t rel)
{
	size_t room = w->len - rel;
	size_t len = strnlen(w->text + rel, room < NAME_MAX_LEN ? room : NAME_MAX_LEN);

	if (len < room)
		return (ssize_t)len;
	return w->is_last ? 0 : -1;
}

/*
 * Gives names to the candidates from *next on that begin in the window, and moves the ones
 * with a good name down to *kept.
 */
static int name_from_window(struct sym_builder *b, const struct window *w, size_t *next,
			    size_t *kept)
{
	for (; *next < b->count; (*next)++) {
		struct sym_candidate c = b->candidates[*next];
		const char *name = w->text + (c.name - w->off);
		ssize_t len;
		int err;

		if (c.name - w->off >= w->len)
			return 0;
		len = name_length(w, c.name - w->off);
		if (len < 0)
			return 0;
		if (len == 0 || (!(c.rank & SYM_RANK_TYPED) && is_label_noise(name, (size_t)len)))
			continue;
		err = sym_builder_add_name(b, name, (size_t)len, NULL, &c.name);
		if (err)
			return err;
		b->candidates[(*kept)++] = c;
	}
	return 0;
}

static int fetch_names(struct reader *r, size_t first)
{
	const struct elf_symtab *t = r->table;
	struct sym_builder *b = r->b;
	size_t next = first, kept = first;
	char *text;
	int err;

	err = sym_builder_sort_by_name(b, first);
	if (err)
		return err;
	text = malloc(WINDOW);
	if (!text)
		return -ENOMEM;
	while (next < b->count && b->candidates[next].name < t->strings_size) {
		struct window w = { .text = text, .off = b->candidates[next].name };

		w.len = t->strings_size - w.off < WINDOW ? t->strings_size - w.off : WINDOW;
		w.is_last = w.off + w.len == t->strings_size;
		err = elf_source_read(&r->elf->source, t->strings_off + w.off, text, w.len);
		if (!err)
			err = name_from_window(b, &w, &next, &kept);
		if (err)
			break;
	}
	free(text);
	b->count = kept;
	return err;
}

int elf_syms_read(const struct elf_file *elf, const struct elf_symtab *table, struct sym_builder *b)
{
	struct reader r = { .elf = elf, .table = table, .b = b };
	size_t first = b->count;
	int err;

	if (table->count > ELF_SYMS_MAX || table->strings_size > STRINGS_MAX)
		return -EFBIG;
	if (!elf_in_file(elf, table->off, table->count * sizeof(Elf64_Sym)) ||
	    !elf_in_file(elf, table->strings_off, table->strings_size))
		return -EBADMSG;
	/* Most symbols of .dynsym are functions; too many to reserve may still be few to keep. */
	err = sym_builder_reserve(b, table->count);
	if (err == -ENOMEM)
		return err;
	find_code(&r);
	err = take_symbols(&r);
	if (!err)
		err = fetch_names(&r, first);
	if (err)
		b->count = first;
	return err;
}

int elf_syms_of_section(const struct elf_file *elf, uint32_t type, struct sym_builder *b)
{
	const Elf64_Shdr *symbols = elf_section_by_type(elf, type), *strings;
	struct elf_symtab table;

	if (!symbols)
		return -ENOENT;
	if (!elf_section_is_readable(elf, symbols) || symbols->sh_entsize != sizeof(Elf64_Sym) ||
	    symbols->sh_link >= elf->section_count)
		return -EBADMSG;
	strings = &elf->sections[symbols->sh_link];
	if (strings->sh_type != SHT_STRTAB || !elf_section_is_readable(elf, strings))
		return -EBADMSG;
	table = (struct elf_symtab){
		.off = symbols->sh_offset,
		.count = symbols->sh_size / sizeof(Elf64_Sym),
		.strings_off = strings->sh_offset,
		.strings_size = strings->sh_size,
	};
	return elf_syms_read(elf, &table, b);
}
