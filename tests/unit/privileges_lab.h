/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of privileges. What is given up is given up for good, so each test runs in a child that
 * ends with status 1, after a line that says where, or 0.
 */
#ifndef TESTS_UNIT_PRIVILEGES_LAB_H
#define TESTS_UNIT_PRIVILEGES_LAB_H

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/privileges.h"

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s: errno %d\n", __FILE__, __LINE__, #condition,   \
				errno);                                                            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* A call that must fail with EPERM. */
#define REFUSED(call) CHECK((errno = 0, (call) == -1 && errno == EPERM))

static inline void in_child(void (*run)(void))
{
	int status = -1;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		run();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static inline uint64_t caps_of(const char *kind)
{
	char text[8192], mark[32];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text) - 1);
	const char *line;

	close(fd);
	CHECK(n > 0);
	text[n] = 0;
	snprintf(mark, sizeof(mark), "\n%s:\t", kind);
	line = strstr(text, mark);
	CHECK(line);
	return strtoull(line + strlen(mark), NULL, 16);
}

static inline void need_root(void)
{
	if (geteuid() != 0 || !(caps_of("CapEff") >> CAP_SYSLOG & 1)) {
		print_message("# skip: needs root\n");
		skip();
	}
}

#endif
