/* SPDX-License-Identifier: Apache-2.0 */
/* The function symbols of an ELF file, from .symtab, .dynsym or PT_DYNAMIC, to a builder. */
#ifndef SYMBOLIZER_ELF_SYMS_H
#define SYMBOLIZER_ELF_SYMS_H

#include "symbolizer/elf_file.h"
#include "symbolizer/elf_names.h"
#include "symbolizer/sym_builder.h"

/* Where a symbol table and its strings lie in the file. */
struct elf_symtab {
	uint64_t off;
	uint64_t count;
	struct elf_strings strings;
};

/*
 * Adds the function symbols of the first section of `type` (SHT_SYMTAB, SHT_DYNSYM): 0,
 * -ENOENT if there is none, -EBADMSG if it is damaged or compressed, -ENOMEM, -EFBIG, -EIO.
 */
int elf_syms_of_section(const struct elf_file *elf, uint32_t type, struct sym_builder *b);

/* The same by way of PT_DYNAMIC and the hash table that tells the count: elf_dynamic.c. */
int elf_syms_of_dynamic(const struct elf_file *elf, struct sym_builder *b);

/* The table that a section of symbols and its section of strings make: 0 or -EBADMSG. */
int elf_syms_table(const struct elf_file *elf, const Elf64_Shdr *symbols,
		   struct elf_symtab *ret_table);

/* The same as elf_syms_of_section for a table already found. */
int elf_syms_read(const struct elf_file *elf, const struct elf_symtab *table,
		  struct sym_builder *b);

/*
 * The candidates from `first` on, whose name field is the number of a symbol of the table, get
 * its name with `suffix` behind it. Errors as above.
 */
int elf_syms_name_by_number(const struct elf_file *elf, const struct elf_symtab *table,
			    const char *suffix, size_t first, struct sym_builder *b);

enum { ELF_SYMS_MAX = 4 * 1000 * 1000 }; /* symbols looked at in one table */

#endif
