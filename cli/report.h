/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sonde report FILE|DIR`: a profile as text, in the shape that users of perf report --stdio know:
 * a table of overheads, or call trees, or folded stacks. Reads any pprof file, plain, gzip or
 * zstd, whoever wrote it; of an agent's store, what overlaps the asked time. What is left out of
 * the output (--percent-limit, thin branches) is summed up in a line of its own.
 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <stdbool.h>
#include <stdio.h>

struct report_options {
	const char *path;        /* "-" is standard input */
	const char *sort;        /* keys with commas; NULL: "comm,dso,sym" */
	bool children;           /* also count what a function called */
	const char *call_graph;  /* NULL, "caller" (from the outside in) or "callee" */
	double percent_limit;    /* rows below are summed in one line; 0: all rows */
	/* NULL or a list with commas; a last * matches any rest. */
	const char *comm, *dso, *sym, *pid, *cgroup, *unit;
	const char *container, *pod_uid; /* the same, of what ids begin with */
	const char *reason;      /* the same, of what was waited for */
	bool idle;               /* also waits of workers that had nothing to do */
	bool folded;             /* folded stacks in place of the table */
	const char *sample_type; /* name; NULL: the file's default, else its last */
	bool no_header;          /* without the lines about the file */
	bool symbolize;          /* first name what has no name, by files of this machine */

	/* Of a store directory: see report_parse_time; NULL: all. */
	const char *since, *until;
	const char *type;        /* of the profiles in it; NULL: the one there is, else "cpu" */
};

/* Returns the exit status: 0, or 1 after one line on `err`. */
int report_run(const struct report_options *options, FILE *out, FILE *err);

#endif
