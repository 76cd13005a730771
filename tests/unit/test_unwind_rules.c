/* SPDX-License-Identifier: Apache-2.0 */
/* Each kind of unwind rule, from assembler code that asks for it by .cfi directives. */
#include "symbolizer/unwind.h"
#include "unwind_lab.h"

#define EXPR(length, ...)  ".cfi_escape 0x0f," #length "," __VA_ARGS__ "\n"
#define PLT_EXPR(off, lit) EXPR(11, "0x77," off ",0x80,0,0x3f,0x1a," lit ",0x2a,0x33,0x24,0x22")
#define UCONTEXT(rsp, rbp, rip)                                                                    \
	EXPR(4, "0x77," rsp ",0x06")                                                               \
	".cfi_escape 0x10,6,3,0x77," rbp "\n.cfi_escape 0x10,16,3,0x77," rip "\n"

/* Directives, and the rule at the instruction behind them. */
static const struct {
	const char *directives;
	const char *rule;
} cases[] = {
	{ "", "sp+8 same" },
	{ ".cfi_def_cfa_offset 990256\n", "sp+990256 same" },
	{ ".cfi_def_cfa_offset 16\n.cfi_offset rbp,-16\n", "sp+16 cfa-16" },
	{ ".cfi_def_cfa_offset 16\n.cfi_offset rbp,-16\n.cfi_def_cfa_register rbp\n",
	  "fp+16 cfa-16" },
	{ ".cfi_offset rbp,-16\n.cfi_restore rbp\n", "sp+8 same" },
	{ ".cfi_offset rbx,-16\n.cfi_offset xmm1,-32\n", "sp+8 same" },
	{ ".cfi_undefined rbp\n", "sp+8 lost" },
	{ ".cfi_offset rbp,-16\n.cfi_same_value rbp\n", "sp+8 same" },
	{ ".cfi_register rbp,rax\n", "sp+8 lost" },
	{ ".cfi_def_cfa r10,0\n", "r10+0 same" },
	{ ".cfi_def_cfa rip,8\n", "unsupported" },
	{ ".cfi_def_cfa xmm3,8\n", "unsupported" },
	{ ".cfi_undefined rip\n", "end" },
	{ ".cfi_offset rip,-16\n", "unsupported" },
	{ ".cfi_register rip,rax\n", "unsupported" },
	{ ".cfi_same_value rip\n", "unsupported" },
	{ ".cfi_offset rsp,-24\n", "unsupported" },
	{ ".cfi_val_offset rsp,0\n", "sp+8 same" },
	{ ".cfi_val_offset rsp,8\n", "unsupported" },
	{ ".cfi_val_offset rbp,-16\n", "sp+8 lost" },
	/* States. */
	{ ".cfi_remember_state\n.cfi_def_cfa rbp,16\n.cfi_offset rbp,-16\n.cfi_restore_state\n",
	  "sp+8 same" },
	{ ".cfi_def_cfa_offset 16\n.cfi_remember_state\n.cfi_remember_state\n.cfi_def_cfa_offset "
	  "48\n"
	  ".cfi_restore_state\n.cfi_undefined rbp\n.cfi_restore_state\n",
	  "sp+16 same" },
	{ ".cfi_escape 0x0b\n", "unsupported" },
	{ ".rept 16\n.cfi_remember_state\n.endr\n", "sp+8 same" },
	{ ".rept 17\n.cfi_remember_state\n.endr\n", "unsupported" },
	/* Rare instructions. */
	{ ".cfi_escape 0x2e,32\n", "sp+8 same" },
	{ ".cfi_escape 0x2f,6,2\n", "sp+8 cfa+16" },
	{ ".cfi_escape 0x05,6,2\n", "sp+8 cfa-16" },
	{ ".cfi_escape 0x11,6,0x7e\n", "sp+8 cfa+16" },
	{ ".cfi_escape 0x05,6,2,0x06,6\n", "sp+8 same" },
	{ ".cfi_escape 0x12,7,0x7e\n", "sp+16 same" },
	{ ".cfi_escape 0x13,0x7c\n", "sp+32 same" },
	{ ".cfi_escape 0x15,7,0\n", "sp+8 same" },
	{ ".cfi_escape 0x0c,0x87,0x80,0x00,0x10\n", "sp+16 same" }, /* padded number */
	{ ".cfi_escape 0x3e\n", "unsupported" },
	{ ".cfi_escape 0x2d\n", "unsupported" },
	{ ".cfi_escape 0x0e,0xff,0xff,0xff,0xff,0x7f\n", "unsupported" }, /* over 32 bits */
	{ ".cfi_escape 0x0e,0xff,0xff,0xff,0xff,0x7f\n.cfi_def_cfa_offset 24\n", "sp+24 same" },
	{ ".cfi_escape 0x0c,7,0xff,0xff,0xff,0xff,0xff,0xff,0xff,0xff,0xff,0xff,0xff\n",
	  "unsupported" },
	/* The CFA by expressions. */
	{ EXPR(3, "0x76,0x78,0x06"), "[fp-8]+0 same" },
	{ EXPR(3, "0x76,0x78,0x06") ".cfi_escape 0x10,6,2,0x76,0\n", "[fp-8]+0 fp+0" },
	{ EXPR(5, "0x77,16,0x06,0x23,8"), "[sp+16]+8 same" },
	{ EXPR(5, "0x77,0x78,0x06,0x38,0x22"), "[sp-8]+8 same" },
	{ EXPR(5, "0x38,0x77,0x78,0x06,0x22"), "[sp-8]+8 same" },
	{ EXPR(6, "0x77,8,0x06,0x09,0xf8,0x22"), "[sp+8]-8 same" },
	{ EXPR(5, "0x77,8,0x06,0x38,0x1c"), "[sp+8]-8 same" },
	{ EXPR(5, "0x77,8,0x23,8,0x06"), "[sp+16]+0 same" },
	{ EXPR(4, "0x92,7,16,0x06"), "[sp+16]+0 same" },
	{ EXPR(2, "0x77,24"), "sp+24 same" },
	{ EXPR(3, "0x96,0x76,24"), "fp+24 same" },
	{ EXPR(2, "0x7a,8"), "r10+8 same" },
	{ EXPR(3, "0x7a,8,0x06"), "unsupported" },
	{ EXPR(4, "0x77,8,0x06,0x06"), "unsupported" },
	{ EXPR(1, "0x38"), "unsupported" },
	{ EXPR(1, "0x22"), "unsupported" },
	{ EXPR(2, "0x77,0x88"), "unsupported" }, /* cut */
	{ ".cfi_escape 0x0f,0\n", "unsupported" },
	{ EXPR(9, "0x77,8,0x79,0,0x38,0x1e,0x22,0x06,0x96"), "unsupported" }, /* OpenSSL */
	{ EXPR(2, "0x77,24") ".cfi_def_cfa_offset 16\n", "unsupported" },
	{ EXPR(2, "0x77,24") ".cfi_def_cfa_register rbp\n", "unsupported" },
	{ EXPR(2, "0x70,24") ".cfi_def_cfa rsp,16\n", "sp+16 same" },
	/* Procedure linkage tables. */
	{ PLT_EXPR("8", "0x3b"), "plt+8 at 11 same" },
	{ PLT_EXPR("8", "0x39"), "plt+8 at 9 same" },
	{ PLT_EXPR("0x10", "0x35"), "plt+16 at 5 same" },
	{ PLT_EXPR("8", "0x40"), "unsupported" },
	{ EXPR(12, "0x77,8,0x80,0,0x3f,0x1a,0x3b,0x2a,0x33,0x24,0x22,0x96"), "unsupported" },
	/* Registers by expressions. */
	{ ".cfi_def_cfa_offset 32\n.cfi_escape 0x10,6,2,0x77,8\n", "sp+32 cfa-24" },
	{ ".cfi_escape 0x10,6,2,0x23,16\n", "sp+8 cfa+16" },
	{ ".cfi_escape 0x10,6,3,0x76,0,0x06\n", "sp+8 lost" },
	{ ".cfi_escape 0x16,6,2,0x76,0\n", "sp+8 lost" },
	{ ".cfi_escape 0x16,7,0\n", "sp+8 same" },
	{ ".cfi_escape 0x10,16,2,0x77,0\n", "unsupported" },
	{ ".cfi_escape 0x10,3,2,0x77,0\n", "sp+8 same" },
	/* Signal frames. */
	{ UCONTEXT("0xa0,1", "0xf8,0", "0xa8,1"), "signal 0" },
	{ UCONTEXT("0xb0,1", "0x88,1", "0xb8,1"), "signal 16" },
	{ UCONTEXT("0xa0,1", "0xf8,0", "0xa8,1") ".cfi_escape 0x10,7,3,0x77,0xa0,1\n", "signal 0" },
	{ UCONTEXT("0xa0,1", "0xf8,0", "0xa8,1") ".cfi_escape 0x10,7,3,0x77,0x98,1\n",
	  "unsupported" },
	{ UCONTEXT("0xa0,1", "0xf8,0", "0xb0,1"), "unsupported" },
	{ UCONTEXT("0xa0,1", "0x80,1", "0xa8,1"), "unsupported" },
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static int build_cases(void **state)
{
	FILE *s;

	if (lab_open(state) != 0)
		return -1;
	s = fopen("cases.s", "w");
	assert_non_null(s);
	fprintf(s, ".text\nsignal_kind: .cfi_startproc\n.cfi_signal_frame\nnop\n.cfi_endproc\n");
	for (int i = 0; i < CASES; i++)
		fprintf(s, "case_%d: .cfi_startproc\nnop\n%s at_%d: nop\n.cfi_endproc\n", i,
			cases[i].directives, i);
	fprintf(s, "steps: .cfi_startproc\nnop\n.cfi_def_cfa_offset 16\nby_0: .skip 100\n"
		   ".cfi_def_cfa_offset 24\nby_1: .skip 1000\n.cfi_def_cfa_offset 32\n"
		   "by_2: .skip 100000\n.cfi_def_cfa_offset 40\nby_4: nop\nback:\n.cfi_endproc\n");
	fclose(s);
	lab_run("gcc -shared -nostdlib -o cases.so cases.s");
	return 0;
}

static void test_kinds(void **state)
{
	struct unwind_table *t = table_of("cases.so");

	assert_int_equal(t->fdes, CASES + 2);
	for (int i = 0; i < CASES; i++) {
		char symbol[32];
		uint64_t off;

		snprintf(symbol, sizeof(symbol), "at_%d", i);
		off = offset_of("cases.so", symbol);
		if (strcmp(rule_at(t, off), cases[i].rule) != 0)
			fail_msg("%s: %s, not %s", cases[i].directives, rule_at(t, off),
				 cases[i].rule);
		/* One byte before nothing has changed yet: locations are exact. */
		assert_string_equal(rule_at(t, off - 1), "sp+8 same");
	}
	assert_true(t->bad_fdes > 0 && t->bad_fdes < 12);
	unwind_table_free(t);
}

static void test_advance(void **state)
{
	static const char *const labels[] = { "by_0", "by_1", "by_2", "by_4" };
	struct unwind_table *t = table_of("cases.so");
	char text[32];

	for (int i = 0; i < 4; i++) {
		uint64_t off = offset_of("cases.so", labels[i]);

		snprintf(text, sizeof(text), "sp+%d same", 16 + 8 * i);
		assert_string_equal(rule_at(t, off), text);
		snprintf(text, sizeof(text), "sp+%d same", 8 + 8 * i);
		assert_string_equal(rule_at(t, off - 1), text);
	}
	assert_string_equal(rule_at(t, offset_of("cases.so", "by_4") + 1), "none");
	unwind_table_free(t);
}

/* Addresses below a signal frame are no return addresses: a plain rule would be wrong by one. */
static void test_signal_flag(void **state)
{
	struct unwind_table *t = table_of("cases.so");

	assert_string_equal(rule_at(t, offset_of("cases.so", "signal_kind")), "unsupported");
	unwind_table_free(t);
}

/* The C library's own, as it is on this machine. */
static void test_real_restorer(void **state)
{
	struct unwind_table *t;
	size_t signals = 0, ends = 0;

	lab_text("static.c", "int main(void) { return 0; }\n");
	lab_run("gcc -static -o static static.c");
	t = table_of("static");
	for (size_t i = 0; i < t->row_count; i++) {
		const struct unwind_rule *r = &t->rules[t->rows[i].rule];

		signals += r->cfa == UNWIND_SIGNAL && r->cfa_off == 0;
		ends += r->cfa == UNWIND_END;
	}
	assert_int_equal(signals, 1);
	assert_true(ends >= 1);
	assert_string_equal(rule_at(t, offset_of("static", "_start")), "end");
	assert_int_equal(t->bad_fdes, 0);
	unwind_table_free(t);
}

static void test_real_plt(void **state)
{
	struct unwind_table *t;
	bool found = false;

	lab_text("plt.c", "#include <stdlib.h>\nint main(void) { return abs(rand()); }\n");
	lab_run("gcc -Wl,-z,lazy -o plt plt.c");
	t = table_of("plt");
	for (size_t i = 0; i < t->row_count; i++)
		found |= strcmp(rule_text(&t->rules[t->rows[i].rule]), "plt+8 at 11 same") == 0;
	assert_true(found);
	unwind_table_free(t);
}

/* What became of rbx is told in the whole file as soon as one CFA in it is found by rbx. */
static void test_rbx(void **state)
{
	static const struct {
		const char *symbol;
		uint8_t without, with;
	} places[] = {
		{ "saved", UNWIND_BX_LOST, 2 },
		{ "same", UNWIND_BX_LOST, UNWIND_BX_SAME },
		{ "far", UNWIND_BX_LOST, UNWIND_BX_LOST },
	};
	static const char source[] =
		".macro place name, directives:vararg\n.cfi_startproc\nnop\n\\directives\n\\name: nop\n"
		".cfi_endproc\n.endm\n"
		"place saved, .cfi_offset rbx,-16\nplace same, .cfi_def_cfa_offset 32\n"
		"place far, .cfi_offset rbx,-8000\n";
	char with[sizeof(source) + 64];

	snprintf(with, sizeof(with), "%splace base, .cfi_def_cfa rbx,24\n", source);
	lab_text("without.s", source);
	lab_text("with.s", with);
	lab_run("gcc -shared -nostdlib -o without.so without.s");
	lab_run("gcc -shared -nostdlib -o with.so with.s");
	for (int k = 0; k < 2; k++) {
		const char *file = k ? "with.so" : "without.so";
		struct unwind_table *t = table_of(file);

		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
			assert_int_equal(unwind_table_find(t, offset_of(file, places[i].symbol))->bx,
					 k ? places[i].with : places[i].without);
		unwind_table_free(t);
	}
}

static void test_vdso(void **state)
{
	struct unwind_table *t = NULL;

	assert_int_equal(unwind_table_build_vdso(&t), 0);
	check_table(t);
	assert_true(t->row_count > 2);
	assert_int_equal(t->bad_fdes, 0);
	unwind_table_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),       cmocka_unit_test(test_advance),
		cmocka_unit_test(test_signal_flag), cmocka_unit_test(test_real_restorer),
		cmocka_unit_test(test_real_plt),    cmocka_unit_test(test_rbx),
		cmocka_unit_test(test_vdso),
	};

	return cmocka_run_group_tests(tests, build_cases, lab_close);
}
