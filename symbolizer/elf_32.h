/* SPDX-License-Identifier: Apache-2.0 */
/* Records of 32-bit ELF files in their 64-bit form; private to elf_file.c. */
#ifndef SYMBOLIZER_ELF_32_H
#define SYMBOLIZER_ELF_32_H

#include "symbolizer/elf_file.h"

/* Errors as elf_source_read. */
int elf_read_ehdr32(const struct elf_source *source, Elf64_Ehdr *ret_ehdr);
int elf_read_shdr32(const struct elf_source *source, uint64_t off, Elf64_Shdr *ret_shdr);

/* Take a table of `count` 32-bit records from the heap and give it back wider: 0 or -ENOMEM. */
int elf_widen_phdrs(Elf64_Phdr **segments, size_t count);
int elf_widen_shdrs(Elf64_Shdr **sections, size_t count);

#endif
