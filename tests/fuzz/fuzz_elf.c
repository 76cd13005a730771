/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: ELF files, with their PLT, unwind data, .gnu_debugdata and debug link. Whatever loads
 * must have an id, and answer each look-up with a name that begins at or below the address, or a
 * reason.
 */
#include <assert.h>
#include <string.h>

#include "symbolizer/elf_debug.h"
#include "symbolizer/sym_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WANTED = 8 };

static void check_find(struct sym_file *file, uint64_t vaddr)
{
	struct sym_hit hit;
	enum sym_reason reason = sym_file_find(file, vaddr, &hit);

	assert(reason >= 0 && reason < SYM_REASON_COUNT);
	if (reason != SYM_OK && reason != SYM_START_ONLY)
		return;
	assert(hit.start <= vaddr && hit.name[0] && hit.raw_name[0]);
}

static void check_link(const uint8_t *data, size_t size)
{
	struct elf_source source = elf_source_image(data, size);
	struct elf_file elf;
	char name[256];
	uint32_t crc;

	if (elf_file_open(&source, &elf))
		return;
	if (elf_debug_link(&elf, name, &crc))
		assert(name[0] && strlen(name) < sizeof(name) && !strchr(name, '/'));
	elf_file_close(&elf);
}

/*
 * Told beforehand what will be asked for, the file gives no other name. It may give none: a nameless
 * function hides what lies below it. Nor does it meet the bound on memory that soon.
 */
static void check_wanted(const uint8_t *data, size_t size, struct sym_file *all,
			 const uint64_t *wanted, size_t count)
{
	const struct sym_file_options options = {
		.max_bytes = 1024 * 1024, .wanted = wanted, .wanted_count = count
	};
	struct sym_file *some;
	struct sym_hit hit, same;

	if (count == 0 || sym_file_load_image(data, size, &options, &some))
		return;
	for (size_t i = 0; i < count; i++) {
		enum sym_reason reason = sym_file_find(all, wanted[i], &hit);

		check_find(some, wanted[i]);
		if (sym_file_find(some, wanted[i], &same) != SYM_OK || reason == SYM_NO_MEMORY)
			continue;
		assert(reason == SYM_OK && hit.start == same.start);
		assert(strcmp(hit.raw_name, same.raw_name) == 0);
	}
	sym_file_free(some);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct sym_file_options options = { .max_bytes = 1024 * 1024 };
	uint64_t vaddr, wanted[WANTED];
	struct sym_file *file;
	size_t count = 0;

	check_link(data, size);
	if (sym_file_load_image(data, size, &options, &file))
		return 0;
	assert(strlen(sym_file_build_id(file)) >= 2);
	assert(sym_file_bytes(file) < 2 * options.max_bytes);
	for (uint64_t off = 0; off < size; off += 16) {
		if (!sym_file_vaddr(file, off, &vaddr))
			continue;
		check_find(file, vaddr);
		if (off % (size / WANTED + 1) < 16 && count < WANTED)
			wanted[count++] = vaddr;
	}
	check_wanted(data, size, file, wanted, count);
	check_find(file, 0);
	check_find(file, UINT64_MAX);
	sym_file_free(file);
	return 0;
}
