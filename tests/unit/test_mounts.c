/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/resolve/mounts. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/resolve/mounts.h"

static void parse(const char *text, size_t len, struct mounts *ret_mounts)
{
	struct buf b;

	buf_init(&b, 1 << 20);
	buf_put(&b, text, len);
	assert_int_equal(mounts_parse(&b, ret_mounts), 0);
	buf_fini(&b);
}

static void check(const struct mount *m, uint32_t major, uint32_t minor, const char *root,
		  const char *point)
{
	assert_int_equal(m->major, major);
	assert_int_equal(m->minor, minor);
	assert_string_equal(m->root, root);
	assert_string_equal(m->point, point);
}

static void test_lines(void **state)
{
	static const char text[] =
		"22 28 0:21 / /proc rw,relatime shared:13 - proc proc rw\n"
		"28 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
		"99 28 254:1 /sub/dir /mnt/a\\040b\\011c\\134 rw - ext4 /dev/vdb rw\n"
		"100 28 0:50 / /last rw - tmpfs tmpfs rw"; /* no newline */
	struct mounts m;

	parse(text, sizeof(text) - 1, &m);
	assert_int_equal(m.count, 4);
	check(&m.list[0], 0, 21, "/", "/proc");
	check(&m.list[1], 254, 0, "/", "/");
	check(&m.list[2], 254, 1, "/sub/dir", "/mnt/a b\tc\\");
	check(&m.list[3], 0, 50, "/", "/last");
	mounts_fini(&m);
}

static void test_nonsense_is_skipped(void **state)
{
	static const char text[] =
		"\n\n   \n1\n1 2 3:4\n1 2 3:4 /\n1 2 34 / /x rw\n1 2 :4 / /x rw\n1 2 3: / /x rw\n"
		"1 2 3:4x / /x rw\n1 2 3:4 net:[4026532000] /run/netns/x rw\n1 2 3:4 / relative rw\n"
		"1 2 99999999999999999999:4 / /x rw\n"
		"1 2 3:4 /r /good rw\n";
	struct mounts m;

	parse(text, sizeof(text) - 1, &m);
	assert_int_equal(m.count, 1);
	check(&m.list[0], 3, 4, "/r", "/good");
	mounts_fini(&m);
	parse("", 0, &m);
	assert_int_equal(m.count, 0);
	mounts_fini(&m);
	mounts_fini(&m); /* once more does no harm */
}

static void test_escapes_at_the_edge(void **state)
{
	static const char text[] = "1 2 3:4 /\\ /a\\0 rw\n1 2 3:4 /\\04 /\\777\\400\\377 rw\n";
	struct mounts m;

	parse(text, sizeof(text) - 1, &m);
	assert_int_equal(m.count, 2);
	check(&m.list[0], 3, 4, "/\\", "/a\\0");
	check(&m.list[1], 3, 4, "/\\04", "/\\777\\400\377");
	mounts_fini(&m);
}

static void test_many(void **state)
{
	struct mounts m;
	struct buf b;

	buf_init(&b, 1 << 20);
	for (int i = 0; i < 1000; i++)
		buf_printf(&b, "%d 1 8:%d / /m%d rw - ext4 x rw\n", i, i, i);
	assert_int_equal(mounts_parse(&b, &m), 0);
	buf_fini(&b);
	assert_int_equal(m.count, 1000);
	check(&m.list[999], 8, 999, "/", "/m999");
	mounts_fini(&m);
}

static void test_own(void **state)
{
	struct mounts m = { .count = 4711 };
	bool has_root = false;

	assert_int_equal(mounts_load("/nonexistent/mountinfo", &m), -ENOENT);
	assert_int_equal(m.count, 4711);
	assert_int_equal(mounts_load("/proc/self/mountinfo", &m), 0);
	for (size_t i = 0; i < m.count; i++)
		has_root = has_root || strcmp(m.list[i].point, "/") == 0;
	assert_true(has_root);
	mounts_fini(&m);
}

/* want NULL: not visible through this mount. */
static void check_translate(const char *root, const char *point, const char *path,
			    const char *want)
{
	const struct mount m = { .root = root, .point = point };
	char out[64];

	assert_int_equal(mount_translate(&m, path, out, sizeof(out)), want != NULL);
	if (want)
		assert_string_equal(out, want);
}

static void test_translate(void **state)
{
	check_translate("/", "/", "/usr/bin/sh", "/usr/bin/sh");
	check_translate("/", "/mnt", "/usr/bin/sh", "/mnt/usr/bin/sh");
	check_translate("/usr", "/mnt", "/usr/bin/sh", "/mnt/bin/sh");
	check_translate("/usr", "/", "/usr/bin/sh", "/bin/sh");
	check_translate("/us", "/mnt", "/usr/bin/sh", NULL);
	check_translate("/usr/bin", "/mnt", "/usr", NULL);
	check_translate("/var", "/mnt", "/usr/bin/sh", NULL);
	check_translate("/", "/mnt", "", NULL);
	/* A single file that is mounted. */
	check_translate("/usr/bin/sh", "/mnt/sh", "/usr/bin/sh", "/mnt/sh");
	check_translate("/usr/bin/s", "/mnt/sh", "/usr/bin/sh", NULL);
}

static void test_translate_into_little_room(void **state)
{
	const struct mount m = { .root = "/", .point = "/mnt" };
	char out[9];

	assert_true(mount_translate(&m, "/abc", out, 9));
	assert_false(mount_translate(&m, "/abc", out, 8));
	assert_false(mount_translate(&m, "/abcdefghijkl", out, sizeof(out)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_nonsense_is_skipped),
		cmocka_unit_test(test_escapes_at_the_edge),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_translate),
		cmocka_unit_test(test_translate_into_little_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
