/* SPDX-License-Identifier: Apache-2.0 */
/* Command line of `sonde report`. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/report.h"

#define FIELD(name) offsetof(struct report_options, name)

const struct option_row report_rows[] = {
	{ "sort", 's', OPTION_TEXT, "KEYS", "comm,dso,sym", 0, 0, FIELD(sort),
	  "columns to group by: comm, thread, pid, dso, sym, cgroup, ..." },
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
	{ "since", 0, OPTION_TEXT, "TIME", NULL, 0, 0, FIELD(since),
	  "of a store: from this time on; 1h (ago), 03:12, '2026-11-29 03:12', in UTC" },
	{ "until", 0, OPTION_TEXT, "TIME", NULL, 0, 0, FIELD(until), "of a store: to this time" },
	{ "type", 0, OPTION_TEXT, "TYPE", NULL, 0, 0, FIELD(type),
	  "of a store: profiles of this type, such as cpu" },
	{ "folded", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(folded),
	  "folded stacks, for flame graphs" },
	{ "sample-type", 0, OPTION_TEXT, "NAME", NULL, 0, 0, FIELD(sample_type),
	  "which value to show: samples, cpu, ..." },
	{ "no-header", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(no_header),
	  "without the lines about the file" },
	{ 0 },
};

int report_main(int argc, char **argv)
{
	struct report_options options = { 0 };
	int rest, err = command_options("report", argc, argv, &options, &rest);

	if (err)
		return err == 1 ? 0 : 2;
	if (argc - rest > 1) {
		fprintf(stderr, "sonde report: one file or directory at a time, not '%s'\n",
			argv[rest + 1]);
		return 2;
	}
	options.path = rest < argc ? argv[rest] : "sonde.pb.gz";
	if (options.call_graph && strcmp(options.call_graph, "caller") != 0 &&
	    strcmp(options.call_graph, "callee") != 0) {
		fprintf(stderr, "sonde report: --call-graph: '%s' is neither caller nor callee\n",
			options.call_graph);
		return 2;
	}
	return report_run(&options, stdout, stderr);
}
