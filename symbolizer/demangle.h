/* SPDX-License-Identifier: Apache-2.0 */
/* Readable names, with the memory they need until the next one; private to symbolizer/. */
#ifndef SYMBOLIZER_DEMANGLE_H
#define SYMBOLIZER_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* Holds one readable name; zeroed is empty. */
struct sym_readable {
	char *text;
	size_t cap;
};

/*
 * The name without its version suffix and demangled. Either `raw` itself or held by
 * `readable` until the next call with it. Out of memory gives `raw`.
 */
const char *sym_readable_name(struct sym_readable *readable, const char *raw, bool no_demangle);

/*
 * The same for JIT code: also names of the Java VM; an '@' is part of the name (paths of JavaScript
 * modules hold some).
 */
const char *sym_readable_jit_name(struct sym_readable *readable, const char *raw,
				  bool no_demangle);

void sym_readable_fini(struct sym_readable *readable);

#endif
