/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's symbols from text in memory, for tests and fuzzing; private to symbolizer/. */
#ifndef SYMBOLIZER_KALLSYMS_H
#define SYMBOLIZER_KALLSYMS_H

#include "symbolizer/symbolizer.h"

/* As sym_kernel_load, from the text of a kallsyms file. */
int sym_kernel_parse(const char *text, size_t len, const struct sym_kernel_options *options,
		     struct sym_kernel **ret_kernel);

#endif
