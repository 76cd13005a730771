/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the sections with call frame information that belong to an ELF file. */
#ifndef SYMBOLIZER_UNWIND_SOURCE_H
#define SYMBOLIZER_UNWIND_SOURCE_H

#include "symbolizer/unwind_entry.h"

/* .eh_frame, by section header or PT_GNU_EH_FRAME. -ENOENT, -EBADMSG, -EFBIG. */
int unwind_source_eh_frame(const struct elf_file *elf, struct unwind_section *ret_section);

/* .debug_frame of this file, inflated if it is compressed. The same errors, and -ENOMEM. */
int unwind_source_debug_frame(const struct elf_file *elf, struct unwind_section *ret_section);

#endif
