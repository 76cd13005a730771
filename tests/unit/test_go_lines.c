/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines and inlined calls of Go, from a table made by hand: outer() in a.go calls inner() of b.go in
 * line in its second half. Real programs: tests/oracle_names.
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
#include "symbolizer/go_lines.h"

enum { HEADER = 72, HALF = 0x20, OUTER = 1, INNER = 7, SITE = 0x10 };

struct call {
	uint32_t kind, name, site, start_line;
};

/* Values by pc: pairs of a change (zigzag) and a length, then a 0. */
static const uint8_t by_pc[] = {
	0,                    /* no table begins at 0 */
	2,  HALF, 2, HALF, 0, /* at 1: file 0, then 1 */
	22, HALF, 5, HALF, 0, /* at 6: line 10, then 7 */
	0,  HALF, 2, HALF, 0, /* at 11: call -1 (none), then 0 */
};

static struct buf make_table(void)
{
	static const char names[] = "\0outer\0inner", files[] = "a.go\0b.go";
	static const uint32_t units[] = { 0, 5 };
	const uint32_t record[] = {
		0, OUTER, 0, 0, 0, 1, 6, 3, 0, 1, 4U << 24, 0, 0, 11, ~0U, ~0U, ~0U, 0,
	};
	size_t functab;
	struct buf b;

	buf_init(&b, 1 << 16);
	go_put(&b, 0xfffffff1, 4);
	go_put(&b, 0, 2);
	go_put(&b, 1, 1);
	go_put(&b, 8, 1);
	go_put(&b, 1, 8);
	for (int i = 0; i < 7; i++)
		go_put(&b, 0, 8);
	go_set(&b, 32, b.len, 8);
	buf_put(&b, names, sizeof(names));
	go_set(&b, 40, b.len, 8);
	buf_put(&b, units, sizeof(units));
	go_set(&b, 48, b.len, 8);
	buf_put(&b, files, sizeof(files));
	go_set(&b, 56, b.len, 8);
	buf_put(&b, by_pc, sizeof(by_pc));
	functab = b.len;
	go_set(&b, 64, functab, 8);
	go_put(&b, 0, 4);
	go_put(&b, 12, 4);
	go_put(&b, 2 * HALF, 4);
	buf_put(&b, record, sizeof(record));
	return b;
}

static struct go_lines *load(const struct buf *b, const struct call *call)
{
	struct go_lines *g = NULL;

	assert_int_equal(go_lines_parse(b->data, b->len, GO_LAB_TEXT, (const uint8_t *)call,
					sizeof(*call), &g),
			 0);
	return g;
}

static void check_line(const struct sym_line *line, const char *function, const char *file,
		       uint32_t number)
{
	assert_string_equal(line->function, function);
	assert_string_equal(line->file, file);
	assert_int_equal(line->line, number);
}

static void plain_and_inlined(void **state)
{
	const struct call call = { 0, INNER, SITE, 1 };
	struct buf b = make_table();
	struct go_lines *g = load(&b, &call);
	struct sym_line lines[8];

	for (uint64_t at = 0; at < HALF; at++) {
		assert_int_equal(go_lines_find(g, GO_LAB_TEXT + at, lines, 8), 1);
		check_line(&lines[0], "outer", "a.go", 10);
		assert_int_equal(go_lines_find(g, GO_LAB_TEXT + HALF + at, lines, 8), 2);
		check_line(&lines[0], "inner", "b.go", 7);
		check_line(&lines[1], "outer", "a.go", 10);
	}
	assert_int_equal(go_lines_find(g, GO_LAB_TEXT - 1, lines, 8), 0);
	assert_int_equal(go_lines_find(g, GO_LAB_TEXT + 2 * HALF, lines, 8), 0);
	assert_int_equal(go_lines_find(g, GO_LAB_TEXT, lines, 0), 0);
	assert_int_equal(go_lines_bytes(g) >= b.len, true);
	go_lines_free(g);
	buf_fini(&b);
}

/* What is not a tree of calls gives no lines rather than those of another function. */
static void damaged_calls(void **state)
{
	static const struct call calls[] = {
		{ 0, INNER + 1, SITE, 1 }, /* in the middle of a name */
		{ 0, 0, SITE, 1 },
		{ 0, 1000000, SITE, 1 },
		{ 0, INNER, 2 * HALF, 1 }, /* called from outside of the function */
	};
	struct buf b = make_table();

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct go_lines *g = load(&b, &calls[i]);
		struct sym_line lines[8];

		assert_int_equal(go_lines_find(g, GO_LAB_TEXT + HALF, lines, 8), 0);
		assert_int_equal(go_lines_find(g, GO_LAB_TEXT, lines, 8), 1);
		go_lines_free(g);
	}
	buf_fini(&b);
}

/* A call inside itself: as many lines as fit, and an end. */
static void endless_calls(void **state)
{
	const struct call call = { 0, INNER, HALF + 1, 1 };
	struct buf b = make_table();
	struct go_lines *g = load(&b, &call);
	struct sym_line lines[8];

	assert_int_equal(go_lines_find(g, GO_LAB_TEXT + HALF, lines, 8), 8);
	go_lines_free(g);
	buf_fini(&b);
}

static void cut_tables(void **state)
{
	const struct call call = { 0, INNER, SITE, 1 };
	struct buf b = make_table();
	size_t whole = b.len;

	for (b.len = 0; b.len < whole; b.len++) {
		struct go_lines *g;
		struct sym_line lines[8];

		if (go_lines_parse(b.data, b.len, GO_LAB_TEXT, (const uint8_t *)&call, sizeof(call),
				   &g))
			continue;
		for (uint64_t at = 0; at < 2 * HALF; at++)
			assert_true(go_lines_find(g, GO_LAB_TEXT + at, lines, 8) <= 2);
		go_lines_free(g);
	}
	buf_fini(&b);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_and_inlined),
		cmocka_unit_test(damaged_calls),
		cmocka_unit_test(endless_calls),
		cmocka_unit_test(cut_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
