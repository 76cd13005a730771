/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind tables in the kernel's maps: finding the row, in walks too. */
#include "rules_lab.h"

#include <stdlib.h>

enum { F = 0x1000, G = 0x2000, MAIN = 0x8000 };

#define AT(function, into) (LAB_CODE + (function) + (into))
#define LIB(function, into) (LAB_LIB + (function) + (into))

static int setup(void **state)
{
	rules_setup(state);
	set_rule(AT(MAIN, 0), RULE_END);
	return 0;
}

/* ---- the search ---- */

static __u16 search_all(const struct sonde_row *rows, __u32 n, __u32 low)
{
	__u16 rule = 0;

	for (__u32 i = 0; i < n && rows[i].pc_low <= low; i++)
		rule = rows[i].rule;
	return rule;
}

static int by_number(const void *a, const void *b)
{
	const struct sonde_row *x = a, *y = b;

	return (int)x->pc_low - (int)y->pc_low;
}

/* Random distinct offsets, the first 0. Returns how many there are. */
static __u32 random_rows(struct sonde_row *rows, __u32 n)
{
	__u32 kept = 1;

	for (__u32 i = 0; i < n; i++)
		rows[i] = (struct sonde_row){ n == 65536 ? (__u16)i : (__u16)world_random(),
					      (__u16)world_random() };
	rows[0].pc_low = 0;
	qsort(rows, n, sizeof(*rows), by_number);
	for (__u32 i = 1; i < n; i++) {
		if (rows[i].pc_low != rows[kept - 1].pc_low)
			rows[kept++] = rows[i];
	}
	return kept;
}

static void check_search(__u32 first, __u32 n)
{
	static struct sonde_row rows[65536];
	struct sonde_page page = { first, 0 };

	page.count = random_rows(rows, n);
	for (__u32 i = 0; i < page.count; i++)
		set_page_row(first, i, rows[i].pc_low, rows[i].rule);
	index_page(first, page.count);
	for (__u32 low = 0, i = 0; low < 65536; low += page.count > 256 ? 17 : 1, i++) {
		__u32 exact = rows[i % page.count].pc_low;

		assert_int_equal(page_search(&page, low), search_all(rows, page.count, low));
		if (i < 2 * page.count && i < 512) {
			assert_int_equal(page_search(&page, exact), rows[i % page.count].rule);
			if (exact)
				assert_int_equal(page_search(&page, exact - 1),
						 rows[i % page.count - 1].rule);
		}
	}
}

static void test_search(void **state)
{
	static const __u32 sizes[] = { 1, 2, 3, 4, 5, 7, 8, 9, 64, 255, 256, 257, 3000 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		check_search(3 * SONDE_ROWS_PER_ELEMENT + 64 * (__u32)(world_random() % 4096),
			     sizes[i]);
}

static void test_search_in_full_pages(void **state)
{
	check_search(0, 65536);
	check_search(2 * SONDE_ROWS_PER_ELEMENT - SONDE_INDEX_ROWS - 65536, 65536); /* up to the element's end */
	check_search(SONDE_ROWS_PER_ELEMENT, 65535);
}

static void test_search_at_the_end_of_an_element(void **state)
{
	for (__u32 n = 1; n < 70; n++)
		check_search(4 * SONDE_ROWS_PER_ELEMENT - SONDE_INDEX_ROWS - n, n);
}

static void test_search_finds_nothing(void **state)
{
	const struct sonde_page empty = { 0, 0 }, outside = { 4 * SONDE_ROWS_PER_ELEMENT, 1 },
				far = { 0xffffffff, 0xffffffff };

	set_page_row(0, 0, 0, 77);
	assert_int_equal(page_search(&empty, 0), 0);
	assert_int_equal(page_search(&outside, 0), 0);
	assert_int_equal(page_search(&far, 0xffff), 0);
}

/* ---- pages ---- */

/* A return address at the beginning of a page belongs to the page before. */
static void test_page_boundaries(void **state)
{
	enum { EDGE = 0x10000 - LAB_CODE_OFFSET }; /* in the mapping, where file page 1 begins */

	set_rule(AT(F, 0), RULE_SP(8));
	set_rule(AT(EDGE - RULES_GRAIN, 0), RULE_SP(24));
	set_rule(AT(EDGE, 0), RULE_SP(40));
	begin_at(AT(F, 0), SP(0));
	p.stack[0] = AT(EDGE, 0); /* minus one: the last byte of page 0 */
	p.stack[3] = AT(EDGE, 1); /* minus one: the first of page 1 */
	p.stack[8] = AT(MAIN, 0x10);
	CHECK_WHOLE(AT(F, 0), AT(EDGE, -1), AT(EDGE, 0), AT(MAIN, 0xf));
}

/* The row of the page before that reaches in: only its rule at 0 tells. */
static void test_carried_row(void **state)
{
	__u16 rule = add_rule(RULE_SP(24));

	set_page(exe_id, 3, 5000, 1);
	set_page_row(5000, 0, 0, rule);
	index_page(5000, 1);
	begin_at(LAB_CODE + 0x3fff0 - LAB_CODE_OFFSET, SP(0));
	p.stack[2] = AT(MAIN, 0x10);
	CHECK_WHOLE(LAB_CODE + 0x3fff0 - LAB_CODE_OFFSET, AT(MAIN, 0xf));
}

/* The same offset in another file is another place. */
static void test_files_are_apart(void **state)
{
	set_rule(AT(F, 0), RULE_SP(8));
	set_rule(LIB(F, 0), RULE_SP(24));
	begin_at(AT(F, 4), SP(0));
	p.stack[0] = LIB(F, 0x10);
	p.stack[3] = AT(MAIN, 0x10);
	CHECK_WHOLE(AT(F, 4), LIB(F, 0xf), AT(MAIN, 0xf));
}

static void test_vdso(void **state)
{
	__u16 rule = add_rule(RULE_SP(24));

	set_page(SONDE_FRAME_VDSO, 0, 6000, 2);
	set_page_row(6000, 0, 0, 0);
	set_page_row(6000, 1, 0x700, rule);
	index_page(6000, 2);
	begin_at(LAB_VDSO + 0x700, SP(0));
	p.stack[2] = AT(MAIN, 0x10);
	lab_sample(&p);
	assert_int_equal(lab_last_stack()->count, 2);
	check_frame(lab_last_stack(), 0, SONDE_FRAME_VDSO, 0x700);
	check_frame(lab_last_stack(), 1, exe_id, LAB_CODE_OFFSET + MAIN + 0xf);
	check_counts(2, 0);
}

/* ---- rules that were found before ---- */

/* The same call once more, without forgetting. */
static void call_again(__u64 callee, __u64 caller, __u32 words)
{
	lab_begin(&p, callee);
	p.ctx.regs.sp = SP(0);
	p.ctx.regs.bp = NO_FP;
	memset(p.stack, 0, 8 * sizeof(p.stack[0]));
	p.stack[words - 1] = caller + 1;
	CHECK_WHOLE(callee, caller);
}

static void test_found_before(void **state)
{
	set_rule(AT(F, 0), RULE_SP(16));
	begin_at(AT(F, 4), SP(0));
	p.stack[1] = AT(MAIN, 0x10);
	CHECK_WHOLE(AT(F, 4), AT(MAIN, 0xf));
	empty_table(exe_id, RULES_EXE_FIRST);
	call_again(AT(F, 4), AT(MAIN, 0xf), 2);
	/* Another place of the same function was not found yet: nothing stands in for it. */
	lab_begin(&p, AT(F, 5));
	p.ctx.regs.sp = SP(0);
	p.ctx.regs.bp = NO_FP;
	lab_sample(&p);
	assert_int_equal(counter(SONDE_COUNT_TRUNCATED_FRAME), 1);
}

static void test_not_found_before(void **state)
{
	begin_at(AT(F, 4), SP(0));
	lab_sample(&p);
	assert_int_equal(counter(SONDE_COUNT_TRUNCATED_FRAME), 1);
	set_rule(AT(F, 0), RULE_SP(16));
	lab_begin(&p, AT(F, 4));
	p.ctx.regs.sp = SP(0);
	p.stack[1] = AT(MAIN, 0x10);
	lab_sample(&p);
	check_frame(lab_last_stack(), 1, exe_id, LAB_CODE_OFFSET + MAIN + 0xf);
}

/* More places than are remembered, of two files: each one's own rule, in whatever order. */
static void test_many_found_before(void **state)
{
	enum { FUNCTIONS = 6, PLACES = FUNCTIONS * RULES_GRAIN };

	for (__u32 f = 0; f < FUNCTIONS; f++) {
		set_rule(LAB_CODE + f * RULES_GRAIN, RULE_SP(8 * (1 + (__s32)f)));
		set_rule(LAB_LIB + f * RULES_GRAIN, RULE_SP(8 * (8 - (__s32)f)));
	}
	forget_rules();
	map_refuse(&seen_stacks, true); /* so that each stack is sent, those known too */
	for (__u32 turn = 0; turn < 2 * PLACES; turn++) {
		/* Each in turn, then at random. */
		__u32 place = turn < PLACES ? turn : world_random() % PLACES, f = place / RULES_GRAIN;

		ring_clear();
		call_again(LAB_CODE + place, AT(MAIN, 0xf), 1 + f);
		ring_clear();
		call_again(LAB_LIB + place, AT(MAIN, 0xf), 8 - f);
	}
}

static __u32 memo_of(__u64 file, __u32 place)
{
	return hash_step(file, LAB_CODE_OFFSET + place) & (SONDE_RULE_MEMOS - 1);
}

/* The same offset of two files, and one memory for both. */
static void test_found_in_another_file(void **state)
{
	__u32 place = MAIN + 0x1000, function;

	while (place < LAB_CODE_BYTES && memo_of(exe_id, place) != memo_of(lib_id, place))
		place++;
	assert_true(place < LAB_CODE_BYTES);
	function = place / RULES_GRAIN * RULES_GRAIN;
	set_rule(LAB_CODE + function, RULE_SP(16));
	set_rule(LAB_LIB + function, RULE_SP(32));
	forget_rules();
	call_again(LAB_CODE + place, AT(MAIN, 0xf), 2);
	call_again(LAB_LIB + place, AT(MAIN, 0xf), 4);
}

/* ---- a table that goes away under the walk ---- */

static __u64 reads_left;

static void drop_at_read(__u64 addr, __u32 size)
{
	if (reads_left && --reads_left == 0)
		drop_page(exe_id, 0);
}

/* Wherever it comes: the frames before are right, and the walk goes on by pointer or ends marked. */
static void test_dropped_in_mid_walk(void **state)
{
	static const __u64 want[] = { AT(F, 4), LIB(F, 0xf), AT(G, 0xf), LIB(G, 0xf), AT(MAIN, 0xf) };
	__u64 reads = 1;
	int cut = 0;

	do {
		const struct sonde_user_stack *stack;
		__u32 n;

		setup(NULL);
		set_rule(AT(F, 0), RULE_SP(8));
		set_rule(LIB(F, 0), RULE_SP(8));
		set_rule(AT(G, 0), RULE_SP(8));
		set_rule(LIB(G, 0), RULE_SP(8));
		begin_at(AT(F, 4), SP(0));
		for (__u32 i = 1; i < ARRAY_SIZE(want); i++)
			p.stack[i - 1] = want[i] + 1;
		reads_left = reads++;
		host.on_read = drop_at_read;
		lab_sample(&p);
		host.on_read = NULL;
		stack = lab_last_stack();
		n = stack->count;
		if (stack->frames[n - 1].file == SONDE_FRAME_MARKER) {
			assert_int_equal(stack->frames[n - 1].off, SONDE_MARKER_TRUNCATED_FRAME);
			n--;
			cut++;
		} else {
			assert_int_equal(n, ARRAY_SIZE(want));
		}
		check_addrs(want, n, stack->count - n);
	} while (!reads_left);
	assert_true(cut > 0);
}

/* ---- limits ---- */

static void deep(__u32 frames)
{
	set_rule(AT(F, 0), RULE_SP(8));
	begin_at(AT(F, 4), SP(0));
	for (__u32 i = 0; i + 2 < frames; i++)
		p.stack[i] = AT(F, 1 + i % 0xf0);
	p.stack[frames - 2] = AT(MAIN, 0x10);
}

static void test_deepest(void **state)
{
	deep(SONDE_MAX_FRAMES - 1);
	lab_sample(&p);
	assert_int_equal(lab_last_stack()->count, SONDE_MAX_FRAMES - 1);
	check_frame(lab_last_stack(), SONDE_MAX_FRAMES - 2, exe_id, LAB_CODE_OFFSET + MAIN + 0xf);
	check_unmarked();
	check_counts(SONDE_MAX_FRAMES - 1, 0);
}

static void test_too_deep(void **state)
{
	deep(SONDE_MAX_FRAMES);
	lab_sample(&p);
	assert_int_equal(lab_last_stack()->count, SONDE_MAX_FRAMES);
	check_frame(lab_last_stack(), SONDE_MAX_FRAMES - 1, SONDE_FRAME_MARKER,
		    SONDE_MARKER_TRUNCATED_DEPTH);
	assert_int_equal(counter(SONDE_COUNT_TRUNCATED_DEPTH), 1);
}

/* Whatever the tables and the stack hold, a walk ends, its frames are in code, and books balance. */
static void test_random(void **state)
{
	static const __u64 places[] = { LAB_CODE, LAB_LIB, LAB_JIT, LAB_VDSO, LAB_DATA, LAB_STACK, 0 };

	for (int round = 0; round < 3000; round++) {
		const struct sonde_user_stack *stack;

		if (round % 150 == 0)
			setup(NULL);
		for (int i = 0; i < 64; i++) {
			__u64 r = world_random();
			struct sonde_rule rule = {
				.cfa = r % 12,
				.fp = (r >> 8) % 5,
				.reg = (__u8)(r >> 16),
				.off = (__s32)((r >> 24) % 64) * 8 - 64,
				.add = (r >> 32) % 32,
				.fp_off = -(__s32)((r >> 40) % 8) * 8,
			};
			__u32 key = 1 + (__u32)i;

			bpf_map_update_elem(&unwind_rules, &key, &rule, BPF_ANY);
			set_row((__u32)(world_random() % (RULES_PAGES * RULES_STRIDE)),
				(__u16)world_random(), (__u16)(world_random() % 70));
		}
		begin_at(LAB_CODE + world_random() % LAB_CODE_BYTES, SP(world_random() % 400));
		p.ctx.regs.bp = SP(world_random() % 600);
		for (size_t i = 0; i < 700; i++)
			p.stack[i] = places[world_random() % ARRAY_SIZE(places)] +
				     world_random() % 0x1400;
		lab_sample(&p);
		stack = lab_last_stack();
		assert_in_range(stack->count, 1, SONDE_MAX_FRAMES);
		for (__u32 i = 0; i + 1 < stack->count; i++)
			assert_int_not_equal(stack->frames[i].file, SONDE_FRAME_MARKER);
		lab_check_books();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_search, setup),
		cmocka_unit_test_setup(test_search_in_full_pages, setup),
		cmocka_unit_test_setup(test_search_at_the_end_of_an_element, setup),
		cmocka_unit_test_setup(test_search_finds_nothing, setup),
		cmocka_unit_test_setup(test_page_boundaries, setup),
		cmocka_unit_test_setup(test_carried_row, setup),
		cmocka_unit_test_setup(test_files_are_apart, setup),
		cmocka_unit_test_setup(test_vdso, setup),
		cmocka_unit_test_setup(test_found_before, setup),
		cmocka_unit_test_setup(test_not_found_before, setup),
		cmocka_unit_test_setup(test_many_found_before, setup),
		cmocka_unit_test_setup(test_found_in_another_file, setup),
		cmocka_unit_test_setup(test_dropped_in_mid_walk, setup),
		cmocka_unit_test_setup(test_deepest, setup),
		cmocka_unit_test_setup(test_too_deep, setup),
		cmocka_unit_test_setup(test_random, setup),
	};

	world_random_seed(11);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
