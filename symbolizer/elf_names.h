/* SPDX-License-Identifier: Apache-2.0 */
/* Names of symbols out of a string table, in the order of the table, a window at a time. */
#ifndef SYMBOLIZER_ELF_NAMES_H
#define SYMBOLIZER_ELF_NAMES_H

#include "symbolizer/elf_file.h"
#include "symbolizer/sym_builder.h"

struct elf_strings {
	uint64_t off;
	uint64_t size;
};

/*
 * The candidates from `first` on, whose name field is an offset into `strings`, get names of the
 * builder, with `suffix` behind them; those without a good one are taken out. 0, -EBADMSG,
 * -ENOMEM, -EFBIG, -EIO.
 */
int elf_names_fetch(const struct elf_file *elf, const struct elf_strings *strings,
		    const char *suffix, size_t first, struct sym_builder *b);

#endif
