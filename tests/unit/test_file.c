/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of base/file. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

enum { BIG = 200000 };

/* A memory file with `len` bytes of a pattern, at offset 0. */
static int pattern_file(size_t len)
{
	static uint8_t bytes[BIG];
	int fd = memfd_create("test_file", MFD_CLOEXEC);

	assert_true(fd >= 0);
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(i * 31);
	assert_int_equal(file_write_all(fd, bytes, len), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void test_read_at(void **state)
{
	int fd = pattern_file(100);
	uint8_t to[100];

	assert_int_equal(file_read_at(fd, to, 50, 50), 0);
	assert_int_equal(to[0], (uint8_t)(50 * 31));
	assert_int_equal(file_read_at(fd, to, 0, 1000), 0);
	assert_int_equal(file_read_at(fd, to, 51, 50), -ENODATA);
	assert_int_equal(file_read_at(fd, to, 1, 100), -ENODATA);
	assert_int_equal(file_read_at(fd, to, 1, -1), -EINVAL);
	close(fd);
	assert_int_equal(file_read_at(-1, to, 1, 0), -EBADF);
}

static void test_read_all_of_any_size(void **state)
{
	static const size_t sizes[] = { 0, 1, 65535, 65536, 65537, BIG };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		int fd = pattern_file(sizes[i]);
		struct buf b;

		buf_init(&b, BIG);
		assert_int_equal(file_read_all(fd, &b), 0);
		assert_int_equal(b.len, sizes[i]);
		for (size_t k = 0; k < b.len; k++)
			assert_int_equal(b.data[k], (uint8_t)(k * 31));
		buf_fini(&b);
		close(fd);
	}
}

static void test_bound_is_exact(void **state)
{
	int fd = pattern_file(1000);
	struct buf b;

	buf_init(&b, 1000);
	assert_int_equal(file_read_all(fd, &b), 0);
	assert_int_equal(b.len, 1000);
	buf_fini(&b);
	lseek(fd, 0, SEEK_SET);
	buf_init(&b, 999);
	assert_int_equal(file_read_all(fd, &b), -ENOSPC);
	buf_fini(&b);
	close(fd);
}

static void test_appends(void **state)
{
	int fd = pattern_file(3);
	struct buf b;

	buf_init(&b, 5);
	buf_put_str(&b, "ab");
	assert_int_equal(file_read_all(fd, &b), 0);
	assert_int_equal(b.len, 5);
	assert_memory_equal(b.data, "ab\x00\x1f\x3e", 5);
	buf_fini(&b);
	close(fd);
}

static void test_paths(void **state)
{
	struct buf b;

	buf_init(&b, 1 << 20);
	/* The size of a file in /proc reads as 0. */
	assert_int_equal(file_read_path("/proc/self/maps", &b), 0);
	assert_true(b.len > 100);
	assert_int_equal(file_read_path("/nonexistent/file", &b), -ENOENT);
	assert_int_equal(file_read_path("/", &b), -EISDIR);
	buf_fini(&b);
}

static void test_write_errors(void **state)
{
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, "x", 1), -ENOSPC);
	assert_int_equal(file_write_all(fd, "", 0), 0);
	close(fd);
	assert_int_equal(file_write_all(-1, "x", 1), -EBADF);
}

/* A pipe takes less than was asked for at a time. */
static void test_pipe_in_pieces(void **state)
{
	int fds[2], status = 0;
	struct buf b;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	if (fork() == 0) {
		static uint8_t bytes[BIG];

		close(fds[0]);
		_exit(file_write_all(fds[1], bytes, BIG) ? 1 : 0);
	}
	close(fds[1]);
	buf_init(&b, BIG);
	assert_int_equal(file_read_all(fds[0], &b), 0);
	assert_int_equal(b.len, BIG);
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
	buf_fini(&b);
	close(fds[0]);
}

/* A FIFO, a directory, a device: left alone, as the kernel would tell of an opening. */
static void test_open_regular(void **state)
{
	static const char *const makers[] = { "mkfifo", "mkdir", "ln -s /dev/null" };
	char dir[] = "/tmp/sonde-file-XXXXXX", path[64], command[128], event[256];
	int fd = file_open_regular("/proc/self/exe"), watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	assert_true(fd >= 0 && watch >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(read(fd, event, 4), 4);
	close(fd);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/x", dir);
	assert_int_equal(file_open_regular(path), -ENOENT);
	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
		snprintf(command, sizeof(command), "%s %s", makers[i], path);
		assert_int_equal(system(command), 0);
		assert_true(i == 2 || inotify_add_watch(watch, path, IN_OPEN) >= 0);
		assert_int_equal(file_open_regular(path), -EPERM);
		assert_int_equal(read(watch, event, sizeof(event)), -1);
		assert_int_equal(errno, EAGAIN);
		snprintf(command, sizeof(command), "rm -r %s", path);
		assert_int_equal(system(command), 0);
		while (read(watch, event, sizeof(event)) > 0)
			; /* of the removal */
	}
	close(watch);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_at),
		cmocka_unit_test(test_read_all_of_any_size),
		cmocka_unit_test(test_bound_is_exact),
		cmocka_unit_test(test_appends),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_write_errors),
		cmocka_unit_test(test_pipe_in_pieces),
		cmocka_unit_test(test_open_regular),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
