/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/notify: a socket of our own in the place of systemd's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/notify.h"

/* `name` as in NOTIFY_SOCKET. */
static int listener(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	memcpy(address.sun_path, name, strlen(name));
	if (name[0] == '@')
		address.sun_path[0] = 0;
	assert_int_equal(bind(fd, (struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
			 0);
	setenv("NOTIFY_SOCKET", name, 1);
	return fd;
}

static void check_received(int fd, const char *want)
{
	char text[128];
	ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

	assert_int_equal(n, strlen(want));
	text[n] = 0;
	assert_string_equal(text, want);
}

static void test_path(void **state)
{
	char dir[] = "/tmp/sonde-notify-XXXXXX", path[64];
	int fd;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/notify", dir);
	fd = listener(path);
	assert_int_equal(notify_send("READY=1"), 0);
	assert_int_equal(notify_send("STATUS=two words\n"), 0);
	check_received(fd, "READY=1");
	check_received(fd, "STATUS=two words\n");
	close(fd);
	assert_int_equal(notify_send("WATCHDOG=1"), -ECONNREFUSED);
	unlink(path);
	assert_int_equal(notify_send("WATCHDOG=1"), -ENOENT);
	rmdir(dir);
}

static void test_abstract(void **state)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "@sonde-test-%d", (int)getpid());
	fd = listener(name);
	assert_int_equal(notify_send("STOPPING=1"), 0);
	check_received(fd, "STOPPING=1");
	close(fd);
}

static void test_reader_that_does_not_read(void **state)
{
	char name[64];
	int fd, err = 0;

	snprintf(name, sizeof(name), "@sonde-full-%d", (int)getpid());
	fd = listener(name);
	for (int i = 0; i < 100000 && !err; i++)
		err = notify_send("WATCHDOG=1");
	assert_int_equal(err, -EAGAIN);
	close(fd);
}

static void test_no_systemd(void **state)
{
	unsetenv("NOTIFY_SOCKET");
	assert_int_equal(notify_send("READY=1"), 0);
	setenv("NOTIFY_SOCKET", "", 1);
	assert_int_equal(notify_send("READY=1"), 0);
}

static void test_bad_names(void **state)
{
	char name[200];

	setenv("NOTIFY_SOCKET", "relative", 1);
	assert_int_equal(notify_send("READY=1"), -EINVAL);
	setenv("NOTIFY_SOCKET", "@", 1);
	assert_int_equal(notify_send("READY=1"), -EINVAL);
	memset(name, '/', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	setenv("NOTIFY_SOCKET", name, 1);
	assert_int_equal(notify_send("READY=1"), -EINVAL);
	unsetenv("NOTIFY_SOCKET");
}

static void test_watchdog(void **state)
{
	char pid[32];

	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	assert_int_equal(notify_watchdog_interval(), 0);
	setenv("WATCHDOG_USEC", "60000000", 1);
	assert_int_equal(notify_watchdog_interval(), 30000000000);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("WATCHDOG_PID", pid, 1);
	assert_int_equal(notify_watchdog_interval(), 30000000000);
	setenv("WATCHDOG_PID", "1", 1);
	assert_int_equal(notify_watchdog_interval(), 0);
	unsetenv("WATCHDOG_PID");
	setenv("WATCHDOG_USEC", "0", 1);
	assert_int_equal(notify_watchdog_interval(), 0);
	setenv("WATCHDOG_USEC", "18446744073709551615", 1);
	assert_int_equal(notify_watchdog_interval(), 0);
	setenv("WATCHDOG_USEC", "soon", 1);
	assert_int_equal(notify_watchdog_interval(), 0);
	unsetenv("WATCHDOG_USEC");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_abstract),
		cmocka_unit_test(test_reader_that_does_not_read),
		cmocka_unit_test(test_no_systemd),
		cmocka_unit_test(test_bad_names),
		cmocka_unit_test(test_watchdog),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
