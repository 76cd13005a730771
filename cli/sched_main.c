/* SPDX-License-Identifier: Apache-2.0 */
/* Command line of `sonde sched`. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/report_private.h"
#include "cli/sched.h"

#define FIELD(name) offsetof(struct sched_options, name)

/* clang-format off */
#define VIEW_ROWS \
	{ "by", 'b', OPTION_TEXT, "WHAT", "process", 0, 0, FIELD(view.by), \
	  "a row for each process, thread, cgroup, comm, or one for all" }, \
	{ "sort", 's', OPTION_TEXT, "COLUMN", "run", 0, 0, FIELD(view.sort), \
	  "run, stolen, runnable, throttled, blocked, avg, p99, max, switches, migrations, " \
	  "lifetime, pid, name, or what is waited for (lock, disk, poll, ...)" }, \
	{ "rows", 'n', OPTION_NUMBER, "COUNT", "40", 0, 1e9, FIELD(view.rows), \
	  "how many rows at most; 0: all" }, \
	{ "histogram", 0, OPTION_TEXT, "OF", NULL, 0, 0, FIELD(view.histogram), \
	  "under each row: delay (waits for a CPU) or off (time off the CPU)" }, \
	{ "comm", 0, OPTION_TEXT, "NAMES", NULL, 0, 0, FIELD(view.comm), \
	  "only these commands (a,b; a* for a prefix)" }, \
	{ "pid", 'p', OPTION_TEXT, "PIDS", NULL, 0, 0, FIELD(view.pid), "only these processes" }, \
	{ "cgroup", 0, OPTION_TEXT, "PATHS", NULL, 0, 0, FIELD(view.cgroup), \
	  "only these control groups (PATH/* for all below one)" }, \
	{ "kernel", 'k', OPTION_FLAG, NULL, NULL, 0, 0, FIELD(view.kernel), \
	  "also rows of kernel threads" }, \
	{ "csv", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(view.csv), \
	  "rows for programs: comma-separated, times in nanoseconds" }

const struct option_row sched_record_rows[] = {
	{ "duration", 'd', OPTION_DURATION, "TIME", NULL, 0, 0, FIELD(duration_ns),
	  "how long: 30, 1.5m, 200ms; else until the command ends or Ctrl-C" },
	{ "interval", 'i', OPTION_DURATION, "TIME", NULL, 0, 0, FIELD(interval_ns),
	  "show a table each time this has passed" },
	{ "output", 'o', OPTION_TEXT, "FILE", NULL, 0, 0, FIELD(output),
	  "a profile (.pb.gz, .pb.zst, .pb, .folded); sched.pb.gz without --interval. With it: of "
	  "the last interval" },
	{ "per-thread", 't', OPTION_FLAG, NULL, NULL, 0, 0, FIELD(per_thread),
	  "keep threads apart in the file" },
	{ "max-threads", 0, OPTION_NUMBER, "COUNT", "32768", 64, 4194304, FIELD(max_threads),
	  "threads at a time that there is room for, 0.7 kB each; others are one row" },
	{ "quiet", 'q', OPTION_FLAG, NULL, NULL, 0, 0, FIELD(quiet), "no summary" },
	VIEW_ROWS,
	{ 0 },
};

const struct option_row sched_report_rows[] = {
	{ "call-graph", 'g', OPTION_TEXT, "ORDER", NULL, 0, 0, FIELD(call_graph),
	  "of a file by sonde record --off-cpu or --wall: by which paths threads came to wait; caller "
	  "(from the outside in) or callee" },
	{ "lock", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(lock),
	  "of such a file: waits for locks, by who asked for them" },
	{ "idle", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(idle),
	  "with these also long waits of workers that had nothing to do" },
	VIEW_ROWS,
	{ 0 },
};
/* clang-format on */

static int mistake(const char *command, const char *reason)
{
	fprintf(stderr, "sonde %s: %s\n", command, reason);
	return 2;
}

static int record_command(int argc, char **argv)
{
	struct sched_options options = { 0 };
	char reason[256];
	int rest, err;

	signal(SIGPIPE, SIG_IGN);
	err = command_options("sched record", argc, argv, &options, &rest);
	if (err)
		return err == 1 ? 0 : 2;
	if (rest < argc)
		options.command = argv + rest;
	if (sched_view_check(&options.view, reason, sizeof(reason)))
		return mistake("sched record", reason);
	if (!options.output && !options.interval_ns)
		options.output = "sched.pb.gz";
	if (options.output && !output_knows(options.output))
		return mistake("sched record",
			       "--output ends in none of .pb.gz, .pb.zst, .pb, .folded");
	return sched_record(&options);
}

static int report(const struct sched_options *options)
{
	struct sched_table table = { 0 };
	struct profile *p = NULL;
	struct buf text;
	int err;

	buf_init(&text, SIZE_MAX / 2);
	err = report_load_file(options->path, &p, &text);
	if (!err) {
		err = sched_table_make(p, &options->view, &table);
		if (err == -EINVAL)
			buf_put_str(&text, "is no profile of sonde sched record");
		else if (err == -EOVERFLOW)
			buf_put_str(&text, "its numbers are too large to be added up: damaged, or "
					   "not written by sonde");
	}
	if (!err) {
		(options->view.csv ? sched_table_csv : sched_table_print)(&table, &options->view,
									  &text);
		err = buf_error(&text);
	}
	if (err)
		fprintf(stderr, "sonde sched report: %s: %s\n", options->path,
			text.len ? buf_cstr(&text) : strerror(-err));
	else if (fwrite(text.data, 1, text.len, stdout) != text.len || fflush(stdout) != 0)
		err = -EPIPE;
	sched_table_fini(&table);
	profile_free(p);
	buf_fini(&text);
	return err ? 1 : 0;
}

static int report_command(int argc, char **argv)
{
	struct sched_options options = { .path = "sched.pb.gz" };
	char reason[256];
	int rest, end = 0, err = command_options("sched report", argc, argv, &options, &rest);

	if (err)
		return err == 1 ? 0 : 2;
	if (rest < argc) {
		options.path = argv[rest];
		err = options_more(sched_report_rows, argc - rest, argv + rest, &options, &end,
				   reason, sizeof(reason));
		if (err < 0)
			return mistake("sched report", reason);
		if (rest + end < argc)
			return mistake("sched report", "one file at a time");
	}
	if (sched_view_check(&options.view, reason, sizeof(reason)))
		return mistake("sched report", reason);
	if (options.call_graph && options.lock)
		return mistake("sched report", "choose one: --call-graph or --lock");
	if (options.call_graph && strcmp(options.call_graph, "caller") &&
	    strcmp(options.call_graph, "callee"))
		return mistake("sched report", "--call-graph: caller or callee");
	return options.call_graph || options.lock ? sched_paths(&options) : report(&options);
}

int sched_main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "record") == 0)
		return record_command(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "report") == 0)
		return report_command(argc - 1, argv + 1);
	fprintf(argc > 1 && strcmp(argv[1], "--help") != 0 ? stderr : stdout,
		"Usage: sonde sched record|report [options]\n\n"
		"Where threads' time goes. 'sonde sched record --help' tells the options.\n");
	return argc > 1 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
}
