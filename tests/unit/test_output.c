/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of cli/output: names tell the form, and no half file ever has the name. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/output.h"
#include "proto/pprof.h"

/* Opens, writes, closes: as the command does with nothing in between. */
static int write_to(const struct profile *profile, const char *path, uint64_t *ret_bytes)
{
	struct output output = { .fd = -1 };
	int err = output_open(path, &output);

	if (!err)
		err = output_write(&output, profile, ret_bytes);
	output_close(&output);
	return err;
}

enum { UNTOUCHED = 4711, HANG_SECONDS = 20 };

static char dir[] = "/tmp/sonde-output-XXXXXX";
static struct profile *profile;

static int setup(void **state)
{
	const int64_t values[] = { 1, 10 };
	struct profile_function function = { 0 };
	struct profile_line line = { .function_id = 1 };
	uint32_t location = 1;

	strcpy(dir + sizeof(dir) - 7, "XXXXXX");
	if (!mkdtemp(dir) || chdir(dir) || profile_new(1 << 20, &profile))
		return -1;
	profile_add_type(profile, "samples", "count");
	profile_add_type(profile, "cpu", "nanoseconds");
	function.name = (uint32_t)profile_string(profile, "leaf");
	profile_add_function(profile, &function);
	profile_add_location(profile, 0, 1, &line, 1);
	return profile_add_sample(profile, &location, 1, values, NULL, 0);
}

static int teardown(void **state)
{
	char command[128];

	profile_free(profile);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return chdir("/") || system(command);
}

static size_t read_file(const char *path, char *bytes, size_t size)
{
	int fd = open(path, O_RDONLY);
	ssize_t n;

	assert_true(fd >= 0);
	n = read(fd, bytes, size);
	assert_true(n >= 0);
	close(fd);
	return (size_t)n;
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static void test_names(void **state)
{
	static const char *const good[] = { "a.pb", "a.pb.gz", "a.pb.zst", "a.folded", "-",
					    "dir/x.y.pb", "..pb" };
	static const char *const bad[] = { "", "a", ".pb", ".folded", "a.pb.", "a.gz", "a.PB", "--",
					   "a.pb.xz", "a.folded.gz", "pb" };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(output_knows(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t bytes = UNTOUCHED;

		if (output_knows(bad[i]))
			fail_msg("'%s' is known", bad[i]);
		assert_int_equal(write_to(profile, bad[i], &bytes), -EINVAL);
		assert_int_equal(bytes, UNTOUCHED);
	}
}

static void check_form(const char *path, const char *start, size_t len)
{
	char bytes[4096], temporary[PATH_MAX];
	uint64_t size = 0;
	struct stat st;

	umask(0);
	assert_int_equal(write_to(profile, path, &size), 0);
	assert_int_equal(read_file(path, bytes, sizeof(bytes)), size);
	assert_memory_equal(bytes, start, len);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	snprintf(temporary, sizeof(temporary), "%s.tmp", path);
	assert_false(exists(temporary));
}

static void test_forms(void **state)
{
	check_form("a.pb.gz", "\x1f\x8b", 2);
	check_form("a.pb.zst", "\x28\xb5\x2f\xfd", 4);
	check_form("a.pb", "\x0a", 1);
	check_form("a.folded", "leaf", 4);
	check_form("a.folded", "leaf", 4); /* replaces */
}

/* What lies in the way under the temporary name is neither written to nor waited for. */
static void test_left_over_temporary_file(void **state)
{
	char bytes[16];
	uint64_t size;
	int fd = open("a.pb.tmp", O_WRONLY | O_CREAT, 0666);

	close(fd);
	chmod("a.pb.tmp", 0666);
	check_form("a.pb", "\x0a", 1);
	assert_int_equal(mkfifo("b.pb.tmp", 0666), 0);
	alarm(HANG_SECONDS);
	check_form("b.pb", "\x0a", 1);
	alarm(0);
	/* A link there does not lead to another's file. */
	fd = open("victim", O_WRONLY | O_CREAT, 0644);
	assert_int_equal(write(fd, "keep", 4), 4);
	close(fd);
	assert_int_equal(symlink("victim", "c.pb.tmp"), 0);
	assert_int_equal(write_to(profile, "c.pb", &size), 0);
	assert_int_equal(read_file("victim", bytes, sizeof(bytes)), 4);
	assert_memory_equal(bytes, "keep", 4);
}

static void test_devices_are_written_to(void **state)
{
	char bytes[16];
	uint64_t size = UNTOUCHED;
	struct stat st;
	int fd;

	assert_int_equal(symlink("/dev/full", "full.pb"), 0);
	assert_int_equal(write_to(profile, "full.pb", &size), -ENOSPC);
	assert_int_equal(size, UNTOUCHED);
	assert_true(exists("full.pb"));
	assert_int_equal(stat("full.pb", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(mkfifo("pipe.folded", 0600), 0);
	fd = open("pipe.folded", O_RDONLY | O_NONBLOCK);
	assert_int_equal(write_to(profile, "pipe.folded", &size), 0);
	assert_int_equal(read(fd, bytes, sizeof(bytes)), size);
	assert_memory_equal(bytes, "leaf", 4);
	close(fd);
}

static void test_failures(void **state)
{
	char name[PATH_MAX + 16];
	uint64_t size = UNTOUCHED;

	assert_int_equal(write_to(profile, "no/such/dir/a.pb", &size), -ENOENT);
	memset(name, 'x', sizeof(name));
	strcpy(name + PATH_MAX - 6, ".pb");
	assert_int_equal(write_to(profile, name, &size), -ENAMETOOLONG);
	assert_int_equal(mkdir("dir.pb", 0755), 0);
	assert_true(write_to(profile, "dir.pb", &size) < 0);
	assert_false(exists("dir.pb.tmp"));
	assert_int_equal(size, UNTOUCHED);
}

/* Standard output is a gzip stream, or a failure that touches nothing. */
static void test_standard_output(void **state)
{
	int saved = dup(STDOUT_FILENO), full = open("/dev/full", O_WRONLY);
	int file = open("out", O_RDWR | O_CREAT, 0600);
	uint64_t good = UNTOUCHED, bad = UNTOUCHED;
	int good_err, bad_err;
	char bytes[4096];

	fflush(stdout);
	dup2(file, STDOUT_FILENO);
	good_err = write_to(profile, "-", &good);
	dup2(full, STDOUT_FILENO);
	bad_err = write_to(profile, "-", &bad);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(full);
	close(file);
	assert_int_equal(good_err, 0);
	assert_int_equal(read_file("out", bytes, sizeof(bytes)), good);
	assert_memory_equal(bytes, "\x1f\x8b", 2);
	assert_int_equal(bad_err, -ENOSPC);
	assert_int_equal(bad, UNTOUCHED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forms, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left_over_temporary_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_devices_are_written_to, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failures, setup, teardown),
		cmocka_unit_test_setup_teardown(test_standard_output, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
