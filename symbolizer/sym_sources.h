/* SPDX-License-Identifier: Apache-2.0 */
/* The sources of names for one ELF file, in their order; private to symbolizer/. */
#ifndef SYMBOLIZER_SYM_SOURCES_H
#define SYMBOLIZER_SYM_SOURCES_H

#include "symbolizer/elf_file.h"
#include "symbolizer/sym_builder.h"
#include "symbolizer/symbolizer.h"

/*
 * Adds the symbols of all sources; build_id is the GNU build-id in hex or "". *ret_cut: one was over
 * the builder's bound and is left out; *ret_without: the reason to give if there are no symbols.
 * 0, -ENOMEM or -EIO; a damaged source counts as a missing one.
 */
int sym_sources_add(const struct elf_file *elf, const char *build_id,
		    const struct sym_file_options *options, struct sym_builder *b, bool *ret_cut,
		    enum sym_reason *ret_without);

#endif
