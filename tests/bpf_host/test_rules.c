/* SPDX-License-Identifier: Apache-2.0 */
/* Each kind of unwind rule: how the caller is found by it, and where that must end. */
#include "rules_lab.h"

enum { F = 0x1000, G = 0x2000, H = 0x3000, MAIN = 0x8000 }; /* functions, in LAB_CODE */

#define AT(function, into) (LAB_CODE + (function) + (into))

static int setup(void **state)
{
	rules_setup(state);
	set_rule(AT(MAIN, 0), RULE_END);
	return 0;
}

/* ---- CFA ---- */

static void test_sp(void **state)
{
	static const __s32 sizes[] = { 8, 16, 24, 0x218, 0x7ff8 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		__u64 words = (__u64)sizes[i] / 8;

		setup(NULL);
		set_rule(AT(F, 0), RULE_SP(8));
		set_rule(AT(G, 0), RULE_SP(sizes[i]));
		begin_at(AT(F, 0), SP(0)); /* the first instruction: pc - 1 would be another's */
		p.stack[0] = AT(G, 0x10);
		p.stack[words] = AT(MAIN, 0x20);
		CHECK_WHOLE(AT(F, 0), AT(G, 0xf), AT(MAIN, 0x1f));
		check_counts(3, 0);
	}
}

/* A call that does not return is the last of its function: the row behind must not be used. */
static void test_return_address_behind_a_function(void **state)
{
	set_rule(AT(F, 0), RULE_SP(8));
	set_rule(AT(G, 0), RULE_SP(24));
	set_rule(AT(G, RULES_GRAIN), RULE(.cfa = SONDE_CFA_UNSUPPORTED));
	begin_at(AT(F, 4), SP(0));
	p.stack[0] = AT(G, RULES_GRAIN);
	p.stack[3] = AT(MAIN, RULES_GRAIN);
	CHECK_WHOLE(AT(F, 4), AT(G, 0xff), AT(MAIN, 0xff));
}

static void test_fp(void **state)
{
	set_rule(AT(F, 0),
		 RULE(.cfa = SONDE_CFA_FP, .off = 16, .fp = SONDE_FP_AT_CFA, .fp_off = -16));
	set_rule(AT(G, 0), RULE(.cfa = SONDE_CFA_FP, .off = 16));
	begin_at(AT(F, 4), SP(2));
	p.ctx.regs.bp = SP(10);
	p.stack[10] = SP(40);
	p.stack[11] = AT(G, 0x10);
	p.stack[41] = AT(MAIN, 0x10);
	CHECK_WHOLE(AT(F, 4), AT(G, 0xf), AT(MAIN, 0xf));
	check_counts(3, 0);
}

/* CFA read from memory: DRAP, and frames of hand-written code. */
static void test_deref(void **state)
{
	set_rule(AT(F, 0), RULE(.cfa = SONDE_CFA_FP_DEREF, .off = -8, .fp = SONDE_FP_AT_FP));
	set_rule(AT(G, 0), RULE(.cfa = SONDE_CFA_SP_DEREF, .off = 24, .add = 8));
	begin_at(AT(F, 4), SP(2));
	p.ctx.regs.bp = SP(10);
	p.stack[9] = SP(20);
	p.stack[19] = AT(G, 0x10);
	p.stack[10] = NO_FP;
	p.stack[23] = SP(50);
	p.stack[50] = AT(MAIN, 0x10);
	CHECK_WHOLE(AT(F, 4), AT(G, 0xf), AT(MAIN, 0xf));
}

static unsigned long *register_of(struct arch_regs *r, __u8 dwarf)
{
	unsigned long *const all[] = { &r->ax,  &r->dx,  &r->cx,  &r->bx, &r->si,  &r->di,
				       &r->bp,  &r->sp,  &r->r8,  &r->r9, &r->r10, &r->r11,
				       &r->r12, &r->r13, &r->r14, &r->r15 };

	return all[dwarf];
}

static void test_any_register_of_the_first_frame(void **state)
{
	for (__u8 reg = 0; reg < DWARF_REGISTERS; reg++) {
		setup(NULL);
		set_rule(AT(F, 0), RULE(.cfa = SONDE_CFA_REG, .reg = reg, .off = 24));
		begin_at(AT(F, 4), SP(2));
		*register_of(&p.ctx.regs, reg) = SP(10);
		p.stack[12] = AT(MAIN, 0x10);
		CHECK_WHOLE(AT(F, 4), AT(MAIN, 0xf));
	}
}

/* Also when the sample hit the kernel: the registers are those saved at its entry. */
static void test_register_in_kernel_mode(void **state)
{
	static const __u64 want[] = { AT(F, 4), AT(MAIN, 0xf) };

	set_rule(AT(F, 0), RULE(.cfa = SONDE_CFA_REG, .reg = 12, .off = 24));
	begin_at(AT(F, 4), SP(2));
	p.ctx.regs.r12 = SP(10);
	p.stack[12] = AT(MAIN, 0x10);
	lab_sample_kernel(&p);
	check_addrs(want, 2, 0);
}

static void test_register_of_a_caller_is_lost(void **state)
{
	set_rule(AT(F, 0), RULE_SP(8));
	set_rule(AT(G, 0), RULE(.cfa = SONDE_CFA_REG, .reg = 3, .off = 8));
	begin_at(AT(F, 4), SP(0));
	p.ctx.regs.bx = SP(10);
	p.stack[0] = AT(G, 0x10);
	p.stack[10] = AT(MAIN, 0x10);
	CHECK_MARKED(TRUNCATED_REGISTER, AT(F, 4), AT(G, 0xf));
}

/* ... but for rbx, where the rules tell what became of it: saved by F, and left alone by H. */
static void test_saved_rbx_of_a_caller(void **state)
{
	set_rule(AT(H, 0), RULE(.cfa = SONDE_CFA_SP, .off = 8, .bx = SONDE_BX_SAME));
	set_rule(AT(F, 0), RULE(.cfa = SONDE_CFA_SP, .off = 24, .bx = 2));
	set_rule(AT(G, 0), RULE(.cfa = SONDE_CFA_REG, .reg = 3, .off = 8));
	begin_at(AT(H, 4), SP(0));
	p.stack[0] = AT(F, 0x10);
	p.stack[2] = SP(10); /* CFA - 16 */
	p.stack[3] = AT(G, 0x10);
	p.stack[10] = AT(MAIN, 0x10);
	CHECK_WHOLE(AT(H, 4), AT(F, 0xf), AT(G, 0xf), AT(MAIN, 0xf));
	/* Left alone by all before: it is still the one of the first frame. */
	set_rule(AT(F, 0), RULE(.cfa = SONDE_CFA_SP, .off = 24, .bx = SONDE_BX_SAME));
	p.ctx.regs.bx = SP(10);
	CHECK_WHOLE(AT(H, 4), AT(F, 0xf), AT(G, 0xf), AT(MAIN, 0xf));
}

/* ... and when the frame before was found by its pointer. */
static void test_register_behind_a_pointer_frame_is_lost(void **state)
{
	set_rule(AT(G, 0), RULE(.cfa = SONDE_CFA_REG, .reg = 3, .off = 8));
	begin_at(LAB_JIT, SP(0));
	p.ctx.regs.bp = SP(4);
	p.ctx.regs.bx = SP(10);
	p.stack[4] = NO_FP;
	p.stack[5] = AT(G, 0x10);
	p.stack[10] = AT(MAIN, 0x10);
	lab_sample(&p);
	assert_int_equal(lab_last_stack()->count, 3);
	check_frame(lab_last_stack(), 2, SONDE_FRAME_MARKER, SONDE_MARKER_TRUNCATED_REGISTER);
	assert_int_equal(counter(SONDE_COUNT_TRUNCATED_REGISTER), 1);
}

static void test_plt(void **state)
{
	for (__u64 into = 0; into < 32; into++) {
		setup(NULL);
		set_rule(AT(F, 0), RULE(.cfa = SONDE_CFA_PLT, .off = 8, .add = 11));
		begin_at(AT(F, into), SP(4));
		p.stack[4] = (into & 15) >= 11 ? 0x99 /* pushed by the entry */ : AT(MAIN, 0x10);
		p.stack[5] = (into & 15) >= 11 ? AT(MAIN, 0x10) : 0x99;
		CHECK_WHOLE(AT(F, into), AT(MAIN, 0xf));
	}
}

/* ---- where rbp is ---- */

static void test_fp_kept(void **state)
{
	set_rule(AT(F, 0), RULE_SP(16));
	set_rule(AT(G, 0), RULE(.cfa = SONDE_CFA_FP, .off = 16));
	begin_at(AT(F, 4), SP(0));
	p.ctx.regs.bp = SP(20);
	p.stack[1] = AT(G, 0x10);
	p.stack[21] = AT(MAIN, 0x10);
	CHECK_WHOLE(AT(F, 4), AT(G, 0xf), AT(MAIN, 0xf));
}

static void test_fp_saved_at_cfa_and_at_fp(void **state)
{
	static const __s32 offs[] = { -16, -48, 0, 32 };

	for (size_t i = 0; i < 2 * ARRAY_SIZE(offs); i++) {
		bool at_fp = i & 1;
		__s32 off = offs[i / 2];

		setup(NULL);
		set_rule(AT(F, 0), RULE(.cfa = SONDE_CFA_SP, .off = 80, .fp_off = off,
					.fp = at_fp ? SONDE_FP_AT_FP : SONDE_FP_AT_CFA));
		set_rule(AT(G, 0), RULE(.cfa = SONDE_CFA_FP, .off = 16));
		begin_at(AT(F, 4), SP(0));
		p.ctx.regs.bp = SP(100);
		p.stack[9] = AT(G, 0x10);
		p.stack[(at_fp ? 100 : 10) + off / 8] = SP(200);
		p.stack[201] = AT(MAIN, 0x10);
		CHECK_WHOLE(AT(F, 4), AT(G, 0xf), AT(MAIN, 0xf));
	}
}

static void lose_fp(struct sonde_rule then)
{
	set_rule(AT(F, 0), RULE(.cfa = SONDE_CFA_SP, .off = 8, .fp = SONDE_FP_UNDEFINED));
	set_rule(AT(G, 0), then);
	begin_at(AT(F, 4), SP(0));
	p.ctx.regs.bp = SP(20);
	p.stack[0] = AT(G, 0x10);
	p.stack[1] = AT(MAIN, 0x10);
	p.stack[20] = 0;
	p.stack[21] = AT(MAIN, 0x10);
}

/* A lost rbp hurts only who needs it. */
static void test_fp_lost_and_not_needed(void **state)
{
	lose_fp(RULE_SP(8));
	CHECK_WHOLE(AT(F, 4), AT(G, 0xf), AT(MAIN, 0xf));
}

static void test_fp_lost_and_needed(void **state)
{
	const struct sonde_rule rules[] = {
		RULE(.cfa = SONDE_CFA_FP, .off = 16), RULE_SWITCH,
		RULE(.cfa = SONDE_CFA_FP_DEREF, .off = 8),
		RULE(.cfa = SONDE_CFA_NONE), /* then the frame pointer would be tried */
	};

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		setup(NULL);
		lose_fp(rules[i]);
		CHECK_MARKED(TRUNCATED_REGISTER, AT(F, 4), AT(G, 0xf));
	}
}

static void test_fp_lost_and_found(void **state)
{
	lose_fp(RULE(.cfa = SONDE_CFA_SP, .off = 16, .fp = SONDE_FP_AT_CFA, .fp_off = -16));
	set_rule(AT(H, 0), RULE(.cfa = SONDE_CFA_FP, .off = 16));
	p.stack[1] = SP(30);
	p.stack[2] = AT(H, 0x10);
	p.stack[31] = AT(MAIN, 0x10);
	CHECK_WHOLE(AT(F, 4), AT(G, 0xf), AT(H, 0xf), AT(MAIN, 0xf));
}

/* A slot that cannot be read, or found, loses rbp and nothing else. */
static void test_fp_saved_out_of_reach(void **state)
{
	const struct sonde_rule rules[] = {
		RULE(.cfa = SONDE_CFA_SP, .off = 16, .fp = SONDE_FP_AT_CFA, .fp_off = -0x10000),
		RULE(.cfa = SONDE_CFA_SP, .off = 16, .fp = SONDE_FP_AT_FP, .fp_off = 8),
	};

	for (size_t i = 0; i < 2 * ARRAY_SIZE(rules); i++) {
		bool needed = i & 1;

		setup(NULL);
		set_rule(AT(F, 0), RULE_SP(8));
		set_rule(AT(G, 0), rules[i / 2]);
		set_rule(AT(H, 0), needed ? RULE(.cfa = SONDE_CFA_FP, .off = 16) : RULE_SP(8));
		begin_at(AT(F, 4), SP(0));
		p.stack[0] = AT(G, 0x10);
		p.stack[2] = AT(H, 0x10);
		p.stack[3] = AT(MAIN, 0x10);
		if (needed)
			CHECK_MARKED(TRUNCATED_REGISTER, AT(F, 4), AT(G, 0xf), AT(H, 0xf));
		else
			CHECK_WHOLE(AT(F, 4), AT(G, 0xf), AT(H, 0xf), AT(MAIN, 0xf));
	}
}

static void test_fp_saved_at_lost_fp(void **state)
{
	lose_fp(RULE(.cfa = SONDE_CFA_SP, .off = 8, .fp = SONDE_FP_AT_FP));
	CHECK_WHOLE(AT(F, 4), AT(G, 0xf), AT(MAIN, 0xf));
}

/* ---- ends ---- */

static void test_end_in_the_first_frame(void **state)
{
	begin_at(AT(MAIN, 4), SP(0));
	p.stack[0] = AT(F, 0x10);
	CHECK_WHOLE(AT(MAIN, 4));
	check_counts(1, 0);
}

static void test_return_to_0(void **state)
{
	set_rule(AT(F, 0), RULE_SP(8));
	begin_at(AT(F, 4), SP(0));
	CHECK_WHOLE(AT(F, 4));
}

static void test_unsupported(void **state)
{
	static const __u8 kinds[] = { SONDE_CFA_UNSUPPORTED, SONDE_CFA_BARE + 1, 0xff };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		setup(NULL);
		set_rule(AT(F, 0), RULE(.cfa = kinds[i], .off = 16));
		begin_at(AT(F, 4), SP(0));
		p.ctx.regs.bp = SP(0); /* a frame pointer that would do must not be tried */
		p.stack[1] = AT(MAIN, 0x10);
		CHECK_MARKED(TRUNCATED_RULE, AT(F, 4));
	}
}

static void test_stuck_or_backwards(void **state)
{
	static const __s32 offs[] = { 0, -8, -0x7fffffff - 1 };

	for (size_t i = 0; i < ARRAY_SIZE(offs); i++) {
		setup(NULL);
		set_rule(AT(F, 0), RULE_SP(offs[i]));
		begin_at(AT(F, 4), SP(8));
		p.stack[7] = p.stack[6] = AT(MAIN, 0x10);
		CHECK_MARKED(TRUNCATED_STUCK, AT(F, 4));
	}
}

/* A frame pointer below the stack pointer, or one that makes the CFA wrap around. */
static void test_fp_that_leads_back(void **state)
{
	static const __u64 values[] = { SP(4), SP(6), 0, ~0ULL - 7 };

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		setup(NULL);
		set_rule(AT(F, 0), RULE(.cfa = SONDE_CFA_FP, .off = 16));
		begin_at(AT(F, 4), SP(8));
		p.ctx.regs.bp = values[i];
		p.stack[5] = p.stack[7] = AT(MAIN, 0x10);
		CHECK_MARKED(TRUNCATED_STUCK, AT(F, 4));
	}
}

static void test_unreadable(void **state)
{
	const struct sonde_rule rules[] = {
		RULE_SP(LAB_STACK_BYTES + 8),
		RULE_SP(0x7fffffff),
		RULE(.cfa = SONDE_CFA_SP_DEREF, .off = -8),
		RULE(.cfa = SONDE_CFA_FP_DEREF, .off = 8),
		RULE(.cfa = SONDE_CFA_FP, .off = (__s32)(LAB_STACK_BYTES)),
		RULE_SIGNAL(LAB_STACK_BYTES),
		RULE_SIGNAL(LAB_STACK_BYTES - 100), /* the first part of the ucontext is there */
	};

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		setup(NULL);
		set_rule(AT(F, 0), rules[i]);
		begin_at(AT(F, 4), SP(0));
		p.ctx.regs.bp = rules[i].cfa == SONDE_CFA_FP ? SP(1) : LAB_DATA;
		p.stack[1] = AT(MAIN, 0x10);
		CHECK_MARKED(TRUNCATED_READ, AT(F, 4));
	}
}

static void test_return_to_no_code(void **state)
{
	set_rule(AT(F, 0), RULE_SP(8));
	begin_at(AT(F, 4), SP(0));
	p.stack[0] = LAB_DATA + 0x10;
	CHECK_MARKED(TRUNCATED_CODE, AT(F, 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_sp, setup),
		cmocka_unit_test_setup(test_return_address_behind_a_function, setup),
		cmocka_unit_test_setup(test_fp, setup),
		cmocka_unit_test_setup(test_deref, setup),
		cmocka_unit_test_setup(test_any_register_of_the_first_frame, setup),
		cmocka_unit_test_setup(test_register_in_kernel_mode, setup),
		cmocka_unit_test_setup(test_register_of_a_caller_is_lost, setup),
		cmocka_unit_test_setup(test_saved_rbx_of_a_caller, setup),
		cmocka_unit_test_setup(test_register_behind_a_pointer_frame_is_lost, setup),
		cmocka_unit_test_setup(test_plt, setup),
		cmocka_unit_test_setup(test_fp_kept, setup),
		cmocka_unit_test_setup(test_fp_saved_at_cfa_and_at_fp, setup),
		cmocka_unit_test_setup(test_fp_lost_and_not_needed, setup),
		cmocka_unit_test_setup(test_fp_lost_and_needed, setup),
		cmocka_unit_test_setup(test_fp_lost_and_found, setup),
		cmocka_unit_test_setup(test_fp_saved_out_of_reach, setup),
		cmocka_unit_test_setup(test_fp_saved_at_lost_fp, setup),
		cmocka_unit_test_setup(test_end_in_the_first_frame, setup),
		cmocka_unit_test_setup(test_return_to_0, setup),
		cmocka_unit_test_setup(test_unsupported, setup),
		cmocka_unit_test_setup(test_stuck_or_backwards, setup),
		cmocka_unit_test_setup(test_fp_that_leads_back, setup),
		cmocka_unit_test_setup(test_unreadable, setup),
		cmocka_unit_test_setup(test_return_to_no_code, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
