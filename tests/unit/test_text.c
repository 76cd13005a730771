/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of base/text. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static void check(const char *bytes, size_t len, const char *want)
{
	struct buf out;

	buf_init(&out, 4 * len + 1);
	text_escape(&out, bytes, len);
	assert_int_equal(buf_error(&out), 0);
	assert_string_equal(buf_cstr(&out), want);
	assert_int_equal(text_is_clean(bytes, len), !strcmp(bytes, want) && strlen(want) == len);
	buf_fini(&out);
}

static void test_clean_text_passes(void **state)
{
	static const char *const texts[] = {
		"",
		"plain name",
		"\"quotes' $and{more}",
		"C:\\path",
		"caf\xc3\xa9",
		"\xe2\x82\xac",
		"\xf0\x9f\x98\x80",
		"\xed\x9f\xbf",
		"\xee\x80\x80",
		"\xf4\x8f\xbf\xbf",
		"\xc2\xa0",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		check(texts[i], strlen(texts[i]), texts[i]);
}

static void test_control_bytes(void **state)
{
	check("a\nb\tc", 5, "a\\x0ab\\x09c");
	check("\x1b[31m", 5, "\\x1b[31m");
	check("\x7f", 1, "\\x7f");
	check("a\0b", 3, "a\\x00b");
	check("\xc2\x85", 2, "\\xc2\\x85"); /* U+0085, a control character */
	check("\xc2\x9b", 2, "\\xc2\\x9b"); /* U+009B starts a terminal sequence */
}

static void test_bytes_that_are_not_utf8(void **state)
{
	check("\xff", 1, "\\xff");
	check("\x80", 1, "\\x80");
	check("\xc0\x80", 2, "\\xc0\\x80");                   /* overlong NUL */
	check("\xe0\x80\x80", 3, "\\xe0\\x80\\x80");          /* overlong */
	check("\xf0\x8f\xbf\xbf", 4, "\\xf0\\x8f\\xbf\\xbf"); /* overlong */
	check("\xed\xa0\x80", 3, "\\xed\\xa0\\x80");          /* a surrogate */
	check("\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80"); /* past U+10FFFF */
	check("\xf5\x80\x80\x80", 4, "\\xf5\\x80\\x80\\x80");
	check("\xe2\x82", 2, "\\xe2\\x82"); /* cut short */
	check("\xe2(\xa1", 3, "\\xe2(\\xa1");
	check("\xe2\x82\xac\xe2", 4, "\xe2\x82\xac\\xe2");
}

/* What looks like an escape is escaped itself, so that two names never become one. */
static void test_backslash(void **state)
{
	check("\\x0a", 4, "\\x5cx0a");
	check("\\", 1, "\\");
	check("\\n", 2, "\\n");
	check("\\\n", 2, "\\\\x0a");
	check("\\\\x0a", 5, "\\\\x5cx0a");
}

/* Reads the output of text_escape back. */
static size_t unescape(const struct buf *b, uint8_t *to)
{
	size_t n = 0;

	for (size_t i = 0; i < b->len; i++) {
		char hex[3] = { 0 };

		if (i + 3 < b->len && b->data[i] == '\\' && b->data[i + 1] == 'x') {
			memcpy(hex, b->data + i + 2, 2);
			to[n++] = (uint8_t)strtoul(hex, NULL, 16);
			i += 3;
		} else {
			to[n++] = b->data[i];
		}
	}
	return n;
}

static void test_random_bytes_come_back(void **state)
{
	static const char dice[] = "\\x0a\n\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xff ";
	uint8_t in[32], back[4 * sizeof(in)];
	struct buf out;

	srandom(99);
	buf_init(&out, 4 * sizeof(in));
	for (int round = 0; round < 50000; round++) {
		size_t len = (size_t)random() % sizeof(in);

		for (size_t i = 0; i < len; i++)
			in[i] = (uint8_t)(random() % 4 ? dice[(size_t)random() % sizeof(dice)]
						       : random());
		buf_reset(&out);
		text_escape(&out, (char *)in, len);
		assert_int_equal(buf_error(&out), 0);
		assert_int_equal(unescape(&out, back), len);
		assert_memory_equal(back, in, len);
		assert_int_equal(text_is_clean((char *)in, len), out.len == len);
	}
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean_text_passes),
		cmocka_unit_test(test_control_bytes),
		cmocka_unit_test(test_bytes_that_are_not_utf8),
		cmocka_unit_test(test_backslash),
		cmocka_unit_test(test_random_bytes_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
