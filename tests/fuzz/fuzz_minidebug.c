/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: .gnu_debugdata. The first byte tells whether the rest is xz, or the file that the
 * xz stands for, since no mutation gets past its checksums.
 */
#include <assert.h>
#include <stdlib.h>

#include "symbolizer/elf_minidebug.h"
#include "symbolizer/elf_syms.h"
#include "symbolizer/sym_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUTPUT_MAX = 256 * 1024 };

static void read_symbols(const uint8_t *image, size_t size)
{
	struct elf_source source = elf_source_image(image, size);
	struct elf_file elf;
	struct sym_builder b;
	struct sym_table table;

	if (elf_file_open(&source, &elf))
		return;
	sym_builder_init(&b, SYM_INNERMOST_WINS, OUTPUT_MAX);
	if (!elf_syms_of_section(&elf, SHT_SYMTAB, &b) && !sym_builder_finish(&b, false, &table)) {
		assert(sym_table_bytes(&table) <= OUTPUT_MAX + 4096);
		sym_table_fini(&table);
	}
	sym_builder_fini(&b);
	elf_file_close(&elf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_source source;
	uint8_t *bytes;
	size_t len;

	if (size == 0)
		return 0;
	if (data[0] & 1) {
		read_symbols(data + 1, size - 1);
		return 0;
	}
	source = elf_source_image(data + 1, size - 1);
	if (elf_minidebug_unpack(&source, 0, size - 1, OUTPUT_MAX, &bytes, &len))
		return 0;
	assert(len <= OUTPUT_MAX);
	read_symbols(bytes, len);
	free(bytes);
	return 0;
}
