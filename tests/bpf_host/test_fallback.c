/* SPDX-License-Identifier: Apache-2.0 */
/* Walks where there is no rule: by the frame pointer, in turn with tables, or marked. */
#include "rules_lab.h"

enum { F = 0x1000, G = 0x2000, MAIN = 0x8000 };

#define AT(function, into) (LAB_CODE + (function) + (into))
#define LIB(function, into) (LAB_LIB + (function) + (into))

static int setup(void **state)
{
	rules_setup(state);
	set_rule(AT(MAIN, 0), RULE_END);
	return 0;
}

/* ---- by table and by pointer in one stack ---- */

static void test_none_is_by_pointer(void **state)
{
	begin_at(AT(F, 4), SP(0));
	p.ctx.regs.bp = SP(10);
	p.stack[10] = SP(20);
	p.stack[11] = AT(MAIN, 0x10);
	CHECK_WHOLE(AT(F, 4), AT(MAIN, 0xf));
	check_counts(1, 1);
}

/* Table, pointer, pointer, table, pointer: each hands over sp and rbp. */
static void test_mixed(void **state)
{
	set_rule(AT(F, 0), RULE_SP(16));
	set_rule(LIB(F, 0), RULE(.cfa = SONDE_CFA_SP, .off = 32, .fp = SONDE_FP_AT_CFA,
				 .fp_off = -24));
	begin_at(AT(F, 4), SP(0));
	p.ctx.regs.bp = SP(10);
	p.stack[1] = AT(G, 0x10); /* no rule */
	p.stack[10] = SP(20);
	p.stack[11] = LIB(G, 0x10); /* no rule */
	p.stack[20] = NO_FP;
	p.stack[21] = LIB(F, 0x10); /* sp is now SP(22) */
	p.stack[25] = AT(G, 0x20);
	p.stack[23] = SP(40);
	p.stack[40] = 0;
	p.stack[41] = AT(MAIN, 0x10);
	CHECK_WHOLE(AT(F, 4), AT(G, 0xf), LIB(G, 0xf), LIB(F, 0xf), AT(G, 0x1f), AT(MAIN, 0xf));
	check_counts(3, 3);
}

static void pointer_to_main(void)
{
	set_rule(AT(F, 0), RULE(.cfa = SONDE_CFA_UNSUPPORTED)); /* not to be used */
	begin_at(AT(F, 4), SP(0));
	p.ctx.regs.bp = SP(10);
	p.stack[10] = 0;
	p.stack[11] = LIB(MAIN, 0x10);
}

static void test_states_of_a_file(void **state)
{
	static const __u8 states[] = { SONDE_FILE_NO_TABLE, 0, 99 };

	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		setup(NULL);
		pointer_to_main();
		set_state(exe_id, states[i]);
		set_state(lib_id, SONDE_FILE_NO_TABLE);
		CHECK_WHOLE(AT(F, 4), LIB(MAIN, 0xf));
		check_counts(0, 2);
	}
}

/* A frame pointer would be a guess as long as nobody knows what the file has. */
static void test_table_is_on_its_way(void **state)
{
	pointer_to_main();
	set_state(exe_id, SONDE_FILE_ASKED);
	CHECK_MARKED(TRUNCATED_TABLE, AT(F, 4));
	check_counts(0, 0);
}

/* Also of a file met further up, which the walk itself announces. */
static void test_table_of_a_caller_is_on_its_way(void **state)
{
	__u64 id = lib_id;

	set_rule(AT(F, 0), RULE_SP(8));
	assert_int_equal(bpf_map_delete_elem(&files, &id), 0);
	begin_at(AT(F, 4), SP(0));
	p.stack[0] = LIB(F, 0x10);
	CHECK_MARKED(TRUNCATED_TABLE, AT(F, 4), LIB(F, 0xf));
	check_counts(1, 0);
	assert_non_null(file_record(2000));
}

/* What is not there is no rule: pages, rows, rules. */
static void test_missing_parts(void **state)
{
	for (int part = 0; part < 5; part++) {
		setup(NULL);
		pointer_to_main();
		set_state(lib_id, SONDE_FILE_NO_TABLE);
		if (part == 0)
			drop_page(exe_id, 0);
		else if (part == 1)
			set_page(exe_id, 0, 0, 0);
		else if (part == 2)
			set_page(exe_id, 0, 4 * SONDE_ROWS_PER_ELEMENT, 10);
		else if (part == 3)
			set_page(exe_id, 0, 0xffffffff, 0xffffffff);
		else
			map_limit(&unwind_rules, 1); /* the row's number is out of range */
		CHECK_WHOLE(AT(F, 4), LIB(MAIN, 0xf));
		check_counts(0, 2);
	}
}

/* ---- rbp is 0 ---- */

/* Nobody has used rbp since the program's start: that says nothing about code without a rule. */
static void test_zero_fp_in_a_file_with_table(void **state)
{
	set_rule(AT(F, 0), RULE_SP(8));
	begin_at(AT(F, 4), SP(0));
	p.ctx.regs.bp = 0;
	p.stack[0] = AT(G, 0x10);
	p.stack[1] = AT(MAIN, 0x10); /* no argc */
	p.stack[2] = AT(MAIN, 0x10);
	CHECK_MARKED(TRUNCATED_FRAME, AT(F, 4), AT(G, 0xf));
}

/* Where the program was entered: sp is there, aligned downwards or a word above, no more. */
static void test_zero_fp_at_the_entry(void **state)
{
	for (int off = -24; off <= 24; off += 8) {
		struct mm_struct *mm;

		setup(NULL);
		mm = host_ptr((__u64)p.task->mm);
		mm->start_stack = SP(1) - off;
		set_rule(AT(F, 0), RULE_SP(8));
		begin_at(AT(F, 4), SP(0));
		p.ctx.regs.bp = 0;
		p.stack[0] = AT(G, 0x10);
		p.stack[1] = 1; /* argc, which proves nothing: any word may be so */
		p.stack[2] = SP(100);
		p.stack[3] = 0;
		if (off < -16 || off > 16)
			CHECK_MARKED(TRUNCATED_FRAME, AT(F, 4), AT(G, 0xf));
		else
			CHECK_WHOLE(AT(F, 4), AT(G, 0xf));
		check_counts(1, 1);
	}
}

/* A 0 read from a chain of frame pointers ends it, whatever the file has. */
static void test_zero_fp_in_a_chain(void **state)
{
	begin_at(AT(F, 4), SP(0));
	p.ctx.regs.bp = SP(10);
	p.stack[10] = 0;
	p.stack[11] = AT(G, 0x10);
	p.stack[12] = p.stack[13] = ~0ULL;
	CHECK_WHOLE(AT(F, 4), AT(G, 0xf));
	check_counts(0, 2);
}

/* ... but not one that a frame by table has had on the stack since. */
static void test_zero_fp_behind_a_chain(void **state)
{
	set_rule(LIB(F, 0), RULE(.cfa = SONDE_CFA_SP, .off = 16, .fp = SONDE_FP_AT_CFA,
				 .fp_off = -16));
	begin_at(AT(F, 4), SP(0));
	p.ctx.regs.bp = SP(10);
	p.stack[10] = 0;
	p.stack[11] = LIB(F, 0x10);
	p.stack[12] = 0;
	p.stack[13] = AT(G, 0x10);
	p.stack[14] = p.stack[15] = ~0ULL;
	CHECK_MARKED(TRUNCATED_FRAME, AT(F, 4), LIB(F, 0xf), AT(G, 0xf));
}

static void test_zero_fp_without_a_table(void **state)
{
	set_state(exe_id, SONDE_FILE_NO_TABLE);
	begin_at(AT(F, 4), SP(0));
	p.ctx.regs.bp = 0;
	p.stack[0] = p.stack[1] = ~0ULL;
	CHECK_WHOLE(AT(F, 4));
}

/* JIT code may use rbp as it likes; a chain of frame pointers may end there. */
static void test_zero_fp_in_jit_code(void **state)
{
	const struct sonde_user_stack *stack;

	begin_at(LAB_JIT + 4, SP(0));
	p.ctx.regs.bp = 0;
	lab_sample(&p);
	stack = lab_last_stack();
	assert_int_equal(stack->count, 2);
	check_frame(stack, 0, SONDE_FRAME_ANON, LAB_JIT + 4);
	check_frame(stack, 1, SONDE_FRAME_MARKER, SONDE_MARKER_TRUNCATED_FRAME);
	p.ctx.regs.bp = SP(10);
	p.stack[10] = 0;
	p.stack[11] = LAB_JIT + 0x10;
	lab_sample(&p);
	stack = lab_last_stack();
	assert_int_equal(stack->count, 2);
	check_frame(stack, 1, SONDE_FRAME_ANON, LAB_JIT + 0xf);
	lab_check_books();
}

/* Code without frame pointers: even one that would do is not followed; but the entry is an end. */
static void test_bare(void **state)
{
	struct mm_struct *mm;

	set_rule(AT(F, 0), RULE(.cfa = SONDE_CFA_BARE));
	begin_at(AT(F, 4), SP(0));
	p.ctx.regs.bp = SP(10);
	p.stack[10] = SP(20);
	p.stack[11] = AT(MAIN, 0x10);
	CHECK_MARKED(TRUNCATED_BARE, AT(F, 4));
	setup(NULL);
	mm = host_ptr((__u64)p.task->mm);
	mm->start_stack = SP(1);
	set_rule(AT(F, 0), RULE(.cfa = SONDE_CFA_BARE));
	begin_at(AT(F, 4), SP(0));
	p.ctx.regs.bp = 0;
	CHECK_WHOLE(AT(F, 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_none_is_by_pointer, setup),
		cmocka_unit_test_setup(test_mixed, setup),
		cmocka_unit_test_setup(test_states_of_a_file, setup),
		cmocka_unit_test_setup(test_table_is_on_its_way, setup),
		cmocka_unit_test_setup(test_table_of_a_caller_is_on_its_way, setup),
		cmocka_unit_test_setup(test_missing_parts, setup),
		cmocka_unit_test_setup(test_zero_fp_in_a_file_with_table, setup),
		cmocka_unit_test_setup(test_zero_fp_at_the_entry, setup),
		cmocka_unit_test_setup(test_zero_fp_in_a_chain, setup),
		cmocka_unit_test_setup(test_zero_fp_behind_a_chain, setup),
		cmocka_unit_test_setup(test_zero_fp_without_a_table, setup),
		cmocka_unit_test_setup(test_zero_fp_in_jit_code, setup),
		cmocka_unit_test_setup(test_bare, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
