/* SPDX-License-Identifier: Apache-2.0 */
/* Header lines out of files: what they become, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/export/credentials.h"
#include "tests/unit/store_lab.h"

static char dir[64], path[128];

/* In place of libc's: what was in the memory that is overwritten. */
static const char *secret;
static size_t wiped;

void explicit_bzero(void *memory, size_t len)
{
	volatile char *p = memory;
	const void *there = memory;

	__asm__("" : "+r"(there)); /* the compiler takes it for memory that is never read */
	if (secret && memmem(there, len, secret, strlen(secret)))
		wiped++;
	while (len--)
		*p++ = 0;
}

static int make_dir(void **state)
{
	lab_make_dir(dir);
	snprintf(path, sizeof(path), "%s/file", dir);
	return 0;
}

static int remove_dir(void **state)
{
	lab_remove_dir(dir);
	return 0;
}

static void put(const char *text, size_t len)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	fclose(f);
}

static void expect(struct credentials c, const char *text, size_t len, const char *first,
		   const char *second)
{
	char **lines, why[256];

	put(text, len);
	assert_int_equal(credentials_read(&c, &lines, why, sizeof(why)), 0);
	if (first)
		assert_string_equal(lines[0], first);
	else
		assert_null(lines[0]);
	if (first && second)
		assert_string_equal(lines[1], second);
	else if (first)
		assert_null(lines[1]);
	credentials_free(lines);
}

static void refuse(struct credentials c, const char *text, size_t len, const char *says)
{
	char **lines = NULL, why[256] = "";

	put(text, len);
	assert_true(credentials_read(&c, &lines, why, sizeof(why)) < 0);
	assert_non_null(strstr(why, says));
	assert_null(strstr(why, "secret"));
	assert_null(lines);
}

static void test_lines(void **state)
{
	struct credentials bearer = { .bearer_file = path }, basic = { .basic_file = path };
	struct credentials more = { .headers_file = path, .tenant = "t" };

	expect((struct credentials){ 0 }, "", 0, NULL, NULL);
	expect(bearer, "secret\n", 7, "Authorization: Bearer secret", NULL);
	expect(bearer, "a b\r\n\n", 6, "Authorization: Bearer a b", NULL);
	/* RFC 7617's own example. */
	expect(basic, "Aladdin:open sesame", 19,
	       "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", NULL);
	expect(basic, "a:b", 3, "Authorization: Basic YTpi", NULL);
	expect(basic, "a:bc", 4, "Authorization: Basic YTpiYw==", NULL);
	expect(more, "# who\n\nX-A: 1\r\n", 15, "X-A: 1", "X-Scope-OrgID: t");
	expect(more, "X-A: 1", 6, "X-A: 1", "X-Scope-OrgID: t");
}

static void test_refused(void **state)
{
	struct credentials bearer = { .bearer_file = path }, more = { .headers_file = path };
	static char large[17 * 1024];

	refuse(bearer, "", 0, "is empty");
	refuse(bearer, " \n", 2, "is empty");
	refuse(bearer, "secret\nX: y", 11, "more than one line");
	refuse(bearer, "secret\0x", 8, "control bytes");
	refuse(more, "secret", 6, "no 'Name: value'");
	refuse(more, ": secret", 8, "no 'Name: value'");
	refuse(more, "X: secret\rY: z", 14, "no 'Name: value'");
	memset(large, 'a', sizeof(large));
	refuse(bearer, large, sizeof(large), path);
	for (size_t i = 0; i + 4 < sizeof(large); i += 4)
		memcpy(large + i, "a:b\n", 4);
	refuse(more, large, 16000, "too many");
	refuse((struct credentials){ .bearer_file = "/nowhere/at/all" }, "", 0, "/nowhere/at/all");
	refuse((struct credentials){ .tenant = "a\r\nb" }, "", 0, "tenant");
}

static size_t copies_wiped(struct credentials c, const char *text, const char *of)
{
	char **lines, why[256];
	int err;

	put(text, strlen(text));
	secret = of;
	wiped = 0;
	err = credentials_read(&c, &lines, why, sizeof(why));
	if (!err)
		credentials_free(lines);
	secret = NULL;
	return wiped;
}

/* What was read, the lines as they were put together, the lines that were handed out. */
static void test_no_copy_stays(void **state)
{
	struct credentials bearer = { .bearer_file = path }, basic = { .basic_file = path };
	struct credentials more = { .headers_file = path };

	assert_int_equal(copies_wiped(bearer, "secret\n", "secret"), 3);
	assert_int_equal(copies_wiped(more, "X: secret\n", "secret"), 3);
	assert_int_equal(copies_wiped(basic, "Aladdin:open sesame", "Aladdin:open sesame"), 1);
	assert_int_equal(copies_wiped(basic, "Aladdin:open sesame", "QWxhZGRpbjpvcGVuIHNlc2FtZQ"),
			 2);
	/* Refused: also what had been put together before the line that is wrong. */
	assert_int_equal(copies_wiped(bearer, "secret\nX: y", "secret"), 1);
	assert_int_equal(copies_wiped(more, "X: secret\nY", "X: secret"), 2);
	credentials_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lines, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_refused, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_no_copy_stays, make_dir, remove_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
