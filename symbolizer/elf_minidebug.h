/* SPDX-License-Identifier: Apache-2.0 */
/* MiniDebugInfo: function symbols that .dynsym lacks, as a small ELF file inside .gnu_debugdata. */
#ifndef SYMBOLIZER_ELF_MINIDEBUG_H
#define SYMBOLIZER_ELF_MINIDEBUG_H

#include "symbolizer/elf_file.h"

/* Decompressed and compressed bytes, and liblzma's memory: ten times what distributions ship. */
enum { ELF_MINIDEBUG_MAX = 64 * 1024 * 1024 };

/*
 * Opens the file inside `elf`; the caller closes *ret_elf and frees *ret_image, in this order.
 * -ENOENT if there is none, -EBADMSG (damaged xz, no ELF), -EFBIG, -ENOMEM, -EIO.
 */
int elf_minidebug_open(const struct elf_file *elf, struct elf_file *ret_elf, uint8_t **ret_image);

/* Unpacks xz from `source`, at most `max` bytes, the caller frees. Errors as above. */
int elf_minidebug_unpack(const struct elf_source *source, uint64_t off, uint64_t size, size_t max,
			 uint8_t **ret_bytes, size_t *ret_size);

#endif
