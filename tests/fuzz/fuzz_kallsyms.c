/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: kallsyms text. Each look-up gives a name and a module, or none. */
#include <assert.h>

#include "symbolizer/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t bases[] = { 0, 0xffffffff81000000, 0xffffffffc0000000 };
	struct sym_kernel *kernel;
	struct sym_hit hit;

	if (sym_kernel_parse((const char *)data, size, &kernel))
		return 0;
	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		for (uint64_t addr = bases[i]; addr < bases[i] + 0x8000; addr += 61) {
			if (sym_kernel_find(kernel, addr, &hit) == SYM_OK)
				assert(hit.start <= addr && hit.name[0] && hit.module[0] == '[');
		}
	}
	sym_kernel_find(kernel, UINT64_MAX, &hit);
	assert(sym_kernel_bytes(kernel) > 0);
	sym_kernel_free(kernel);
	return 0;
}
