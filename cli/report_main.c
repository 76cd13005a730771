/* SPDX-License-Identifier: Apache-2.0 */
/* Command line of `sonde report`. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/report.h"

#define FIELD(name) offsetof(struct report_options, name)

const struct option_row report_rows[] = {
	{ "sort", 's', OPTION_TEXT, "KEYS", "comm,dso,sym", 0, 0, FIELD(sort),
	  "columns to group by: comm, thread, pid, dso, sym, container, pod, unit, cgroup, state, "
	  "reason, ..." },
	{ "children", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(children),
	  "also count what a function called" },
	{ "call-graph", 'g', OPTION_TEXT, "ORDER", NULL, 0, 0, FIELD(call_graph),
	  "call trees: caller (from the outside in) or callee" },
	{ "percent-limit", 0, OPTION_REAL, "PERCENT", "0", 0, 100, FIELD(percent_limit),
	  "sum up rows and branches below this share" },
	{ "comm", 0, OPTION_TEXT, "NAMES", NULL, 0, 0, FIELD(comm),
	  "only these commands (a,b; a* for a prefix)" },
	{ "dso", 0, OPTION_TEXT, "NAMES", NULL, 0, 0, FIELD(dso), "only these shared objects" },
	{ "sym", 'S', OPTION_TEXT, "NAMES", NULL, 0, 0, FIELD(sym), "only these functions" },
	{ "pid", 0, OPTION_TEXT, "PIDS", NULL, 0, 0, FIELD(pid), "only these processes" },
	{ "cgroup", 0, OPTION_TEXT, "PATHS", NULL, 0, 0, FIELD(cgroup),
	  "only these control groups (PATH/* for all below one)" },
	{ "container", 0, OPTION_TEXT, "IDS", NULL, 0, 0, FIELD(container),
	  "only these containers; the first digits of an id will do" },
	{ "pod-uid", 0, OPTION_TEXT, "UIDS", NULL, 0, 0, FIELD(pod_uid), "only these pods" },
	{ "unit", 0, OPTION_TEXT, "NAMES", NULL, 0, 0, FIELD(unit), "only these systemd units" },
	{ "reason", 0, OPTION_TEXT, "REASONS", NULL, 0, 0, FIELD(reason),
	  "off-CPU: only waits for these (lock, disk, poll, ...)" },
	{ "idle", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(idle),
	  "off-CPU: also long waits of workers that had nothing to do" },
	{ "since", 0, OPTION_TEXT, "TIME", NULL, 0, 0, FIELD(since),
	  "of a store: from this time on; 1h (ago), 03:12, '2026-11-29 03:12', in UTC" },
	{ "until", 0, OPTION_TEXT, "TIME", NULL, 0, 0, FIELD(until), "of a store: to this time" },
	{ "type", 0, OPTION_TEXT, "TYPE", NULL, 0, 0, FIELD(type),
	  "of a store: profiles of this type, such as cpu" },
	{ "folded", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(folded),
	  "folded stacks, for flame graphs" },
	{ "sample-type", 0, OPTION_TEXT, "NAME", NULL, 0, 0, FIELD(sample_type),
	  "which value to show: samples, cpu, ..." },
	{ "symbolize", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(symbolize),
	  "name what has no name, by files of this machine (see sonde symbolize)" },
	{ "no-header", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(no_header),
	  "without the lines about the file" },
	{ 0 },
};

static int mistake(const char *format, const char *what)
{
	fprintf(stderr, "sonde report: ");
	fprintf(stderr, format, what);
	fputc('\n', stderr);
	return 2;
}

/* Options may stand before and behind the file. */
static int parse(int argc, char **argv, struct report_options *options)
{
	int rest, end, err = command_options("report", argc, argv, options, &rest);
	char reason[256];

	if (err)
		return err;
	options->path = "sonde.pb.gz";
	if (rest == argc)
		return 0;
	options->path = argv[rest];
	err = options_more(report_rows, argc - rest, argv + rest, options, &end, reason,
			   sizeof(reason));
	if (err < 0)
		return -mistake("%s", reason);
	if (rest + end < argc)
		return -mistake("one file or directory at a time, not '%s'", argv[rest + end]);
	return err;
}

int report_main(int argc, char **argv)
{
	struct report_options options = { 0 };
	int err = parse(argc, argv, &options);

	if (err)
		return err == 1 ? 0 : 2;
	if (options.call_graph && strcmp(options.call_graph, "caller") != 0 &&
	    strcmp(options.call_graph, "callee") != 0)
		return mistake("--call-graph: '%s' is neither caller nor callee",
			       options.call_graph);
	return report_run(&options, stdout, stderr);
}
