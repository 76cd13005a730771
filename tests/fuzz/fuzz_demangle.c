/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: demangling. The output stays within its size, is cut and not replaced if that
 * is small, and nothing is written for a name that is refused.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/symbolizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char out[32 * 1024], small[8];
	char *name = malloc(size + 1);

	if (!name)
		return 0;
	memcpy(name, data, size);
	name[size] = 0;
	out[0] = small[0] = '!';
	out[1] = small[1] = 0;
	if (sym_demangle(name, out, sizeof(out))) {
		assert(strlen(out) > 0 && strlen(out) <= 16 * 1024);
		assert(sym_demangle(name, small, sizeof(small)));
		assert(strncmp(out, small, sizeof(small) - 1) == 0);
	} else {
		assert(strcmp(out, "!") == 0);
	}
	free(name);
	return 0;
}
