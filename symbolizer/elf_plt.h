/* SPDX-License-Identifier: Apache-2.0 */
/* Names for the stubs through which a program calls shared libraries: name@plt. */
#ifndef SYMBOLIZER_ELF_PLT_H
#define SYMBOLIZER_ELF_PLT_H

#include "symbolizer/elf_file.h"
#include "symbolizer/sym_builder.h"

/*
 * Adds the entries of .plt, .plt.sec and .plt.got (x86-64), each by the GOT slot that its code
 * jumps through or the relocation that it pushes, so that no layout of a linker is assumed.
 * What has no name there, and the sections of other machines, becomes "[plt]". 0 also if
 * there is nothing to add or the file is damaged; -ENOMEM, -EFBIG, -EIO.
 */
int elf_plt_add(const struct elf_file *elf, struct sym_builder *b);

/* Whether a section holds such stubs: its code is no function. */
bool elf_plt_is_section(const struct elf_file *elf, const Elf64_Shdr *section);

#endif
