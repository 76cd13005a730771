/* SPDX-License-Identifier: Apache-2.0 */
/* Push requests, byte by byte: the layouts differ in the labels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/push.h"

static const struct push_label labels[] = { { "a", "b" }, { "cd", "" } };

static void expect(enum push_dialect dialect, const void *want, size_t len)
{
	struct buf out;

	buf_init(&out, 4096);
	push_put_series(&out, dialect, labels, 2, "RAW", 3);
	push_put_series(&out, dialect, labels, 2, "RAW", 3);
	assert_int_equal(buf_error(&out), 0);
	assert_int_equal(out.len, 2 * len);
	assert_memory_equal(out.data, want, len);
	assert_memory_equal(out.data + len, want, len);
	buf_fini(&out);
}

#define LABELS                                                                                     \
	"\x0a\x06\x0a\x01"                                                                         \
	"a"                                                                                        \
	"\x12\x01"                                                                                 \
	"b"                                                                                        \
	"\x0a\x06\x0a\x02"                                                                         \
	"cd"                                                                                       \
	"\x12\x00"
#define SAMPLE                                                                                     \
	"\x12\x05\x0a\x03"                                                                         \
	"RAW"

static void test_layouts(void **state)
{
	static const char pyroscope[] = "\x0a\x17" LABELS SAMPLE;
	static const char parca[] = "\x12\x19\x0a\x10" LABELS SAMPLE;

	expect(PUSH_PYROSCOPE, pyroscope, sizeof(pyroscope) - 1);
	expect(PUSH_PARCA, parca, sizeof(parca) - 1);
}

static void test_bound(void **state)
{
	for (size_t max = 0; max < 27; max++) {
		struct buf out;

		buf_init(&out, max);
		push_put_series(&out, PUSH_PARCA, labels, 2, "RAW", 3);
		assert_int_equal(buf_error(&out), -ENOSPC);
		buf_fini(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
