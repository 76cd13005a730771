/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pidreuse [-t seconds] [-m ms] program_a program_b: runs the two programs (exec_ab) in turn, each
 * for `ms` of CPU, and every one of them under the same process id: clone3() with set_tid makes
 * the reuse certain, where a small pid space would only make it likely.
 */
#include <linux/sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "burn.h"

static pid_t fork_as(pid_t want)
{
	struct clone_args args = { .exit_signal = SIGCHLD };

	if (want) {
		args.set_tid = (uint64_t)(uintptr_t)&want;
		args.set_tid_size = 1;
	}
	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

int main(int argc, char **argv)
{
	double seconds = 3;
	const char *ms = "5";
	unsigned long runs[2] = { 0 }, refused = 0;
	pid_t same = 0, pid;
	uint64_t end;
	int opt, status, which = 0;

	while ((opt = getopt(argc, argv, "t:m:")) != -1) {
		if (opt == 't')
			seconds = atof(optarg);
		else
			ms = optarg;
	}
	if (optind + 2 != argc)
		return 2;
	burn_catch_signals();
	burn_say_ready();
	end = wall_ns() + (uint64_t)(seconds * 1e9);
	while (!burn_stop && wall_ns() < end) {
		char *prog = argv[optind + which];

		pid = fork_as(same);
		if (pid < 0) { /* somebody else took the number meanwhile */
			refused++;
			same = 0;
			continue;
		}
		if (pid == 0) {
			execv(prog, (char *[]){ prog, (char *)ms, "0", "-", NULL });
			_exit(127);
		}
		same = pid;
		if (waitpid(pid, &status, 0) == pid && status == 0)
			runs[which]++;
		which = !which;
	}
	printf("{\"event\":\"truth\",\"pid\":%d,\"child_pid\":%d,\"runs_a\":%lu,\"runs_b\":%lu,"
	       "\"refused\":%lu}\n",
	       (int)getpid(), (int)same, runs[0], runs[1], refused);
	return 0;
}
