/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that lead to another stack, as Go's runtime has them. */
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

/* ---- from morestack to the goroutine, by the runtime's records, which lie in memory at DATA(0) ---- */

enum { RECORD_G = 64, RECORD_M = 128, RECORD_CURG = 192 }; /* words */

static __u64 *records;

#define DATA(at) (LAB_DATA + (__u64)(at) * 8)
#define RULE_GO \
	RULE(.cfa = SONDE_CFA_GO_STACK, .reg = 40, .off = -8, .add = 48 | 0x100 << 16, .fp_off = 56)

/* newstack called by morestack (G) on the thread's stack; the goroutine is at F, called from H. */
static int setup_go(void **state)
{
	rules_setup(NULL);
	records = user_map(LAB_DATA, LAB_CODE_BYTES);
	((struct task_struct *)host_ptr((__u64)p.task))->thread.fsbase = DATA(1);
	records[0] = DATA(RECORD_G);
	records[RECORD_G + 6] = DATA(RECORD_M);
	records[RECORD_M + 32] = DATA(RECORD_CURG);
	records[RECORD_CURG + 7] = SP(300);             /* sp */
	records[RECORD_CURG + 8] = AT(F, 0x10);         /* pc */
	records[RECORD_CURG + 9] = DATA(RECORD_CURG);   /* g */
	records[RECORD_CURG + 12] = SP(310);            /* bp */
	set_rule(AT(F, 0), RULE_SP(8));
	set_rule(AT(G, 0), RULE_GO);
	begin_at(AT(G, 0x10), SP(200));
	p.stack[300] = AT(H, 0x10);
	p.stack[310] = 0;
	p.stack[311] = AT(H, 0x20);
	return 0;
}

static void test_goroutine(void **state)
{
	CHECK_WHOLE(AT(G, 0x10), AT(F, 0xf), AT(H, 0xf), AT(H, 0x1f));
	check_counts(2, 2);
}

/* In a stripped program F has no rule; its frame pointer is that of its caller all the same. */
static void test_goroutine_stripped(void **state)
{
	set_rule(AT(F, 0), RULE(.cfa = SONDE_CFA_NONE));
	CHECK_WHOLE(AT(G, 0x10), AT(F, 0xf), AT(H, 0xf), AT(H, 0x1f));
}

/* Half moved: rbp leads to the other copy, which lies below. */
static void test_goroutine_half_moved(void **state)
{
	records[RECORD_CURG + 12] = SP(10);
	p.stack[10] = SP(310);
	p.stack[11] = AT(H, 0x30);
	CHECK_WHOLE(AT(G, 0x10), AT(F, 0xf), AT(H, 0xf), AT(H, 0x2f), AT(H, 0x1f));
}

/* What called morestack was put aside: the thread has no goroutine. */
static void test_goroutine_gone(void **state)
{
	records[RECORD_M + 32] = 0;
	CHECK_WHOLE(AT(G, 0x10));
}

/* Records that cannot be: the goroutine runs itself, is another's, was nowhere. */
static void test_goroutine_wrong(void **state)
{
	static const struct {
		__u32 at;
		__u64 value;
	} ways[] = { { RECORD_M + 32, DATA(RECORD_G) }, { RECORD_CURG + 9, DATA(RECORD_G) },
		     { RECORD_CURG + 7, 0 }, { RECORD_CURG + 8, 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		setup_go(NULL);
		records[ways[i].at] = ways[i].value;
		CHECK_MARKED(TRUNCATED_RULE, AT(G, 0x10));
	}
}

static void test_goroutine_unreadable(void **state)
{
	static const __u32 at[] = { 0, RECORD_G + 6, RECORD_M + 32 };

	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		setup_go(NULL);
		records[at[i]] = 0x10;
		CHECK_MARKED(TRUNCATED_READ, AT(G, 0x10));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_switch_of_stacks, rules_setup),
		cmocka_unit_test_setup(test_switch_to_the_last_frame, rules_setup),
		cmocka_unit_test_setup(test_switch_in_a_circle, rules_setup),
		cmocka_unit_test_setup(test_goroutine, setup_go),
		cmocka_unit_test_setup(test_goroutine_stripped, setup_go),
		cmocka_unit_test_setup(test_goroutine_half_moved, setup_go),
		cmocka_unit_test_setup(test_goroutine_gone, setup_go),
		cmocka_unit_test_setup(test_goroutine_wrong, setup_go),
		cmocka_unit_test_setup(test_goroutine_unreadable, setup_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
