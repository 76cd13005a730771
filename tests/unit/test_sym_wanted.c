/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of symbolizer/sym_wanted: told what will be asked for, a file answers as ever. */
#include "symbolizer/sym_wanted.h"

#include "elf_lab.h"
#include "symbolizer/sym_builder.h"

enum { TRIES = 4000, SPACE = 400, WANTED_MAX = 6 };

static uint64_t state_of_random = 88172645463325252ULL;

static uint64_t next_random(uint64_t below)
{
	state_of_random ^= state_of_random << 13;
	state_of_random ^= state_of_random >> 7;
	state_of_random ^= state_of_random << 17;
	return state_of_random % below;
}

/* A table of up to 24 symbols: aliases, labels, overlaps, symbols without a size, extents. */
static struct sym_builder make(size_t count, const struct sym_candidate *candidates)
{
	struct sym_builder b;

	sym_builder_init(&b, SYM_INNERMOST_WINS, 1 << 20);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(sym_builder_add(&b, &candidates[i]), 0);
	return b;
}

static void give_names(struct sym_builder *b)
{
	for (size_t i = 0; i < b->count; i++) {
		char name[16];
		int len = snprintf(name, sizeof(name), "f%u", b->candidates[i].name);

		assert_int_equal(sym_builder_add_name(b, name, (size_t)len, NULL,
						      &b->candidates[i].name),
				 0);
	}
}

static void random_candidate(struct sym_candidate *c, uint32_t number)
{
	*c = (struct sym_candidate){ .addr = next_random(SPACE), .name = number,
				     .rank = (uint8_t)next_random(16), .section = 1 };
	c->size = c->rank & SYM_RANK_SIZED ? next_random(next_random(4) ? 20 : 200) : SPACE;
	if (next_random(3) == 0)
		c->addr &= ~(uint64_t)63; /* aliases */
}

static void add_extents(struct sym_builder *b)
{
	struct sym_extent *extents = calloc(5, sizeof(*extents));

	for (size_t i = 0; i < 5; i++)
		extents[i] = (struct sym_extent){ i * 80, 60 };
	assert_int_equal(sym_builder_take_extents(b, extents, 5), 0);
}

static void same_answers(const struct sym_table *all, const struct sym_table *some, uint64_t addr)
{
	struct sym_found want, have;
	bool found = sym_table_find(all, addr, &want);

	assert_int_equal(sym_table_find(some, addr, &have), found);
	if (!found)
		return;
	assert_int_equal(have.start, want.start);
	assert_int_equal(!have.name, !want.name);
	if (have.name)
		assert_string_equal(have.name, want.name);
}

static void try_random(bool with_extents)
{
	size_t count = 1 + next_random(24), wanted_count = 1 + next_random(WANTED_MAX), functions;
	struct sym_candidate candidates[24];
	struct sym_builder all, some;
	struct sym_table all_table, some_table;
	uint64_t wanted[WANTED_MAX];

	for (size_t i = 0; i < count; i++)
		random_candidate(&candidates[i], (uint32_t)i);
	for (size_t i = 0; i < wanted_count; i++)
		wanted[i] = next_random(SPACE);
	all = make(count, candidates);
	give_names(&all);
	some = make(count, candidates);
	assert_int_equal(sym_wanted_add(&some.wanted, wanted, wanted_count), 0);
	if (with_extents) {
		add_extents(&all);
		add_extents(&some);
	}
	assert_int_equal(sym_wanted_filter(&some, 0, &functions), 0);
	assert_true(functions <= count && some.count <= count);
	give_names(&some);
	assert_int_equal(sym_builder_finish(&all, false, &all_table), 0);
	assert_int_equal(sym_builder_finish(&some, false, &some_table), 0);
	for (size_t i = 0; i < wanted_count; i++)
		same_answers(&all_table, &some_table, wanted[i]);
	sym_table_fini(&all_table);
	sym_table_fini(&some_table);
}

static void random_tables(void **state)
{
	for (int i = 0; i < TRIES; i++)
		try_random(i % 2);
}

static void far_symbols_go(void **state)
{
	const uint64_t wanted = 5005;
	struct sym_builder b;
	size_t functions;

	sym_builder_init(&b, SYM_INNERMOST_WINS, 1 << 20);
	for (uint32_t i = 0; i < 1000; i++) {
		struct sym_candidate c = { .addr = i * 10, .size = 10, .name = i,
					   .rank = SYM_RANK_SIZED | SYM_RANK_TYPED };

		assert_int_equal(sym_builder_add(&b, &c), 0);
	}
	assert_int_equal(sym_wanted_add(&b.wanted, &wanted, 1), 0);
	assert_int_equal(sym_wanted_filter(&b, 0, &functions), 0);
	assert_int_equal(functions, 1000);
	assert_int_equal(b.count, 2);
	assert_int_equal(b.candidates[0].name, 500);
	sym_builder_fini(&b);
}

static void sorted_once(void **state)
{
	const uint64_t first[] = { 7, 3, 7 }, more[] = { 5, 3 };
	struct sym_wanted w = { 0 };

	assert_int_equal(sym_wanted_add(&w, first, 3), 0);
	assert_int_equal(sym_wanted_add(&w, more, 2), 0);
	assert_int_equal(w.count, 3);
	for (uint64_t addr = 0; addr < 10; addr++) {
		size_t want = addr <= 3 ? 0 : addr <= 5 ? 1 : addr <= 7 ? 2 : 3;

		assert_int_equal(sym_wanted_first(&w, addr), want);
	}
	assert_true(sym_wanted_in(&w, 4, 6));
	assert_false(sym_wanted_in(&w, 4, 5));
	assert_false(sym_wanted_in(&w, 8, UINT64_MAX));
	sym_wanted_fini(&w);
}

/* Whole tables, .dynsym only, PLT, stripped, with debug files. */
static void real_file(const char *path)
{
	static const struct sym_file_options any = { .debug_dir = "/usr/lib/debug" };
	struct sym_file_options options = any;
	struct sym_file *all, *some;
	uint64_t wanted[500];

	if (access(path, R_OK)) {
		print_message("# skip: no %s\n", path);
		return;
	}
	all = lab_load_with(path, &any);
	for (size_t i = 0; i < 500; i++)
		wanted[i] = sym_file_code_start(all) + next_random(2 << 20);
	options.wanted = wanted;
	options.wanted_count = 500;
	some = lab_load_with(path, &options);
	for (size_t i = 0; i < 500; i++) {
		char want[512];

		strcpy(want, lab_name(all, wanted[i]));
		assert_string_equal(lab_name(some, wanted[i]), want);
	}
	sym_file_free(all);
	sym_file_free(some);
}

static void real_files(void **state)
{
	static const char *const paths[] = { "/proc/self/exe", "/bin/bash", "/usr/bin/python3",
					     "/usr/bin/perl", "/lib/x86_64-linux-gnu/libc.so.6",
					     "/lib/x86_64-linux-gnu/libcrypto.so.3",
					     "/lib/x86_64-linux-gnu/libstdc++.so.6" };

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		real_file(paths[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sorted_once),
		cmocka_unit_test(far_symbols_go),
		cmocka_unit_test(random_tables),
		cmocka_unit_test(real_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
