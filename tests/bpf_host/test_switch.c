/* SPDX-License-Identifier: Apache-2.0 */
/* The rule that leads to another stack, as Go's runtime has them. */
#include "rules_lab.h"

enum { F = 0x1000, G = 0x2000, H = 0x3000 }; /* functions, in LAB_CODE; H has no rule */

#define AT(function, into) (LAB_CODE + (function) + (into))

/* To another stack, below or above this one, where frame pointers may go on and end. */
static void test_switch_of_stacks(void **state)
{
	static const struct {
		__u32 from, to;
	} ways[] = { { 200, 10 }, { 10, 200 } };

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		__u32 from = ways[i].from, to = ways[i].to;

		rules_setup(NULL);
		set_rule(AT(F, 0), RULE_SP(8));
		set_rule(AT(G, 0), RULE_SWITCH);
		begin_at(AT(F, 4), SP(from));
		p.ctx.regs.bp = SP(to);
		p.stack[from] = AT(G, 0x10);
		p.stack[to] = SP(to + 8);
		p.stack[to + 1] = AT(H, 0x10);
		p.stack[to + 8] = 0;
		p.stack[to + 9] = AT(H, 0x20);
		CHECK_WHOLE(AT(F, 4), AT(G, 0xf), AT(H, 0xf), AT(H, 0x1f));
		check_counts(2, 2);
	}
}

/* The first frame of the other stack may be the last: no frame pointer leads on from there. */
static void test_switch_to_the_last_frame(void **state)
{
	set_rule(AT(G, 0), RULE_SWITCH);
	begin_at(AT(G, 0x10), SP(200));
	p.ctx.regs.bp = SP(10);
	p.stack[10] = 0;
	p.stack[11] = AT(H, 0x10);
	CHECK_WHOLE(AT(G, 0x10), AT(H, 0xf));
}

/* Two stacks that lead to each other: ended by the number of frames. */
static void test_switch_in_a_circle(void **state)
{
	const struct sonde_user_stack *stack;

	set_rule(AT(G, 0), RULE_SWITCH);
	begin_at(AT(G, 0x10), SP(0));
	p.ctx.regs.bp = SP(10);
	p.stack[10] = SP(200);
	p.stack[200] = SP(10);
	p.stack[11] = p.stack[201] = AT(G, 0x10);
	lab_sample(&p);
	stack = lab_last_stack();
	assert_int_equal(stack->count, SONDE_MAX_FRAMES);
	check_frame(stack, SONDE_MAX_FRAMES - 1, SONDE_FRAME_MARKER, SONDE_MARKER_TRUNCATED_DEPTH);
	lab_check_books();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_switch_of_stacks, rules_setup),
		cmocka_unit_test_setup(test_switch_to_the_last_frame, rules_setup),
		cmocka_unit_test_setup(test_switch_in_a_circle, rules_setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
