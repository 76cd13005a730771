/* SPDX-License-Identifier: Apache-2.0 */
/* Where the functions of a file lie, from its unwind data: for files without their names. */
#ifndef SYMBOLIZER_SYM_STARTS_H
#define SYMBOLIZER_SYM_STARTS_H

#include "symbolizer/elf_file.h"
#include "symbolizer/sym_builder.h"

enum { SYM_STARTS_MAX = 1000 * 1000 };

/*
 * Gives the builder the code ranges of .eh_frame but those of PLT sections. 0 also without any, or
 * if they are damaged; -ENOMEM, -EFBIG, -EIO.
 */
int sym_starts_add(const struct elf_file *elf, struct sym_builder *b);

#endif
