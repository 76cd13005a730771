/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of cli/record_target: lists of pids, cgroups, and commands that wait for the word. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <linux/magic.h>

#include "cli/record.h"

static struct record_target target;
static char reason[512];

static int parse(const char *list)
{
	target.pid_count = 0;
	reason[0] = 0;
	return target_parse_pids(list, &target, reason, sizeof(reason));
}

static void test_pids(void **state)
{
	assert_int_equal(parse("1"), 0);
	assert_int_equal(target.pid_count, 1);
	assert_int_equal(target.pids[0], 1);
	assert_int_equal(parse("12,3,2147483647"), 0);
	assert_int_equal(target.pid_count, 3);
	assert_int_equal(target.pids[0], 12);
	assert_int_equal(target.pids[1], 3);
	assert_int_equal(target.pids[2], 2147483647);
}

static void test_bad_pids(void **state)
{
	static const char *const lists[] = { "", ",", "1,", ",1", "1,,2", "0", "-1", "1 ", " 1", "x",
					     "1x", "0x10", "2147483648", "99999999999999999999",
					     "1;2", "1.5" };

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		if (parse(lists[i]) != -EINVAL)
			fail_msg("'%s' is taken", lists[i]);
		assert_non_null(strstr(reason, "--pid"));
	}
}

static void test_too_many_pids(void **state)
{
	static char list[4 * RECORD_MAX_PIDS];

	for (int i = 0; i < RECORD_MAX_PIDS; i++)
		memcpy(list + 2 * i, "7,", 2);
	list[2 * RECORD_MAX_PIDS - 1] = 0;
	assert_int_equal(parse(list), 0);
	assert_int_equal(target.pid_count, RECORD_MAX_PIDS);
	strcpy(list + 2 * RECORD_MAX_PIDS - 1, ",7");
	assert_int_equal(parse(list), -E2BIG);
	assert_true(reason[0]);
}

/* ---- cgroups ---- */

static void test_no_cgroups(void **state)
{
	static const char *const paths[] = { "/tmp", "/proc/self", "/nonexistent", "no such",
					     "/proc/self/stat" };

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		target.cgroup_id = 4711;
		reason[0] = 0;
		assert_int_equal(target_find_cgroup(paths[i], &target, reason, sizeof(reason)),
				 -ENOENT);
		assert_non_null(strstr(reason, paths[i]));
		assert_int_equal(target.cgroup_id, 4711);
	}
}

static void test_root_cgroup(void **state)
{
	struct statfs fs;
	struct stat st;
	const char *root = "/sys/fs/cgroup";

	if (statfs(root, &fs) || fs.f_type != CGROUP2_SUPER_MAGIC) {
		root = "/sys/fs/cgroup/unified";
		if (statfs(root, &fs) || fs.f_type != CGROUP2_SUPER_MAGIC) {
			print_message("# skip: no cgroup v2 is mounted at a usual place\n");
			skip();
		}
	}
	assert_int_equal(stat(root, &st), 0);
	assert_int_equal(target_find_cgroup(root, &target, reason, sizeof(reason)), 0);
	assert_int_equal(target.cgroup_id, st.st_ino);
	assert_false(target.cgroup_v1);
}

/* ---- commands ---- */

static void shell(const char *script, char **argv)
{
	argv[0] = "sh";
	argv[1] = "-c";
	argv[2] = (char *)script;
	argv[3] = NULL;
}

static int run(const char *script)
{
	struct launch launch;
	char *argv[4];

	shell(script, argv);
	assert_int_equal(launch_prepare(argv, &launch), 0);
	assert_int_equal(launch_go(&launch), 0);
	launch_close(&launch);
	return launch_wait(&launch);
}

static void test_exit_status(void **state)
{
	assert_int_equal(run("exit 0"), 0);
	assert_int_equal(run("exit 7"), 7);
	assert_int_equal(run("kill -TERM $$"), 128 + SIGTERM);
}

static void test_command_that_is_none(void **state)
{
	char *missing[] = { "/nonexistent/command", NULL }, *directory[] = { "/tmp", NULL };
	struct launch launch;

	assert_int_equal(launch_prepare(missing, &launch), 0);
	assert_int_equal(launch_go(&launch), -ENOENT);
	launch_close(&launch);
	assert_int_equal(launch_wait(&launch), 127);
	assert_int_equal(launch_prepare(directory, &launch), 0);
	assert_int_equal(launch_go(&launch), -EACCES);
	launch_close(&launch);
	launch_close(&launch); /* once more does no harm */
	assert_int_equal(launch_wait(&launch), 126);
}

/* Nothing runs before the word, and nothing at all without it. */
static void test_waits_for_the_word(void **state)
{
	char marker[] = "/tmp/sonde-launch-XXXXXX", script[128], *argv[4];
	struct launch launch;
	struct stat st;

	assert_true(mkstemp(marker) >= 0);
	snprintf(script, sizeof(script), "echo x > %s", marker);
	shell(script, argv);
	assert_int_equal(launch_prepare(argv, &launch), 0);
	assert_true(launch.pid > 0);
	launch_close(&launch);
	assert_int_equal(launch_wait(&launch), 127);
	assert_int_equal(stat(marker, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(run(script), 0);
	assert_int_equal(stat(marker, &st), 0);
	assert_int_equal(st.st_size, 2);
	unlink(marker);
}

/* Signals that the recorder blocks or ignores reach the command. */
static void test_signals(void **state)
{
	sigset_t set, old;

	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(run("kill -PIPE $$; exit 3"), 128 + SIGPIPE);
	signal(SIGPIPE, SIG_DFL);

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &old);
	assert_int_equal(run("kill -TERM $$; exit 3"), 128 + SIGTERM);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

/* The name of a pipe, as links in /proc show it. */
static void pipe_name(int fd, char *name, size_t size)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	snprintf(name, size, "pipe:[%lu]", (unsigned long)st.st_ino);
}

static void test_pipes_are_not_inherited(void **state)
{
	char list[] = "/tmp/sonde-launch-XXXXXX", script[128], text[8192] = "", go[64], error[64];
	int fd = mkstemp(list);
	struct launch launch;
	char *argv[4];

	snprintf(script, sizeof(script), "ls -l /proc/$$/fd > %s", list);
	shell(script, argv);
	assert_int_equal(launch_prepare(argv, &launch), 0);
	pipe_name(launch.go_fd, go, sizeof(go));
	pipe_name(launch.error_fd, error, sizeof(error));
	assert_int_equal(launch_go(&launch), 0);
	assert_int_equal(launch_wait(&launch), 0);
	launch_close(&launch);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	assert_non_null(strstr(text, " -> "));
	assert_null(strstr(text, go));
	assert_null(strstr(text, error));
	close(fd);
	unlink(list);
}

/* The waiting child was killed: an error, where SIGPIPE is ignored as the recorder does. */
static void test_child_killed_before_the_word(void **state)
{
	struct launch launch;
	char *argv[4];

	shell("exit 0", argv);
	assert_int_equal(launch_prepare(argv, &launch), 0);
	kill(launch.pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)launch.pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(launch_go(&launch), -EPIPE);
	signal(SIGPIPE, SIG_DFL);
	launch_close(&launch);
	assert_int_equal(launch_wait(&launch), 128 + SIGKILL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pids),
		cmocka_unit_test(test_bad_pids),
		cmocka_unit_test(test_too_many_pids),
		cmocka_unit_test(test_no_cgroups),
		cmocka_unit_test(test_root_cgroup),
		cmocka_unit_test(test_exit_status),
		cmocka_unit_test(test_command_that_is_none),
		cmocka_unit_test(test_waits_for_the_word),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_pipes_are_not_inherited),
		cmocka_unit_test(test_child_killed_before_the_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
