/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of what the kernel itself has in kallsyms: its text symbols, in kallsyms' own form, but with
 * addresses that count from where its code begins. So it is the same for each boot of one build,
 * and tells nobody where the kernel lies. Modules and BPF programs come and go, and are left out. The
 * last line, "# N", tells how many there are: a copy that was cut would give wrong names.
 *
 * Private to symbolizer/.
 */
#ifndef SYMBOLIZER_KALLSYMS_COPY_H
#define SYMBOLIZER_KALLSYMS_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct kallsyms_copy {
	struct buf *to; /* NULL: none is made */
	uint64_t from;  /* where the kernel's code begins */
	uint64_t lines;
	bool is_useless; /* some symbol lies elsewhere */
};

/* `rest`: the line behind its address. */
void kallsyms_copy_line(struct kallsyms_copy *c, uint64_t addr, const char *rest, size_t len);

/* The last line; a copy that is of no use is left empty. */
void kallsyms_copy_end(struct kallsyms_copy *c);

/* While a copy is read: its lines, and what its last line said. */
struct kallsyms_count {
	uint64_t lines, said;
	bool is_last; /* nothing came behind it */
};

void kallsyms_count_line(struct kallsyms_count *c);

/* A line that is no symbol. */
void kallsyms_count_other(struct kallsyms_count *c, const char *text, size_t len);

bool kallsyms_count_agrees(const struct kallsyms_count *c);

#endif
