/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed ELF sections (SHF_COMPRESSED): zlib and zstd. */
#ifndef SYMBOLIZER_ELF_INFLATE_H
#define SYMBOLIZER_ELF_INFLATE_H

#include "symbolizer/elf_file.h"

/*
 * The content of a compressed section, which the caller frees: 0, -EBADMSG if it is damaged or
 * of an unknown kind, -EFBIG if it is larger than `max`, -ENOMEM, -EIO.
 */
int elf_inflate(const struct elf_file *elf, const Elf64_Shdr *section, size_t max,
		uint8_t **ret_bytes, size_t *ret_size);

#endif
