/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a sym_file from memory, for the vDSO, tests and fuzzing; private to symbolizer/. */
#ifndef SYMBOLIZER_SYM_FILE_H
#define SYMBOLIZER_SYM_FILE_H

#include "symbolizer/symbolizer.h"

/* As sym_file_load, from an image that is only read during the call. */
int sym_file_load_image(const void *image, size_t size, const struct sym_file_options *options,
			struct sym_file **ret_file);

#endif
