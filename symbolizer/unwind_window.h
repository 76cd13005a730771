/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of an ELF source, seen through a small window that moves: reading a section costs
 * the window's memory, not the section's. Large when read in order, small when jumped about in.
 */
#ifndef SYMBOLIZER_UNWIND_WINDOW_H
#define SYMBOLIZER_UNWIND_WINDOW_H

#include "symbolizer/elf_file.h"

enum { UNWIND_WINDOW_MAX = 1024 * 1024 }; /* bytes that can be seen at once */

struct unwind_window {
	struct elf_source source; /* its image, if it has one, is borrowed */
	uint64_t off;             /* of the part in the source */
	uint64_t size;            /* of the part */
	uint8_t *bytes;           /* what is seen: [at, at + len) of the part */
	size_t cap;
	uint64_t at;
	size_t len;
};

void unwind_window_init(struct unwind_window *w, const struct elf_source *source, uint64_t off,
			uint64_t size);
void unwind_window_fini(struct unwind_window *w);

/*
 * Bytes [at, at + len) of the part, good until the next call: 0, -EBADMSG if they are not all
 * inside, -EFBIG if there are too many for a window, -ENOMEM, -EIO.
 */
int unwind_window_see(struct unwind_window *w, uint64_t at, size_t len, const uint8_t **ret_bytes);

#endif
