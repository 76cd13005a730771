/* SPDX-License-Identifier: Apache-2.0 */
/* Readable names of Java methods: what is made of them, and what is left as it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "symbolizer/jvm_name.h"

static void readable(void **state)
{
	static const char *const pairs[][2] = {
		{ "Ljava/lang/String;.indexOf([BI)I", "java.lang.String.indexOf(byte[], int)" },
		{ "Ljava/lang/String;::hashCode", "java.lang.String.hashCode" },
		{ "Ljava/lang/Object;<init>()V", "java.lang.Object.<init>()" },
		{ "LMain;.f(JDFSCZ)[[Ljava/util/List;",
		  "Main.f(long, double, float, short, char, boolean)" },
		{ "Lsun/A$1$$Lambda$7/0x0800;.x([[La/B;La/C;)V",
		  "sun.A$1$$Lambda$7.0x0800.x(a.B[][], a.C)" },
	};
	char out[256];

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		assert_true(jvm_name(pairs[i][0], out, sizeof(out)));
		assert_string_equal(out, pairs[i][1]);
	}
}

static void left_alone(void **state)
{
	static const char *const raws[] = { "",
					    "L",
					    "L;",
					    "L;x",
					    "LA;",
					    "LA;.",
					    "LA;::(I)V",
					    "LA;.f(",
					    "LA;.f(I",
					    "LA;.f(I)",
					    "LA;.f(I)VV",
					    "LA;.f(Q)V",
					    "LA;.f(V)V",
					    "LA;.f()[V",
					    "LA;.f(LB)V",
					    "LA;.f(int)",
					    "LJit;::hot_30(int)",
					    "LazyCompile:~f /a;b",
					    "LA B;.f()V",
					    "LoadIC",
					    "xLA;.f()V",
					    "LA;.f(I)V " };
	char out[256] = "untouched";

	for (size_t i = 0; i < sizeof(raws) / sizeof(raws[0]); i++) {
		assert_false(jvm_name(raws[i], out, sizeof(out)));
		assert_string_equal(out, "untouched");
	}
}

static void bounded(void **state)
{
	char raw[8192] = "LA;.f(", out[8192] = "untouched";

	memset(raw + 6, 'I', 3000);
	strcpy(raw + 3006, ")V");
	assert_false(jvm_name(raw, out, sizeof(out)));
	memset(raw + 6, '[', 300);
	strcpy(raw + 306, "I)V");
	assert_false(jvm_name(raw, out, sizeof(out)));
	assert_false(jvm_name("LA;.f()V", out, 5));
	assert_string_equal(out, "untouched");
	assert_true(jvm_name("LA;.f()V", out, 6));
	assert_string_equal(out, "A.f()");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(readable),
		cmocka_unit_test(left_alone),
		cmocka_unit_test(bounded),
	};

	return cmocka_run_group_tests_name("jvm_name", tests, NULL, NULL);
}
