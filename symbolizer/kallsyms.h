/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's symbols from text in memory, for tests and fuzzing; private to symbolizer/. */
#ifndef SYMBOLIZER_KALLSYMS_H
#define SYMBOLIZER_KALLSYMS_H

#include "symbolizer/symbolizer.h"

/* As sym_kernel_load, from the text of a kallsyms file; with an offset, as sym_kernel_load_copy. */
int sym_kernel_parse(const char *text, size_t len, uint64_t offset,
		     const struct sym_kernel_options *options, struct sym_kernel **ret_kernel);

#endif
