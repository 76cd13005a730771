/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of the kernel's symbols on disk: whose are trusted, under which names, how many stay. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/kernel_copy.h"
#include "elf_lab.h"

static const char id[] = "0123456789abcdef0123456789abcdef01234567";

static int save(const char *dir, const char *build_id, const char *text)
{
	struct buf copy;
	int err;

	buf_init(&copy, 1024);
	buf_put_str(&copy, text);
	err = kernel_copy_save(dir, build_id, &copy);
	buf_fini(&copy);
	return err;
}

static void what_is_saved_is_found(void **state)
{
	char text[16] = "";
	struct stat st;
	int fd;

	assert_int_equal(kernel_copy_open("a/sonde", id), -ENOENT);
	assert_int_equal(save("a/sonde", id, "first"), 0);
	assert_int_equal(save("a/sonde", id, "second"), 0);
	fd = kernel_copy_open("a/sonde", id);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text)), 6);
	assert_string_equal(text, "second");
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	close(fd);
	assert_int_equal(kernel_copy_open("a/sonde", "0123456789abcdef0123456789abcdef"), -ENOENT);
}

/* The name of the file is made of what a profile says. */
static void odd_names_are_refused(void **state)
{
	static const char *const ids[] = { "", "abc", "../../../../etc/passwd", "0123456789abcdeF",
					   "0123456789abcdef/../../x" };
	char long_id[200];

	memset(long_id, 'a', sizeof(long_id) - 1);
	long_id[sizeof(long_id) - 1] = 0;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		assert_int_equal(kernel_copy_open("a/sonde", ids[i]), -EINVAL);
		assert_int_equal(save("a/sonde", ids[i], "text"), -EINVAL);
	}
	assert_int_equal(kernel_copy_open("a/sonde", long_id), -EINVAL);
	assert_int_equal(kernel_copy_open("", id), -EINVAL);
	assert_int_equal(kernel_copy_open(NULL, id), -EINVAL);
	assert_int_equal(save("/proc/no/such", id, "text"), -ENOENT);
}

static void others_are_not_trusted(void **state)
{
	static const char *const damage[] = {
		"chmod g+w %s", "chmod o+w %s", "rm %s && mkfifo %s", "rm %s && mkdir %s",
	};
	char path[128], command[400];

	for (size_t i = 0; i < sizeof(damage) / sizeof(damage[0]); i++) {
		snprintf(path, sizeof(path), "damage%zu/kernel-%s", i, id);
		snprintf(command, sizeof(command), "damage%zu", i);
		assert_int_equal(save(command, id, "text"), 0);
		snprintf(command, sizeof(command), damage[i], path, path);
		lab_run("%s", command);
		assert_int_equal(kernel_copy_open(strtok(path, "/"), id), -EPERM);
	}
	if (geteuid() == 0) {
		assert_int_equal(save("owner", id, "text"), 0);
		lab_run("chown 65534 owner/kernel-%s", id);
		assert_int_equal(kernel_copy_open("owner", id), -EPERM);
	}
}

/* Each kernel leaves one, and so does a write that did not end. */
static void the_oldest_go(void **state)
{
	struct stat st;
	char name[64];

	lab_run("mkdir many && for i in 1 2 3 4 5 6 7 8 9; do "
		": >many/kernel-000000000000000$i.77; touch -d @$i many/kernel-000000000000000$i.77; "
		"done; : >many/other");
	assert_int_equal(save("many", id, "text"), 0);
	for (int i = 1; i <= 9; i++) {
		snprintf(name, sizeof(name), "many/kernel-000000000000000%d.77", i);
		assert_int_equal(stat(name, &st), i <= 2 ? -1 : 0);
	}
	assert_int_equal(stat("many/other", &st), 0);
	close(kernel_copy_open("many", id));
}

static void where_they_are(void **state)
{
	char dir[PATH_MAX], small[8];

	setenv("XDG_CACHE_HOME", "/x", 1);
	kernel_copy_default_dir(dir, sizeof(dir));
	assert_string_equal(dir, "/x/sonde");
	kernel_copy_default_dir(small, sizeof(small));
	assert_string_equal(small, "");
	setenv("XDG_CACHE_HOME", "relative", 1);
	setenv("HOME", "/h", 1);
	kernel_copy_default_dir(dir, sizeof(dir));
	assert_string_equal(dir, "/h/.cache/sonde");
	unsetenv("XDG_CACHE_HOME");
	unsetenv("HOME");
	kernel_copy_default_dir(dir, sizeof(dir));
	assert_string_equal(dir, "");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_saved_is_found), cmocka_unit_test(odd_names_are_refused),
		cmocka_unit_test(others_are_not_trusted), cmocka_unit_test(the_oldest_go),
		cmocka_unit_test(where_they_are),
	};

	return cmocka_run_group_tests_name("kernel_copy", tests, lab_open, lab_close);
}
