/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands, their help and the man page; see commands.h. */
#include "cli/commands.h"

#include <errno.h>
#include <string.h>

#include "agent/version.h"

static const struct option_row no_rows[] = { { 0 } };

const struct command commands[] = {
	{
		.name = "record",
		.summary = "sample what runs, into a profile file",
		.usage = "[options] [-a | -p PID,... | --container ID,... | -- COMMAND...]",
		.detail = "Samples the call stacks of all CPUs, of some processes (all their threads, "
			  "and the children they make from then on), of a cgroup with all below it, of "
			  "some containers or pods, or of a command, until the duration is over, the "
			  "command ends or Ctrl-C. Without a target it samples the whole machine. "
			  "Containers and pods are known by the names of their cgroups, so that no "
			  "runtime is asked; docker ps and kubectl get pod -o yaml show these ids. With "
			  "--off-cpu it takes down where threads wait in place of where they run, with "
			  "--wall both. The exit status is that of the command, if there is one.",
		.options = record_rows,
		.run = record_main,
	},
	{
		.name = "report",
		.summary = "show a profile as a table or as call trees",
		.usage = "[options] [FILE|DIR]",
		.detail = "Reads any pprof file, gzip, zstd or plain, whoever wrote it; sonde.pb.gz if "
			  "none is given. Of a directory that sonde agent writes to, all windows that "
			  "overlap the time from --since to --until are merged: --since 03:12 --until "
			  "03:13 tells what ran at 03:12.",
		.options = report_rows,
		.run = report_main,
	},
	{
		.name = "symbolize",
		.summary = "name the addresses of a profile, later or on another machine",
		.usage = "[options] FILE",
		.detail = "For each address without a name its file is looked for: at its path (below "
			  "--symfs, if given), and as a debug file in --debug-dir, and only one with the "
			  "same build-id is used. Kernel addresses are named by the running kernel, "
			  "if it is the same and lies at the same place, by what was kept of a kernel "
			  "of its build-id in --cache-dir (sonde record --no-symbols keeps it, and so does "
			  "this command), or by its debug file. What is "
			  "still without a name is told with the reason, and stays as it is. The "
			  "exit status is 1 if nothing could be named.",
		.options = symbolize_rows,
		.run = symbolize_main,
	},
	{
		.name = "sched",
		.summary = "account for all the time of all threads: record, report",
		.usage = "record|report [options]",
		.detail = "Every nanosecond of every thread is put down as on a CPU, waiting for one "
			  "(after a wake-up or a preemption), throttled by a quota, or blocked, for one "
			  "of eleven reasons: for each process and cgroup the sum is the lifetime of its "
			  "threads. What perf sched latency, perf sched timehist --summary, runqlat and "
			  "cpudist tell.",
		.options = no_rows,
		.run = sched_main,
	},
	{
		.name = "sched record",
		.summary = "account for a while, into a profile file or as a table each interval",
		.usage = "[options] [-- COMMAND...]",
		.detail = "The whole machine, until the duration is over, the command ends or Ctrl-C. "
			  "Of a wait that began before, the part from the start on counts.",
		.options = sched_record_rows,
		.run = sched_main,
	},
	{
		.name = "sched report",
		.summary = "show what sonde sched record wrote: where time went, who waited and for what",
		.usage = "[options] [FILE]",
		.detail = "With --call-graph or --lock it shows files of sonde record --off-cpu: by which "
			  "paths threads came to wait, and who asked for which lock.",
		.options = sched_report_rows,
		.run = sched_main,
	},
	{
		.name = "doctor",
		.summary = "tell what this kernel and these privileges allow",
		.usage = "[options]",
		.detail = "One line for each thing that sonde needs or can use; where something is "
			  "missing, what is lost for it and what to do. The exit status is 1 if "
			  "nothing can be recorded here.",
		.options = doctor_rows,
		.run = doctor_main,
	},
	{
		.name = "agent",
		.summary = "sample always, into a directory of profiles",
		.usage = "[options]",
		.detail = "Runs until SIGTERM; SIGHUP loads the configuration again, and the log names "
			  "what changes with a restart only. Each collection is journalled, each window "
			  "becomes one profile in the directory, within caps on size and age. A budget "
			  "of CPU time is kept by announced steps.",
		.options = agent_rows,
		.run = agent_main,
	},
	{
		.name = "man",
		.summary = "print the manual page (man(7) source)",
		.usage = "",
		.options = no_rows,
		.run = man_main,
	},
	{ 0 },
};

static const struct command *find(const char *name)
{
	for (const struct command *c = commands; c->name; c++) {
		if (strcmp(c->name, name) == 0)
			return c;
	}
	return NULL;
}

int command_options(const char *name, int argc, char **argv, void *values, int *ret_rest)
{
	const struct command *command = find(name);
	char reason[256];
	int err = options_parse(command->options, argc, argv, values, ret_rest, reason,
				sizeof(reason));

	if (err < 0)
		fprintf(stderr, "sonde %s: %s\n", name, reason);
	if (err == 1) {
		printf("Usage: sonde %s %s\n\n%s.\n\nOptions:\n", name, command->usage,
		       command->summary);
		options_help(command->options, stdout);
	}
	return err;
}

static const char man_head[] =
	".SH NAME\nsonde \\- a profiler for Linux that sees every process\n"
	".SH SYNOPSIS\n.B sonde\n.I COMMAND\n[options]\n"
	".SH DESCRIPTION\nsonde samples the stacks of all processes with BPF programs, counts them in "
	"the kernel, finds the names of functions by the build-ids of the files, and writes pprof "
	"profiles. Nothing is dropped silently: each way to lose or shorten a sample has a counter, "
	"shown in the summary and kept in the profile.\n"
	".SH COMMANDS\n";

static const char man_tail[] =
	".SH ENVIRONMENT\nEach option may be set by a variable SONDE_<NAME>, in upper case and with "
	"\\- as _: SONDE_FREQ=49; but for \\-\\-config and \\-\\-example\\-config.\n"
	".SH EXIT STATUS\n0 if the command did its job, 1 if it could not, 2 for a mistake on the "
	"command line. \\fBsonde record \\-\\- COMMAND\\fR: that of the command, or 128 plus the "
	"number of the signal that ended it.\n"
	".SH FILES\n"
	".TP\n/usr/lib/debug/.build-id\nseparate debug files, found by build-id\n"
	".TP\n/tmp/perf-PID.map, jit-PID.dump\nnames of JIT code, read in the root of the process; a jitdump is "
	"found by its mapping\n"
	".SH PRIVILEGES\nRecording needs root, or CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, "
	"CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE and CAP_SYSLOG. Reports need nothing.\n"
	".SH SEE ALSO\nperf-record(1), perf-report(1)\n";

int man_main(int argc, char **argv)
{
	printf(".TH SONDE 1 \"\" \"sonde %s\" \"User Commands\"\n%s", SONDE_VERSION, man_head);
	for (const struct command *c = commands; c->name; c++) {
		printf(".SS sonde %s %s\n%s.\n", c->name, c->usage, c->summary);
		if (c->detail)
			printf(".PP\n%s\n", c->detail);
		options_man(c->options, stdout);
	}
	fputs(man_tail, stdout);
	return 0;
}
