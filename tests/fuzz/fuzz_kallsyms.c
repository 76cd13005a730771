/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: kallsyms text. Each look-up gives a name and a module, or none; the same one if the
 * addresses were told beforehand, and, in the kernel itself, by a copy that was made meanwhile. The
 * bytes are read as a copy, too.
 */
#include <assert.h>
#include <string.h>

#include "base/buf.h"
#include "symbolizer/kallsyms.h"

enum { SPAN = 0x8000, STEP = 0x777, BASES = 3, WANTED = BASES * (SPAN / STEP + 1) };

#define KERNEL "[kernel.kallsyms]"

static const uint64_t bases[BASES] = { 0, 0xffffffff81000000, 0xffffffffc0000000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(struct sym_kernel *a, struct sym_kernel *b, uint64_t addr, bool kernel_only)
{
	struct sym_hit one, other;

	if (sym_kernel_find(a, addr, &one) != SYM_OK)
		return;
	assert(one.start <= addr && one.name[0] && one.module[0] == '[');
	if (kernel_only && strcmp(one.module, KERNEL) != 0)
		return;
	assert(sym_kernel_find(b, addr, &other) == SYM_OK && other.start == one.start);
	assert(strcmp(one.raw_name, other.raw_name) == 0);
	assert(strcmp(one.module, other.module) == 0);
}

static void check_wanted(const char *text, size_t size, struct sym_kernel *all)
{
	uint64_t wanted[WANTED];
	size_t n = 0;

	for (size_t i = 0; i < BASES; i++) {
		for (uint64_t addr = bases[i]; addr < bases[i] + SPAN; addr += STEP)
			wanted[n++] = addr;
	}
	const struct sym_kernel_options options = { .wanted = wanted, .wanted_count = n };
	struct sym_kernel *some;

	if (sym_kernel_parse(text, size, 0, &options, &some))
		return;
	for (size_t i = 0; i < n; i++)
		check_same(all, some, wanted[i], false);
	sym_kernel_free(some);
}

/* Without modules a copy has all; with them their symbols end others in the text alone. */
static void check_copy(const struct buf *copy, struct sym_kernel *all, bool has_modules)
{
	const struct sym_kernel_options any = { 0 };
	struct sym_kernel *again;

	if (!copy->len || sym_kernel_parse((const char *)copy->data, copy->len, bases[1], &any,
					   &again))
		return;
	for (uint64_t addr = bases[1]; addr < bases[1] + SPAN && !has_modules; addr += STEP)
		check_same(all, again, addr, true);
	sym_kernel_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct buf copy;
	struct sym_kernel_options options = { .copy = &copy, .text = bases[1] };
	struct sym_kernel *kernel;
	struct sym_hit hit;

	buf_init(&copy, 1 << 20);
	if (sym_kernel_parse(text, size, 0, &options, &kernel) == 0) {
		for (size_t i = 0; i < BASES; i++) {
			for (uint64_t addr = bases[i]; addr < bases[i] + SPAN; addr += 61)
				check_same(kernel, kernel, addr, false);
		}
		check_wanted(text, size, kernel);
		check_copy(&copy, kernel,
			   size && (memchr(text, '[', size) || memchr(text, '\t', size)));
		assert(sym_kernel_bytes(kernel) > 0);
		sym_kernel_find(kernel, UINT64_MAX, &hit);
		sym_kernel_free(kernel);
	}
	buf_fini(&copy);
	options = (struct sym_kernel_options){ 0 };
	if (sym_kernel_parse(text, size, bases[1], &options, &kernel) == 0)
		sym_kernel_free(kernel);
	return 0;
}
