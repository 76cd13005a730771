/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signal restorers without an FDE, as in musl and Go: "mov $15, %rax; syscall" is rt_sigreturn,
 * and nothing else, so its bytes describe the frame as well as an FDE would.
 *
 * Looking must stay cheap. Where whole files of code have no FDE, that code is read, up to a
 * bound. The small gaps between functions that have one are read only if they are few: in a
 * large library this would read all its pages, to find nothing but padding.
 */
#ifndef SYMBOLIZER_UNWIND_RESTORER_H
#define SYMBOLIZER_UNWIND_RESTORER_H

#include "symbolizer/unwind_index.h"

struct unwind_restorers {
	struct unwind_window code; /* the whole file */
	uint64_t bytes;            /* that may still be read */
	bool small_gaps;           /* are read too */
};

void unwind_restorers_init(struct unwind_restorers *r, const struct elf_source *source,
			   const struct unwind_index *covered);
void unwind_restorers_fini(struct unwind_restorers *r);

/*
 * The first restorer in [from, to): where its rule holds. It begins a byte before the code, since
 * the return address of a handler is looked up minus one. False if there is none.
 */
bool unwind_restorer_find(struct unwind_restorers *r, uint64_t from, uint64_t to,
			  uint64_t *ret_begin, uint64_t *ret_end);

#endif
