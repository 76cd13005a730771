/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: kallsyms text. Each look-up gives a name and a module, or none, and the same one if the
 * address was told beforehand.
 */
#include <assert.h>
#include <string.h>

#include "symbolizer/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *text, size_t size, const struct sym_kernel *all, uint64_t addr)
{
	const struct sym_kernel_options options = { .wanted = &addr, .wanted_count = 1 };
	struct sym_kernel *one;
	struct sym_hit hit, same;

	if (sym_kernel_find(all, addr, &hit) != SYM_OK)
		return;
	assert(hit.start <= addr && hit.name[0] && hit.module[0] == '[');
	if (sym_kernel_parse(text, size, &options, &one))
		return;
	assert(sym_kernel_find(one, addr, &same) == SYM_OK && same.start == hit.start);
	assert(strcmp(same.raw_name, hit.raw_name) == 0 && strcmp(same.module, hit.module) == 0);
	sym_kernel_free(one);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t bases[] = { 0, 0xffffffff81000000, 0xffffffffc0000000 };
	const struct sym_kernel_options any = { 0 };
	const char *text = (const char *)data;
	struct sym_kernel *kernel;
	struct sym_hit hit;

	if (sym_kernel_parse(text, size, &any, &kernel))
		return 0;
	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		for (uint64_t addr = bases[i]; addr < bases[i] + 0x8000; addr += 61) {
			if (sym_kernel_find(kernel, addr, &hit) == SYM_OK)
				assert(hit.start <= addr && hit.name[0] && hit.module[0] == '[');
		}
		for (uint64_t addr = bases[i]; addr < bases[i] + 0x8000; addr += 0x777)
			check(text, size, kernel, addr);
	}
	sym_kernel_find(kernel, UINT64_MAX, &hit);
	assert(sym_kernel_bytes(kernel) > 0);
	sym_kernel_free(kernel);
	return 0;
}
