/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's table of functions in all layouts, good and damaged. Real programs of several versions are
 * compared with Go's own tools by tests/oracle_names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "go_lab.h"
#include "symbolizer/sym_table.h"

static const char *const names[] = { "runtime.main", "main.(*T).Do", "main.main.func1",
				     "main.Map[...]" };

enum { COUNT = sizeof(names) / sizeof(names[0]) };

/* Loads a table as if it were all of the file, its text in a segment of `text_size` bytes. */
static int load(const struct buf *b, uint64_t text_size, struct sym_table *ret_table)
{
	Elf64_Phdr code = {
		.p_type = PT_LOAD, .p_flags = PF_X, .p_vaddr = GO_LAB_TEXT, .p_memsz = text_size
	};
	struct elf_file elf = { .source = elf_source_image(b->data, b->len),
				.segments = &code,
				.segment_count = 1 };
	struct go_place place = { .off = 0 };
	struct sym_builder builder;
	int err;

	err = go_header_parse(b->data, b->len < GO_HEADER_MAX ? b->len : GO_HEADER_MAX, b->len,
			      &place.header);
	if (err)
		return err;
	sym_builder_init(&builder, SYM_INNERMOST_WINS, 1 << 20);
	err = go_pclntab_add_at(&elf, &place, place.header.version >= 18 ? GO_LAB_TEXT : 0,
				&builder);
	if (!err)
		err = sym_builder_finish(&builder, false, ret_table);
	sym_builder_fini(&builder);
	return err;
}

static void all_layouts(void **state)
{
	static const unsigned int versions[] = { 2, 16, 18, 20 };

	for (size_t i = 0; i < 8; i++) {
		struct buf b = go_lab_table(versions[i / 2], i % 2 ? 8 : 4, names, COUNT);
		struct sym_table t;
		struct sym_found found;

		assert_int_equal(load(&b, COUNT * GO_LAB_STEP, &t), 0);
		for (uint64_t at = 0; at < COUNT * GO_LAB_STEP; at++) {
			assert_true(sym_table_find(&t, GO_LAB_TEXT + at, &found));
			assert_string_equal(found.name, names[at / GO_LAB_STEP]);
			assert_int_equal(found.start, GO_LAB_TEXT + at / GO_LAB_STEP * GO_LAB_STEP);
		}
		assert_false(sym_table_find(&t, GO_LAB_TEXT - 1, &found));
		assert_false(sym_table_find(&t, GO_LAB_TEXT + COUNT * GO_LAB_STEP, &found));
		sym_table_fini(&t);
		buf_fini(&b);
	}
}

/* Cut anywhere: an error, or names that are all right. */
static void cut_tables(void **state)
{
	static const unsigned int versions[] = { 2, 16, 18, 20 };

	for (size_t i = 0; i < 4; i++) {
		struct buf b = go_lab_table(versions[i], 8, names, COUNT);
		size_t whole = b.len;

		for (b.len = 0; b.len < whole; b.len++) {
			struct sym_table t;
			struct sym_found found;

			if (load(&b, COUNT * GO_LAB_STEP, &t))
				continue;
			for (size_t f = 0; f < COUNT; f++) {
				if (sym_table_find(&t, GO_LAB_TEXT + f * GO_LAB_STEP, &found))
					assert_string_equal(found.name, names[f]);
			}
			sym_table_fini(&t);
		}
		buf_fini(&b);
	}
}

static void wrong_text_is_refused(void **state)
{
	struct buf b = go_lab_table(20, 8, names, COUNT);
	struct sym_table t;

	assert_int_equal(load(&b, COUNT * GO_LAB_STEP - 1, &t), -EBADMSG);
	assert_int_equal(load(&b, 0, &t), -EBADMSG);
	buf_fini(&b);
}

static void damaged_headers(void **state)
{
	static const struct {
		size_t at;
		uint64_t value;
		size_t size;
		int err;
	} damages[] = {
		{ 0, 0xf2, 1, -ENOENT }, /* a magic of tomorrow */
		{ 4, 1, 1, -ENOENT },           { 6, 3, 1, -ENOENT },
		{ 7, 16, 1, -ENOENT },          { 8, 0, 8, -EBADMSG },
		{ 8, 1ULL << 40, 8, -EBADMSG }, { 8, 1000, 8, -EBADMSG },
		{ 32, ~0ULL, 8, -EBADMSG },     { 64, ~0ULL - 7, 8, -EBADMSG },
	};

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		struct buf b = go_lab_table(20, 8, names, COUNT);
		struct sym_table t;

		go_set(&b, damages[i].at, damages[i].value, damages[i].size);
		assert_int_equal(load(&b, COUNT * GO_LAB_STEP, &t), damages[i].err);
		buf_fini(&b);
	}
}

/* Functions out of order or records outside the table spoil all of it: no name is guessed. */
static void damaged_functab(void **state)
{
	for (int what = 0; what < 2; what++) {
		struct buf b = go_lab_table(20, 8, names, COUNT);
		struct sym_table t;
		uint64_t functab = 0;

		memcpy(&functab, b.data + 64, 8);
		go_set(&b, functab + (what ? 12 : 8), what ? 0xfffffff0 : 3 * GO_LAB_STEP, 4);
		assert_int_equal(load(&b, COUNT * GO_LAB_STEP, &t), -EBADMSG);
		buf_fini(&b);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_layouts),           cmocka_unit_test(cut_tables),
		cmocka_unit_test(wrong_text_is_refused), cmocka_unit_test(damaged_headers),
		cmocka_unit_test(damaged_functab),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
