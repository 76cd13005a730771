/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks through signal frames: the interrupted code's registers all come from the ucontext, its
 * pc is no return address, and its stack may be any other.
 */
#include "rules_lab.h"

enum { HANDLER = 0x1000, RESTORER = 0x2000, F = 0x3000, G = 0x4000, MAIN = 0x8000 };

#define AT(function, into) (LAB_CODE + (function) + (into))

static int setup(void **state)
{
	rules_setup(state);
	set_rule(AT(HANDLER, 0), RULE_SP(32));
	set_rule(AT(RESTORER, 0), RULE_SIGNAL(0));
	set_rule(AT(F, 0), RULE_SP(16));
	set_rule(AT(G, 0), RULE_SP(24));
	set_rule(AT(MAIN, 0), RULE_END);
	return 0;
}

/* Sampled in the handler at word `at` of the stack, with the interrupted registers above. */
static void handler_at(__u32 at, struct arch_regs interrupted)
{
	begin_at(AT(HANDLER, 4), SP(at));
	p.stack[at + 3] = AT(RESTORER, 0);
	push_ucontext(at + 4, &interrupted);
}

/*
 * The restorer's return address is its first byte: minus one it is in the function before, as in
 * glibc, whose FDE of the restorer therefore begins one byte early.
 */
static void restorer_from_one_byte_before(void)
{
	enum { OFF = LAB_CODE_OFFSET + RESTORER };
	__u32 page = RULES_EXE_FIRST + (OFF >> SONDE_PAGE_SHIFT) * RULES_STRIDE;

	set_page_row(page, OFF / RULES_GRAIN % RULES_ROWS, (__u16)(OFF - 1), rules_used + 1);
	index_page(page, RULES_ROWS);
	add_rule(RULE_SIGNAL(0));
}

static void test_handler(void **state)
{
	restorer_from_one_byte_before();
	handler_at(0, (struct arch_regs){ .ip = AT(F, 8), .sp = SP(100) });
	p.stack[101] = AT(MAIN, 0x10);
	CHECK_WHOLE(AT(HANDLER, 4), AT(RESTORER, -1), AT(F, 8), AT(MAIN, 0xf));
	check_counts(4, 0);
}

/* Minus one would be the function before, which has no rule. */
static void test_interrupted_at_the_first_instruction(void **state)
{
	restorer_from_one_byte_before();
	set_rule(AT(F, 0), RULE_SP(8));
	handler_at(0, (struct arch_regs){ .ip = AT(F, 0), .sp = SP(100) });
	p.stack[100] = AT(MAIN, 0x10);
	CHECK_WHOLE(AT(HANDLER, 4), AT(RESTORER, -1), AT(F, 0), AT(MAIN, 0xf));
}

/* Every register, and each from its own place. */
static void test_registers_are_known_again(void **state)
{
	for (__u8 reg = 0; reg < DWARF_REGISTERS; reg++) {
		struct arch_regs r = { .ip = AT(F, 8) };
		unsigned long *const all[] = { &r.ax, &r.dx, &r.cx,  &r.bx,  &r.si,  &r.di,
					       &r.bp, &r.sp, &r.r8,  &r.r9,  &r.r10, &r.r11,
					       &r.r12, &r.r13, &r.r14, &r.r15 };

		setup(NULL);
		restorer_from_one_byte_before();
		set_rule(AT(F, 0), RULE(.cfa = SONDE_CFA_REG, .reg = reg, .off = 16));
		r.sp = SP(60);
		*all[reg] = SP(100);
		handler_at(0, r);
		p.stack[101] = AT(MAIN, 0x10);
		CHECK_WHOLE(AT(HANDLER, 4), AT(RESTORER, -1), AT(F, 8), AT(MAIN, 0xf));
	}
}

/* Once more lost in the frame behind. */
static void test_registers_are_lost_behind(void **state)
{
	restorer_from_one_byte_before();
	set_rule(AT(G, 0), RULE(.cfa = SONDE_CFA_REG, .reg = 3, .off = 16));
	handler_at(0, (struct arch_regs){ .ip = AT(F, 8), .sp = SP(100), .bx = SP(200) });
	p.stack[101] = AT(G, 0x10);
	CHECK_MARKED(TRUNCATED_REGISTER, AT(HANDLER, 4), AT(RESTORER, -1), AT(F, 8), AT(G, 0xf));
}

/* The handler lost rbp; the interrupted code has it. */
static void test_fp_is_known_again(void **state)
{
	restorer_from_one_byte_before();
	set_rule(AT(HANDLER, 0), RULE(.cfa = SONDE_CFA_SP, .off = 32, .fp = SONDE_FP_UNDEFINED));
	set_rule(AT(F, 0), RULE(.cfa = SONDE_CFA_FP, .off = 16));
	handler_at(0, (struct arch_regs){ .ip = AT(F, 8), .sp = SP(90), .bp = SP(100) });
	p.stack[101] = AT(MAIN, 0x10);
	CHECK_WHOLE(AT(HANDLER, 4), AT(RESTORER, -1), AT(F, 8), AT(MAIN, 0xf));
}

/* sigaltstack: the interrupted stack lies lower than the handler's. */
static void test_other_stack(void **state)
{
	restorer_from_one_byte_before();
	handler_at(1000, (struct arch_regs){ .ip = AT(F, 8), .sp = SP(100) });
	p.stack[101] = AT(G, 0x10);
	p.stack[104] = AT(MAIN, 0x10);
	CHECK_WHOLE(AT(HANDLER, 4), AT(RESTORER, -1), AT(F, 8), AT(G, 0xf), AT(MAIN, 0xf));
}

/* A handler interrupted by a handler, on the alternative stack. */
static void test_nested(void **state)
{
	const struct arch_regs inner = { .ip = AT(HANDLER, 0x40), .sp = SP(200) };
	const struct arch_regs outer = { .ip = AT(F, 8), .sp = SP(900) };

	restorer_from_one_byte_before();
	handler_at(2000, inner);
	p.stack[203] = AT(RESTORER, 0);
	push_ucontext(204, &outer);
	p.stack[901] = AT(MAIN, 0x10);
	CHECK_WHOLE(AT(HANDLER, 4), AT(RESTORER, -1), AT(HANDLER, 0x40), AT(RESTORER, -1), AT(F, 8),
		    AT(MAIN, 0xf));
}

/* Sampled in the restorer itself, and a ucontext that is not at sp. */
static void test_in_the_restorer(void **state)
{
	const struct arch_regs interrupted = { .ip = AT(F, 8), .sp = SP(400) };

	set_rule(AT(RESTORER, 0), RULE_SIGNAL(160));
	begin_at(AT(RESTORER, 7), SP(4));
	push_ucontext(24, &interrupted);
	p.stack[401] = AT(MAIN, 0x10);
	CHECK_WHOLE(AT(RESTORER, 7), AT(F, 8), AT(MAIN, 0xf));
}

/* Frames that lead to themselves for ever end at the limit. */
static void test_circle(void **state)
{
	const struct arch_regs again = { .ip = AT(RESTORER, 0), .sp = SP(4) };

	begin_at(AT(RESTORER, 0), SP(4));
	push_ucontext(4, &again);
	lab_sample(&p);
	assert_int_equal(lab_last_stack()->count, SONDE_MAX_FRAMES);
	check_frame(lab_last_stack(), SONDE_MAX_FRAMES - 1, SONDE_FRAME_MARKER,
		    SONDE_MARKER_TRUNCATED_DEPTH);
	assert_int_equal(counter(SONDE_COUNT_TRUNCATED_DEPTH), 1);
}

/* A jump to nowhere, and what its handler sees. */
static void test_interrupted_in_no_code(void **state)
{
	restorer_from_one_byte_before();
	handler_at(0, (struct arch_regs){ .ip = 0, .sp = SP(100) });
	CHECK_MARKED(TRUNCATED_CODE, AT(HANDLER, 4), AT(RESTORER, -1));
}

/* Handler, interrupted code without rule: by its frame pointer, then by table again. */
static void test_interrupted_code_has_no_rule(void **state)
{
	restorer_from_one_byte_before();
	set_rule(AT(F, 0), RULE(.cfa = SONDE_CFA_NONE));
	handler_at(0, (struct arch_regs){ .ip = AT(F, 8), .sp = SP(90), .bp = SP(100) });
	p.stack[101] = AT(G, 0x10);
	p.stack[104] = AT(MAIN, 0x10);
	CHECK_WHOLE(AT(HANDLER, 4), AT(RESTORER, -1), AT(F, 8), AT(G, 0xf), AT(MAIN, 0xf));
	check_counts(4, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_handler, setup),
		cmocka_unit_test_setup(test_interrupted_at_the_first_instruction, setup),
		cmocka_unit_test_setup(test_registers_are_known_again, setup),
		cmocka_unit_test_setup(test_registers_are_lost_behind, setup),
		cmocka_unit_test_setup(test_fp_is_known_again, setup),
		cmocka_unit_test_setup(test_other_stack, setup),
		cmocka_unit_test_setup(test_nested, setup),
		cmocka_unit_test_setup(test_in_the_restorer, setup),
		cmocka_unit_test_setup(test_circle, setup),
		cmocka_unit_test_setup(test_interrupted_in_no_code, setup),
		cmocka_unit_test_setup(test_interrupted_code_has_no_rule, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
