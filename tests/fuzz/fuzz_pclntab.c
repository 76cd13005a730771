/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: Go's pclntab. What loads has names of the table, within its code, in order; lines
 * have functions. The second half of the input also stands for the trees of inlined calls.
 */
#include <assert.h>
#include <string.h>

#include "symbolizer/go_lines.h"
#include "symbolizer/sym_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct sym_table *t)
{
	struct sym_found found;

	for (size_t i = 0; i < t->count; i++) {
		if (!t->ranges[i].size)
			continue;
		assert(sym_table_find(t, t->ranges[i].addr, &found));
		assert(found.name && found.name[0] && found.start <= t->ranges[i].addr);
	}
}

static void check_lines(const uint8_t *data, size_t size, uint64_t text)
{
	struct sym_line lines[16];
	struct go_lines *g;

	if (go_lines_parse(data, size, text, data + size / 2, size - size / 2, &g))
		return;
	for (uint64_t at = 0; at < 4096; at += 61) {
		size_t count = go_lines_find(g, text + at, lines, 16);

		assert(count <= 16);
		for (size_t i = 0; i < count; i++)
			assert(lines[i].function[0] && lines[i].file);
	}
	go_lines_free(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { TEXT = 0x401000, TEXT_SIZE = 1 << 20 };
	Elf64_Phdr code = {
		.p_type = PT_LOAD, .p_flags = PF_X, .p_vaddr = TEXT, .p_memsz = TEXT_SIZE
	};
	struct elf_file elf = { .source = elf_source_image(data, size),
				.segments = &code,
				.segment_count = 1 };
	struct go_place place = { .off = 0 };
	struct sym_builder b;
	struct sym_table table;

	if (go_header_parse(data, size < GO_HEADER_MAX ? size : GO_HEADER_MAX, size, &place.header))
		return 0;
	check_lines(data, size, place.header.version >= 18 ? TEXT : 0);
	sym_builder_init(&b, SYM_INNERMOST_WINS, 1024 * 1024);
	if (!go_pclntab_add_at(&elf, &place, place.header.version >= 18 ? TEXT : 0, &b) &&
	    !sym_builder_finish(&b, false, &table)) {
		check(&table);
		sym_table_fini(&table);
	}
	sym_builder_fini(&b);
	return 0;
}
