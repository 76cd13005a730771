/* SPDX-License-Identifier: Apache-2.0 */
/* Demangling: the usual names, and names made to hurt. Bounds are on output, not on time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "symbolizer/demangle.h"
#include "symbolizer/demangle_guard.h"
#include "symbolizer/symbolizer.h"

enum { OUTPUT_MAX = 16 * 1024 };

static char out[2 * OUTPUT_MAX];

static void usual_names(void **state)
{
	static const struct {
		const char *raw;
		const char *readable;
	} names[] = {
		{ "_Z3foov", "foo()" },
		{ "_ZN3foo3barIiEEvT_", "void foo::bar<int>(int)" },
		{ "_ZNSt6vectorIiSaIiEE9push_backERKi",
		  "std::vector<int, std::allocator<int> >::push_back(int const&)" },
		{ "_ZZ4mainENKUlT_E_clIiEEDaS_",
		  "auto main::{lambda(auto:1)#1}::operator()<int>(int) const" },
		{ "_Z3foov.cold", "foo() [clone .cold]" },
		{ "_Z3foov.isra.0.part.1", "foo() [clone .isra.0] [clone .part.1]" },
		{ "_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE",
		  "core::fmt::Formatter::write_str" },
		{ "_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE.llvm.123456",
		  "core::fmt::Formatter::write_str" },
		{ "_ZN42_$LT$$RF$T$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE",
		  "<&T as core::fmt::Debug>::fmt" },
		{ "_RNvC6_123foo3bar", "123foo::bar" },
		{ "_RINvNtC3std3mem8align_ofjdE", "std::mem::align_of::<usize, f64>" },
		{ "_RNCNvCs1234_7mycrate4main0B3_", "mycrate::main::{closure#0}" },
		{ "_RNvYFG_RL0_hEuNtC1a1b1c", "<for<'a> fn(&'a u8) as a::b>::c" },
		{ "_D3std5stdio7writelnFAyaZv", "std.stdio.writeln(immutable(char)[])" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		out[0] = 0;
		if (!sym_demangle(names[i].raw, out, sizeof(out)))
			fail_msg("refused: %s", names[i].raw);
		assert_string_equal(out, names[i].readable);
	}
}

static void plain_names_stay(void **state)
{
	static const char *const names[] = { "",
					     "_",
					     "main",
					     "_start",
					     "__libc_start_main",
					     "_Z",
					     "_R",
					     "_ZN",
					     "_D",
					     "_Dmain2",
					     "_Rust",
					     "_ZNK1A",
					     "_RNvB_1a",
					     "runtime.mallocgc",
					     "$s4main3fooyyF",
					     "camlStdlib__map_1" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		strcpy(out, "untouched");
		if (sym_demangle(names[i], out, sizeof(out)))
			fail_msg("%s became %s", names[i], out);
		assert_string_equal(out, "untouched");
	}
}

static void output_is_cut_to_size(void **state)
{
	char small[8];

	assert_true(sym_demangle("_ZN3foo3barEv", small, sizeof(small)));
	assert_string_equal(small, "foo::ba");
	assert_true(sym_demangle("_ZN3foo3barEv", small, 1));
	assert_string_equal(small, "");
	assert_false(sym_demangle("_ZN3foo3barEv", small, 0));
}

/* Whatever comes of it, it stays within the bound. */
static void survive(const char *raw)
{
	memset(out, 'x', sizeof(out));
	if (sym_demangle(raw, out, sizeof(out)))
		assert_true(strnlen(out, sizeof(out)) <= OUTPUT_MAX);
}

/* `count` times a text between head and tail. */
static char *repeat(const char *head, const char *text, size_t count, const char *tail)
{
	size_t len = strlen(text);
	char *name = malloc(strlen(head) + count * len + strlen(tail) + 1), *p = name;

	assert_non_null(name);
	p = stpcpy(p, head);
	for (size_t i = 0; i < count; i++)
		p = stpcpy(p, text);
	strcpy(p, tail);
	return name;
}

static void deep_nesting(void **state)
{
	static const struct {
		const char *head, *text, *tail;
	} shapes[] = {
		{ "", "_ZNK1A", "" },      { "_Z1f", "P", "i" },       { "_Z1f", "1AI", "i" },
		{ "_Z1fI", "XL", "" },     { "_ZN", "1A", "Ev" },      { "_Z1fIXad", "cl", "" },
		{ "_R", "NvB_", "1a" },    { "_RNvC1a", "1b", "" },    { "_RMC1a", "R", "u" },
		{ "_RINvC1a1b", "T", "" }, { "_RYNtC1a1b", "F", "E" }, { "_D", "1a", "FZv" },
		{ "_D1a", "A", "i" },      { "_D1aF", "Qa", "Zv" },    { "_D3foo", "__T", "" },
		{ "_Z1fF", "PF", "" },     { "_Z", "L", "" }
	};
	static const size_t counts[] = { 10, 100, 300, 680, 1000, 2000, 16 * 1024 };

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
			char *name =
				repeat(shapes[i].head, shapes[i].text, counts[k], shapes[i].tail);

			survive(name);
			free(name);
		}
	}
}

/* A back reference of Rust: B, a number in base 62 less one, '_'. */
static char *put_reference(char *p, size_t position)
{
	static const char digits[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	*p++ = 'B';
	if (position > 62)
		*p++ = digits[(position - 1) / 62];
	*p++ = digits[(position - 1) % 62];
	*p++ = '_';
	return p;
}

/*
 * a::b::<(X, X), Y, Z...>, each type a tuple of two references to the one before: 2^n times X.
 * Positions count from behind "_R".
 */
static void put_rust_doubling(char *p, const char *type, int levels)
{
	char *start = p;
	size_t last, here;

	p = stpcpy(p, "_RINvC1a1b");
	last = (size_t)(p - start) - 2;
	p += sprintf(p, "T%s%sE", type, type);
	for (; levels > 0; levels--, last = here) {
		here = (size_t)(p - start) - 2;
		*p++ = 'T';
		p = put_reference(p, last);
		p = put_reference(p, last);
		*p++ = 'E';
	}
	strcpy(p, "E");
}

/* Each type refers twice to the one before: 2^n times the text. */
static void doubling_references(void **state)
{
	char name[4096], *p;
	int n;

	/* C++: f(A<i, i>, A<S_, S_>, A<S1_, S1_>, ...) */
	p = stpcpy(name, "_Z1f1AIiiES_IS0_S0_E");
	for (n = 0; n < 30; n++) {
		char number = (char)(n < 9 ? '1' + n : 'A' + n - 9);

		p += sprintf(p, "S_IS%c_S%c_E", number, number);
		if (n == 3)
			assert_true(sym_demangle(name, out, sizeof(out)));
	}
	assert_false(sym_demangle(name, out, sizeof(out)));

	put_rust_doubling(name, "u", 8);
	assert_true(sym_demangle(name, out, sizeof(out)));
	assert_true(strlen(out) > 5000);
	put_rust_doubling(name, "u", 60);
	assert_false(sym_demangle(name, out, sizeof(out)));

	/* D: two back references to the whole type before. */
	p = stpcpy(name, "_D1fFS1aS1b");
	for (n = 0; n < 100; n++)
		p += sprintf(p, "QhQj");
	strcpy(p, "Zv");
	survive(name);
}

/* libiberty counts these lifetimes one by one, without output: centuries if not refused. */
static void giant_binders(void **state)
{
	static const char *const names[] = { "_RMINvC1a1bFGzzzzzzzz_EuEu",
					     "_RNvMINvC1a1bFGzzzzzzzz_EuEu1c",
					     "_RXINvC1a1bDGzzzzzzzzzzzzz_EL_EuNtC1c1d",
					     "_RNvXs_INvC1a1bFGabcdefg_EuEuNtC1c1d1e" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_false(sym_demangle(names[i], out, sizeof(out)));
	assert_true(demangle_rust_is_safe("_RNvC1a8FooGraph_x"));
	assert_true(demangle_rust_is_safe("_RNvYFG_RL0_hEuNtC1a1b1c"));
	assert_true(demangle_rust_is_safe("_RNvYFGzz_RL0_hEuNtC1a1b1c"));
	assert_false(demangle_rust_is_safe("_RNvYFGzzz_RL0_hEuNtC1a1b1c"));
}

static void d_references_are_weighed(void **state)
{
	char *name;

	assert_true(demangle_d_is_safe("_D3std5stdio__T7writelnTAyaZQnFNfQjZv"));
	name = repeat("_D1aFSaSb", "Qe", 40, "Zv");
	assert_true(demangle_d_is_safe("_D1aFSQbQdZv"));
	assert_false(demangle_d_is_safe(name));
	free(name);
	name = repeat("_D", "1a", 600, "");
	assert_false(demangle_d_is_safe(name));
	free(name);
}

static void long_input_is_refused(void **state)
{
	char *name = repeat("_ZN", "1A", 2046, "Ev");

	assert_true(strlen(name) > 4096);
	assert_false(sym_demangle(name, out, sizeof(out)));
	free(name);
	name = repeat("_R", "NvC1a1b", 10000, "");
	assert_false(sym_demangle(name, out, sizeof(out)));
	free(name);
}

/* Punycode identifiers hold memory inside libiberty; too much output must not leak it. */
static void punycode_and_too_much(void **state)
{
	static const char word[] = "NtC1cu30____7hkackfecea1cbdathfdh9hlq6y";
	char name[4096];

	assert_true(sym_demangle("_RINvC1a1bNtC1cu8gdel_5qaE", out, sizeof(out)));
	assert_string_equal(out, "a::b::<c::g\u00f6del>");
	put_rust_doubling(name, word, 4);
	assert_true(sym_demangle(name, out, sizeof(out)));
	for (int levels = 8; levels < 60; levels += 13) {
		put_rust_doubling(name, word, levels);
		assert_false(sym_demangle(name, out, sizeof(out)));
	}
}

static void readable_names(void **state)
{
	struct sym_readable r = { 0 };
	static const char plain[] = "memcpy", at[] = "@odd";
	char *name;

	assert_ptr_equal(sym_readable_name(&r, plain, false), plain);
	assert_ptr_equal(sym_readable_name(&r, at, false), at);
	assert_string_equal(sym_readable_name(&r, "memcpy@plt", false), "memcpy@plt");
	assert_string_equal(sym_readable_name(&r, "_ZN1a1bEv@plt", false), "a::b()@plt");
	assert_string_equal(sym_readable_name(&r, "_ZN1a1bEv@plt", true), "_ZN1a1bEv@plt");
	assert_string_equal(sym_readable_name(&r, "_ZN1a1bEv", true), "_ZN1a1bEv");
	assert_string_equal(sym_readable_name(&r, "_ZN1a1bEv", false), "a::b()");
	name = repeat("_ZN", "1A", 8000, "Ev");
	assert_ptr_equal(sym_readable_name(&r, name, false), name);
	free(name);
	assert_true(r.cap < 64 * 1024);
	sym_readable_fini(&r);
}

static void reasons_have_texts(void **state)
{
	for (int i = 0; i < SYM_REASON_COUNT; i++)
		assert_true(strlen(sym_reason_text(i)) > 2);
	assert_string_equal(sym_reason_text(SYM_OK), "named");
	assert_string_equal(sym_reason_text(SYM_REASON_COUNT), "unknown reason");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(usual_names),
		cmocka_unit_test(plain_names_stay),
		cmocka_unit_test(output_is_cut_to_size),
		cmocka_unit_test(deep_nesting),
		cmocka_unit_test(doubling_references),
		cmocka_unit_test(giant_binders),
		cmocka_unit_test(d_references_are_weighed),
		cmocka_unit_test(long_input_is_refused),
		cmocka_unit_test(punycode_and_too_much),
		cmocka_unit_test(readable_names),
		cmocka_unit_test(reasons_have_texts),
	};

	return cmocka_run_group_tests_name("demangle", tests, NULL, NULL);
}
