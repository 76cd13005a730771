/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What identifies a file's content: the GNU build-id, else what Go's linker wrote, else a hash.
 */
#ifndef SYMBOLIZER_BUILD_ID_H
#define SYMBOLIZER_BUILD_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/elf_file.h"

enum {
	BUILD_ID_MAX = 64, /* bytes; a longer one is taken as damaged */
	BUILD_ID_HEX_SIZE = 2 * BUILD_ID_MAX + 1,
};

/*
 * The GNU build-id in hex: from the notes of the segments, then of the sections. Split debug
 * files carry segments that describe the other file, but their sections are their own.
 * False if there is none, or it is all zeros (many unrelated files carry that one).
 */
bool build_id_gnu(const struct elf_file *elf, char ret_hex[BUILD_ID_HEX_SIZE]);

/*
 * A stand-in for files without one: a hash of the Go build id, else of the size and content
 * (of all up to 4 MiB, of evenly spread blocks beyond). 32 hex digits. Returns 0 or -EIO.
 */
int build_id_substitute(const struct elf_file *elf, char ret_hex[BUILD_ID_HEX_SIZE]);

/* The GNU build-id among the notes in memory, as in /sys/kernel/notes. */
bool build_id_in_notes(const void *notes, size_t len, char ret_hex[BUILD_ID_HEX_SIZE]);

#endif
