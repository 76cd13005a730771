/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's pclntab: the table of functions that every Go program carries, stripped or not, in its
 * layouts of Go 1.2, 1.16, 1.18 and 1.20 (to at least 1.27), 32 and 64 bits.
 */
#ifndef SYMBOLIZER_GO_PCLNTAB_H
#define SYMBOLIZER_GO_PCLNTAB_H

#include "symbolizer/elf_file.h"
#include "symbolizer/sym_builder.h"

enum {
	GO_PCLNTAB_MAX = 128 * 1024 * 1024, /* five times that of a large program */
	GO_FUNCS_MAX = 2 * 1000 * 1000,
	GO_HEADER_MAX = 8 + 8 * 8,
};

/* What the header says, checked against the size. Offsets are from the table's start. */
struct go_header {
	uint8_t version; /* 2, 16, 18 or 20: the Go 1.N that brought the layout */
	uint8_t quantum;
	uint8_t ptr_size;
	uint64_t func_count;
	uint64_t text; /* to which entries are relative, or 0: not said; 18 and 20 only */
	uint64_t names;
	uint64_t units; /* files of a compilation unit, as offsets into `files`; 0: layout 2 */
	uint64_t files;
	uint64_t pctab;   /* tables of values by pc */
	uint64_t functab; /* in all layouts also the base of the functions' own offsets, or 0 */
	uint64_t size;    /* bytes from the table's start that may be looked at */
};

/* Reads `len` bytes of a header for a table of at most `size` bytes: 0, -ENOENT (none), -EBADMSG. */
int go_header_parse(const uint8_t *bytes, size_t len, uint64_t size, struct go_header *ret_header);

/* Where the table lies in the file and in memory. */
struct go_place {
	uint64_t off;
	uint64_t vaddr;
	struct go_header header;
};

/*
 * Finds the table: by its section, else, in programs with marks of Go, by looking through the
 * read-only data. 0, -ENOENT, -EBADMSG, -ENOMEM, -EIO.
 */
int go_pclntab_find(const struct elf_file *elf, struct go_place *ret_place);

/*
 * The address of runtime.text, which is not that of .text in a program with C in it: from the
 * header, else from the runtime's moduledata, with its relocations applied. 0, -ENOENT, ...
 */
int go_text_find(const struct elf_file *elf, const struct go_place *place, uint64_t *ret_text);

/* The same for the address to which the offsets of functions' data are relative (1.18 on). */
int go_funcdata_find(const struct elf_file *elf, const struct go_place *place,
		     uint64_t *ret_funcdata);

/*
 * Adds the functions of a table that was found, whose text is at `text` (0 for layouts of before
 * 1.18). -EBADMSG if it is damaged or its code is in no executable segment, -ENOMEM, -EFBIG, -EIO.
 */
int go_pclntab_add_at(const struct elf_file *elf, const struct go_place *place, uint64_t text,
		      struct sym_builder *b);

/*
 * Adds all functions of the program, with the rank SYM_RANK_PREFERRED: 0, -ENOENT if it is no Go
 * program, -EBADMSG if the table is damaged or of an unknown layout, -ENOMEM, -EFBIG, -EIO.
 */
int go_pclntab_add(const struct elf_file *elf, struct sym_builder *b);

#endif
