/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code without an FDE in which nothing sets up a frame pointer: assembler of codecs, musl. There rbp may
 * be any register, and what it points to may look like a frame: an old one, as a rule. It must not
 * be followed. Where "push %rbp" and "mov %rsp, %rbp" occur it is worth a try.
 */
#ifndef SYMBOLIZER_UNWIND_BARE_H
#define SYMBOLIZER_UNWIND_BARE_H

#include "symbolizer/unwind_window.h"

struct unwind_bare {
	struct unwind_window code; /* the whole file */
	uint64_t bytes;            /* that may still be read */
};

void unwind_bare_init(struct unwind_bare *b, const struct elf_source *source);
void unwind_bare_fini(struct unwind_bare *b);

/*
 * Whether the code at file offsets [from, to) is so. Not of short pieces, most of which are padding, and
 * not of what cannot be read or is beyond the bound.
 */
bool unwind_bare_is(struct unwind_bare *b, uint64_t from, uint64_t to);

#endif
