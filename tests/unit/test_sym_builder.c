/* SPDX-License-Identifier: Apache-2.0 */
/* The making of symbol tables, checked against a slow and simple model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "symbolizer/sym_builder.h"
#include "symbolizer/sym_table.h"

static void add(struct sym_builder *b, uint64_t addr, uint64_t size, const char *name, uint8_t rank)
{
	struct sym_candidate c = { .addr = addr, .size = size, .rank = rank };

	assert_int_equal(sym_builder_add_name(b, name, strlen(name), NULL, &c.name), 0);
	assert_int_equal(sym_builder_add(b, &c), 0);
}

static void add_sized(struct sym_builder *b, uint64_t addr, uint64_t size, const char *name)
{
	add(b, addr, size, name, SYM_RANK_SIZED);
}

static const char *name_at(const struct sym_table *t, uint64_t addr)
{
	struct sym_found found;

	return sym_table_find(t, addr, &found) ? found.name : "-";
}

static void nothing_in_nothing_out(void **state)
{
	struct sym_builder b;
	struct sym_table t;
	struct sym_found found;

	sym_builder_init(&b, SYM_INNERMOST_WINS, 1000);
	assert_int_equal(sym_builder_finish(&b, false, &t), 0);
	assert_false(sym_table_find(&t, 0, &found));
	sym_table_fini(&t);
}

static void inner_symbol_interrupts_outer(void **state)
{
	struct sym_builder b;
	struct sym_table t;
	struct sym_found found;

	sym_builder_init(&b, SYM_INNERMOST_WINS, 10000);
	add_sized(&b, 40, 20, "inner");
	add_sized(&b, 0, 100, "outer");
	add_sized(&b, 200, 10, "apart");
	add_sized(&b, 205, 20, "crossing");
	assert_int_equal(sym_builder_finish(&b, false, &t), 0);
	assert_string_equal(name_at(&t, 0), "outer");
	assert_string_equal(name_at(&t, 39), "outer");
	assert_string_equal(name_at(&t, 40), "inner");
	assert_string_equal(name_at(&t, 59), "inner");
	assert_string_equal(name_at(&t, 60), "outer");
	assert_true(sym_table_find(&t, 60, &found));
	assert_int_equal(found.start, 0);
	assert_string_equal(name_at(&t, 99), "outer");
	assert_string_equal(name_at(&t, 100), "-");
	assert_string_equal(name_at(&t, 204), "apart");
	assert_string_equal(name_at(&t, 224), "crossing");
	assert_string_equal(name_at(&t, 225), "-");
	/* "outer" is kept once though it has two ranges. */
	assert_int_equal(t.names_len,
			 sizeof("outer") + sizeof("inner") + sizeof("apart") + sizeof("crossing"));
	sym_table_fini(&t);
}

static void unsized_fill_gaps(void **state)
{
	struct sym_builder b;
	struct sym_table t;

	sym_builder_init(&b, SYM_INNERMOST_WINS, 10000);
	add(&b, 100, 1000, "gap", 0); /* its section ends at 1000 */
	add_sized(&b, 200, 50, "sized");
	add(&b, 220, 1000, "label", 0); /* inside "sized" */
	add(&b, 250, 1000, "behind", 0);
	add(&b, 990, 1000, "last", 0);
	add(&b, 2000, 0, "unknown_end", 0);
	assert_int_equal(sym_builder_finish(&b, false, &t), 0);
	assert_string_equal(name_at(&t, 199), "gap");
	assert_string_equal(name_at(&t, 200), "sized");
	assert_string_equal(name_at(&t, 225), "sized");
	assert_string_equal(name_at(&t, 250), "behind");
	assert_string_equal(name_at(&t, 999), "last");
	assert_string_equal(name_at(&t, 1000), "-");
	assert_string_equal(name_at(&t, 2000), "unknown_end");
	assert_string_equal(name_at(&t, 2001), "-");
	sym_table_fini(&t);
}

static void bounds_hold(void **state)
{
	struct sym_candidate c = { .addr = UINT64_MAX - 4, .size = 100, .rank = SYM_RANK_SIZED };
	struct sym_builder b;
	struct sym_table t;
	uint32_t offset;
	int err = 0;

	sym_builder_init(&b, SYM_INNERMOST_WINS, 1000);
	assert_int_equal(sym_builder_add_name(&b, "end", 3, NULL, &c.name), 0);
	for (size_t i = 0; i < 100 && !err; i++)
		err = sym_builder_add(&b, &c);
	assert_int_equal(err, -EFBIG);
	assert_true(b.count == 1000 / 52);
	assert_int_equal(sym_builder_add_name(&b, b.names, 1000, NULL, &offset), -EFBIG);
	assert_int_equal(sym_builder_reserve(&b, SIZE_MAX), -EFBIG);
	assert_int_equal(sym_builder_finish(&b, false, &t), 0);
	assert_string_equal(name_at(&t, UINT64_MAX - 1), "end");
	assert_string_equal(name_at(&t, UINT64_MAX), "-");
	sym_table_fini(&t);
}

static void names_keep_their_notes(void **state)
{
	struct sym_candidate c = { .addr = 5, .size = 5, .rank = SYM_RANK_SIZED };
	struct sym_builder b;
	struct sym_table t;
	const char *name;

	sym_builder_init(&b, SYM_INNERMOST_WINS, 1000);
	assert_int_equal(sym_builder_add_name(&b, "lost", 4, "x", &c.name), 0);
	assert_int_equal(sym_builder_add_name(&b, "function", 8, "[module]", &c.name), 0);
	assert_int_equal(sym_builder_add(&b, &c), 0);
	assert_int_equal(sym_builder_finish(&b, true, &t), 0);
	name = name_at(&t, 7);
	assert_string_equal(name, "function");
	assert_string_equal(name + 9, "[module]");
	assert_int_equal(t.names_len, 18);
	sym_table_fini(&t);
}

static uint32_t random_below(uint64_t *seed, uint32_t bound)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(*seed >> 33) % bound;
}

struct model {
	uint64_t start, end;
};

/* The winner at an address: the one that begins last, or the one added last. */
static int winner(const struct model *m, int count, uint64_t addr, enum sym_overlap overlap)
{
	int best = -1;

	for (int i = 0; i < count; i++) {
		if (addr < m[i].start || addr >= m[i].end)
			continue;
		if (best < 0 || overlap == SYM_NEWEST_WINS || m[i].start > m[best].start)
			best = i;
	}
	return best;
}

static void one_random_table(uint64_t *seed, enum sym_overlap overlap)
{
	enum { COUNT = 40, SPACE = 400 };
	struct model m[COUNT];
	struct sym_builder b;
	struct sym_table t;

	sym_builder_init(&b, overlap, 100000);
	for (int i = 0; i < COUNT; i++) {
		char name[16];

		/* Distinct starts, so that no alias rule has a say: start = 10 k + a bit. */
		m[i].start = overlap == SYM_NEWEST_WINS
				     ? random_below(seed, SPACE)
				     : (uint64_t)((i * 7) % COUNT) * 10 + random_below(seed, 10);
		m[i].end = m[i].start + 1 + random_below(seed, random_below(seed, 4) ? 15 : 200);
		snprintf(name, sizeof(name), "%d", i);
		add_sized(&b, m[i].start, m[i].end - m[i].start, name);
	}
	assert_int_equal(sym_builder_finish(&b, false, &t), 0);
	for (uint64_t addr = 0; addr < SPACE + 250; addr++) {
		int expected = winner(m, COUNT, addr, overlap);
		struct sym_found found;

		assert_true(sym_table_find(&t, addr, &found) == (expected >= 0));
		if (expected < 0)
			continue;
		assert_int_equal(atoi(found.name), expected);
		assert_int_equal(found.start, m[expected].start);
	}
	sym_table_fini(&t);
}

static void random_tables_match_model(void **state)
{
	uint64_t seed = 1;

	for (int i = 0; i < 300; i++) {
		one_random_table(&seed, SYM_INNERMOST_WINS);
		one_random_table(&seed, SYM_NEWEST_WINS);
	}
}

/* The choice must not depend on the order in which the linker wrote the symbols. */
static void order_does_not_matter(void **state)
{
	static const struct {
		uint64_t addr, size;
		const char *name;
		uint8_t rank;
	} symbols[] = { { 10, 10, "weak", SYM_RANK_SIZED },
			{ 10, 10, "_strong", SYM_RANK_SIZED | SYM_RANK_STRONG },
			{ 10, 30, "strong", SYM_RANK_SIZED | SYM_RANK_STRONG },
			{ 10, 20, "sTrong@@V2", SYM_RANK_SIZED | SYM_RANK_STRONG },
			{ 10, 90, "none", SYM_RANK_STRONG },
			{ 15, 90, "inside", SYM_RANK_STRONG } };
	enum { COUNT = sizeof(symbols) / sizeof(symbols[0]) };

	for (size_t first = 0; first < COUNT; first++) {
		for (int step = 1; step < COUNT; step += 4) {
			struct sym_builder b;
			struct sym_table t;

			sym_builder_init(&b, SYM_INNERMOST_WINS, 10000);
			for (size_t i = 0, at = first; i < COUNT; i++, at = (at + step) % COUNT)
				add(&b, symbols[at].addr, symbols[at].size, symbols[at].name,
				    symbols[at].rank);
			assert_int_equal(sym_builder_finish(&b, false, &t), 0);
			assert_string_equal(name_at(&t, 10), "sTrong@@V2");
			assert_string_equal(name_at(&t, 29), "sTrong@@V2");
			assert_string_equal(name_at(&t, 30), "strong");
			assert_string_equal(name_at(&t, 40), "-");
			sym_table_fini(&t);
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_in_nothing_out),
		cmocka_unit_test(inner_symbol_interrupts_outer),
		cmocka_unit_test(unsized_fill_gaps),
		cmocka_unit_test(bounds_hold),
		cmocka_unit_test(names_keep_their_notes),
		cmocka_unit_test(random_tables_match_model),
		cmocka_unit_test(order_does_not_matter),
	};

	return cmocka_run_group_tests_name("sym_builder", tests, NULL, NULL);
}
