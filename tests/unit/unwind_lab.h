/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of unwind tables: rules as text, tables of real files, and ELF images made in memory
 * whose frame sections are written byte by byte.
 */
#ifndef TESTS_UNIT_UNWIND_LAB_H
#define TESTS_UNIT_UNWIND_LAB_H

#include "elf_lab.h"
#include "symbolizer/elf_file.h"
#include "symbolizer/unwind.h"

/* "sp+8 same", "[fp-8]+0 fp+0", "none"...: CFA, then where the caller's rbp is. */
static inline const char *rule_text(const struct unwind_rule *r)
{
	static const char *const plain[] = {
		[UNWIND_NONE] = "none", [UNWIND_UNSUPPORTED] = "unsupported", [UNWIND_END] = "end"
	};
	static char text[128];
	char fp[32];

	if (r->cfa <= UNWIND_END)
		return plain[r->cfa];
	if (r->cfa == UNWIND_BARE)
		return "bare";
	if (r->cfa == UNWIND_SIGNAL) {
		snprintf(text, sizeof(text), "signal %d", r->cfa_off);
		return text;
	}
	if (r->cfa == UNWIND_GO_STACK) {
		snprintf(text, sizeof(text), "go fs%+d m+%d curg+%d sched+%d bp+%d", r->cfa_off,
			 r->cfa_add & 0xffff, r->cfa_add >> 16, r->fp_off, r->cfa_reg);
		return text;
	}
	if (r->fp == UNWIND_FP_SAME || r->fp == UNWIND_FP_UNDEFINED)
		snprintf(fp, sizeof(fp), "%s", r->fp == UNWIND_FP_SAME ? "same" : "lost");
	else
		snprintf(fp, sizeof(fp), "%s%+d", r->fp == UNWIND_FP_AT_CFA ? "cfa" : "fp",
			 r->fp_off);
	if (r->cfa == UNWIND_SP || r->cfa == UNWIND_FP)
		snprintf(text, sizeof(text), "%s%+d %s", r->cfa == UNWIND_SP ? "sp" : "fp",
			 r->cfa_off, fp);
	else if (r->cfa == UNWIND_FP_SWITCH)
		snprintf(text, sizeof(text), "switch fp%+d %s", r->cfa_off, fp);
	else if (r->cfa == UNWIND_REG)
		snprintf(text, sizeof(text), "r%d%+d %s", r->cfa_reg, r->cfa_off, fp);
	else if (r->cfa == UNWIND_PLT)
		snprintf(text, sizeof(text), "plt%+d at %d %s", r->cfa_off, r->cfa_add, fp);
	else
		snprintf(text, sizeof(text), "[%s%+d]%+d %s",
			 r->cfa == UNWIND_SP_DEREF ? "sp" : "fp", r->cfa_off, r->cfa_add, fp);
	return text;
}

static inline const char *rule_at(const struct unwind_table *t, uint64_t off)
{
	return rule_text(unwind_table_find(t, off));
}

/* What must hold of every table. */
static inline void check_table(const struct unwind_table *t)
{
	uint64_t unsupported = 0;

	assert_true(t->rule_count > 0);
	assert_string_equal(rule_text(&t->rules[0]), "none");
	for (size_t i = 0; i < t->row_count; i++) {
		assert_true(t->rows[i].rule < t->rule_count);
		assert_true(i == 0 || t->rows[i].off > t->rows[i - 1].off);
		assert_true(i == 0 || t->rows[i].rule != t->rows[i - 1].rule);
		if (t->rules[t->rows[i].rule].cfa == UNWIND_UNSUPPORTED)
			unsupported += t->rows[i + 1].off - t->rows[i].off;
	}
	assert_true(t->row_count == 0 || t->rows[t->row_count - 1].rule == UNWIND_NONE);
	assert_int_equal(t->unsupported, unsupported);
	for (size_t i = 0; i < t->rule_count && t->rule_count < 1000; i++) {
		for (size_t j = 0; j < i; j++)
			assert_memory_not_equal(&t->rules[i], &t->rules[j], sizeof(t->rules[i]));
	}
}

static inline struct unwind_table *table_with(const char *path, const char *debug_dir)
{
	struct unwind_options options = { .debug_dir = debug_dir };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct unwind_table *t = NULL;
	int err;

	assert_true(fd >= 0);
	err = unwind_table_build(fd, &options, &t);
	close(fd);
	if (err)
		fail_msg("%s: error %d", path, err);
	check_table(t);
	return t;
}

static inline struct unwind_table *table_of(const char *path)
{
	return table_with(path, NULL);
}

static inline bool tables_equal(const struct unwind_table *a, const struct unwind_table *b)
{
	if (a->row_count != b->row_count)
		return false;
	for (size_t i = 0; i < a->row_count; i++) {
		if (a->rows[i].off != b->rows[i].off ||
		    memcmp(&a->rules[a->rows[i].rule], &b->rules[b->rows[i].rule],
			   sizeof(struct unwind_rule)) != 0)
			return false;
	}
	return true;
}

/* The file offset of a symbol, by nm and the program headers. */
static inline uint64_t offset_of(const char *path, const char *symbol)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_source source;
	struct elf_file elf;
	uint64_t off;

	assert_int_equal(elf_source_fd(fd, &source), 0);
	assert_int_equal(elf_file_open(&source, &elf), 0);
	assert_true(elf_file_offset(&elf, lab_nm(path, "", symbol), &off));
	elf_file_close(&elf);
	close(fd);
	return off;
}

/* --- images ---------------------------------------------------------------------------------- */

enum {
	CODE = 0x1000, /* file offset and virtual address of the code */
	CODE_SIZE = 0x10000,
	SPARE = 0x400, /* for headers */
};

/* The code is not in the image but for its first bytes: nothing there is read, by and large. */
struct image {
	struct buf frames; /* content of the section */
	const char *name;
	uint32_t type;
	uint64_t code_size;
	bool no_sections;
	uint8_t header[32]; /* content of .eh_frame_hdr, if header_size */
	size_t header_size;
};

static inline void put(struct buf *b, uint64_t number, size_t size)
{
	buf_put(b, &number, size);
}

/* Fills the length that stands at `at`, padding the entry to 8 bytes with DW_CFA_nop. */
static inline void end_entry(struct buf *b, size_t at)
{
	uint32_t length;

	while ((b->len - at) % 8 != 0)
		buf_put_byte(b, 0);
	length = (uint32_t)(b->len - at - 4);
	memcpy(b->data + at, &length, 4);
}

/* "zR" with absolute pointers, CFA = rsp + 8, return address at CFA - 8, and `more`. */
static inline size_t put_cie(struct buf *b, const void *more, size_t len)
{
	size_t at = b->len;

	put(b, 0, 8); /* length, identifier */
	buf_put(b, "\1zR\0\1\x78\x10\1\0", 9);
	buf_put(b, "\x0c\7\x08\x90\1", 5);
	buf_put(b, more, len);
	end_entry(b, at);
	return at;
}

static inline size_t put_fde(struct buf *b, size_t cie, uint64_t start, uint64_t size,
			     const void *program, size_t len)
{
	size_t at = b->len;

	put(b, 0, 4);
	put(b, at + 4 - cie, 4);
	put(b, start, 8);
	put(b, size, 8);
	buf_put_byte(b, 0);
	buf_put(b, program, len);
	end_entry(b, at);
	return at;
}

static inline void image_init(struct image *im)
{
	*im = (struct image){ .name = ".eh_frame", .type = SHT_PROGBITS, .code_size = CODE_SIZE };
	buf_init(&im->frames, 64 * 1024 * 1024);
}

/*
 * The frames follow the code in the file; behind them the names and headers of sections. The
 * code is as large as code_size in the headers, and in a sparse image: so it is built in a file.
 */
static inline int image_build(const struct image *im, const struct unwind_options *options,
			      struct unwind_table **ret_table)
{
	uint64_t frames = CODE + im->code_size, names = (frames + im->frames.len + 7) & ~7UL;
	Elf64_Ehdr ehdr = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_phoff = sizeof(ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 3,
		.e_shoff = names + 64,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 3,
		.e_shstrndx = 2,
	};
	Elf64_Phdr segments[3] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = CODE, .p_vaddr = CODE },
		{ .p_type = PT_LOAD, .p_flags = PF_R, .p_offset = frames, .p_vaddr = frames },
		{ .p_type = PT_GNU_EH_FRAME, .p_offset = SPARE, .p_vaddr = SPARE },
	};
	char text[64] = "\0.shstrtab";
	Elf64_Shdr sections[3] = {
		[1] = { .sh_name = 11,
			.sh_type = im->type,
			.sh_addr = frames,
			.sh_offset = frames },
		[2] = { .sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = names, .sh_size = 64 },
	};
	int fd = open("image", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), err;

	segments[0].p_filesz = segments[0].p_memsz = im->code_size;
	segments[1].p_filesz = segments[1].p_memsz = sections[1].sh_size = im->frames.len;
	segments[2].p_filesz = im->header_size;
	strcpy(text + 11, im->name);
	if (im->no_sections)
		ehdr.e_shoff = ehdr.e_shnum = 0;
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, &ehdr, sizeof(ehdr), 0), sizeof(ehdr));
	assert_int_equal(pwrite(fd, segments, sizeof(segments), 64), sizeof(segments));
	assert_int_equal(pwrite(fd, im->header, im->header_size, SPARE), im->header_size);
	assert_int_equal(pwrite(fd, im->frames.data, im->frames.len, (off_t)frames),
			 im->frames.len);
	assert_int_equal(pwrite(fd, text, 64, (off_t)names), 64);
	assert_int_equal(pwrite(fd, sections, sizeof(sections), (off_t)names + 64),
			 sizeof(sections));
	err = unwind_table_build(fd, options, ret_table);
	close(fd);
	if (!err)
		check_table(*ret_table);
	return err;
}

/* The code is zeros, so that long gaps are bare, which is not the matter of these tests. */
static inline const char *image_rule(const struct unwind_table *t, uint64_t off)
{
	return unwind_table_find(t, off)->cfa == UNWIND_BARE ? "none" : rule_at(t, off);
}

static inline struct unwind_table *image_table(const struct image *im)
{
	struct unwind_table *t = NULL;

	assert_int_equal(image_build(im, NULL, &t), 0);
	return t;
}

#endif
