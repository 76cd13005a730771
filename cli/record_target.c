/* SPDX-License-Identifier: Apache-2.0 */
/* Targets of `sonde record`: pids, cgroups, and launching a command. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/record.h"

int target_parse_pids(const char *list, struct record_target *target, char *reason, size_t size)
{
	const char *p = list, *end = list + strlen(list);

	for (;;) {
		uint64_t pid;

		p = parse_digits(p, end, 10, &pid);
		if (!p || pid == 0 || pid > INT_MAX || (*p && *p != ',')) {
			snprintf(reason, size, "--pid: '%s' is no list of process ids, such as 1,23",
				 list);
			return -EINVAL;
		}
		if (target->pid_count == RECORD_MAX_PIDS) {
			snprintf(reason, size, "--pid: more than %d process ids", RECORD_MAX_PIDS);
			return -E2BIG;
		}
		target->pids[target->pid_count++] = (pid_t)pid;
		if (!*p)
			return 0;
		p++;
	}
}

/* A path as given, or below one of the usual mount points. */
static int find_directory(const char *path, char *full, size_t size)
{
	static const char *const roots[] = { "", "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	struct stat st;

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		struct statfs fs;

		snprintf(full, size, "%s%s%s", roots[i], i && path[0] != '/' ? "/" : "", path);
		if (stat(full, &st) == 0 && S_ISDIR(st.st_mode) && statfs(full, &fs) == 0 &&
		    (fs.f_type == CGROUP2_SUPER_MAGIC || fs.f_type == CGROUP_SUPER_MAGIC))
			return 0;
	}
	return -ENOENT;
}

int target_find_cgroup(const char *path, struct record_target *target, char *reason, size_t size)
{
	char full[PATH_MAX];
	struct statfs fs;
	struct stat st;

	if (find_directory(path, full, sizeof(full)) || stat(full, &st) || statfs(full, &fs)) {
		snprintf(reason, size, "--cgroup: '%s' is no cgroup; give its directory, such as "
				       "/sys/fs/cgroup/system.slice", path);
		return -ENOENT;
	}
	target->cgroup_v1 = fs.f_type == CGROUP_SUPER_MAGIC;
	if (target->cgroup_v1 && !strstr(full, "/pids")) {
		snprintf(reason, size, "--cgroup: '%s' is of cgroup v1; give the group's directory "
				       "in the pids hierarchy", path);
		return -EINVAL;
	}
	target->cgroup_id = st.st_ino;
	return 0;
}

/* The child: waits for the word, then becomes the command. Never returns. */
static void run_command(char **command, int go_fd, int error_fd)
{
	sigset_t none;
	char word;
	int err;

	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (read(go_fd, &word, 1) != 1)
		_exit(127); /* the recording could not start */
	execvp(command[0], command);
	err = errno;
	if (write(error_fd, &err, sizeof(err)) != sizeof(err))
		_exit(126);
	_exit(err == ENOENT ? 127 : 126);
}

int launch_prepare(char **command, struct launch *ret_launch)
{
	int go[2], error[2];
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(error, O_CLOEXEC) < 0) {
		close(go[0]);
		close(go[1]);
		return -errno;
	}
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		run_command(command, go[0], error[1]);
	}
	close(go[0]);
	close(error[1]);
	*ret_launch = (struct launch){ .pid = pid, .go_fd = go[1], .error_fd = error[0] };
	if (pid < 0) {
		int err = -errno;

		ret_launch->pid = 0;
		launch_close(ret_launch);
		return err;
	}
	return 0;
}

int launch_go(struct launch *launch)
{
	int err = 0;

	if (write(launch->go_fd, "g", 1) != 1)
		return -errno;
	/* End of file: exec closed the pipe. */
	if (read(launch->error_fd, &err, sizeof(err)) == sizeof(err))
		return -err;
	return 0;
}

void launch_close(struct launch *launch)
{
	if (launch->go_fd >= 0)
		close(launch->go_fd);
	if (launch->error_fd >= 0)
		close(launch->error_fd);
	launch->go_fd = launch->error_fd = -1;
}

bool launch_has_ended(const struct launch *launch)
{
	siginfo_t info = { 0 };

	return launch->pid &&
	       waitid(P_PID, (id_t)launch->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid != 0;
}

int launch_wait(struct launch *launch)
{
	int status;

	while (waitpid(launch->pid, &status, 0) < 0) {
		if (errno != EINTR)
			return 1;
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
