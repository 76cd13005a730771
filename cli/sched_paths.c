/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde sched report -g` and `--lock`: by which paths threads came to wait, and at which locks. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/lock_view.h"
#include "cli/report_private.h"
#include "cli/sched.h"

static const double PERCENT_LIMIT = 0.5;

static int call_graph(const struct sched_options *o)
{
	struct report_options options = {
		.path = o->path,
		.sort = "comm,state,reason",
		.call_graph = o->call_graph,
		.percent_limit = PERCENT_LIMIT,
		.comm = o->view.comm,
		.pid = o->view.pid,
		.cgroup = o->view.cgroup,
		.idle = o->idle,
	};

	return report_run(&options, stdout, stderr);
}

static int locks(const struct sched_options *o)
{
	struct lock_view view = { o->view.rows, o->idle, o->view.comm, o->view.pid };
	struct profile *p = NULL;
	struct buf text;
	int err;

	buf_init(&text, SIZE_MAX / 2);
	err = report_load_file(o->path, &p, &text);
	if (!err) {
		err = lock_view_print(p, &view, &text);
		if (err == -EINVAL)
			buf_put_str(&text, "has no waits by stack; sonde record --off-cpu writes them");
	}
	if (err)
		fprintf(stderr, "sonde sched report: %s: %s\n", o->path,
			text.len ? buf_cstr(&text) : strerror(-err));
	else if (fwrite(text.data, 1, text.len, stdout) != text.len || fflush(stdout) != 0)
		err = -EPIPE;
	profile_free(p);
	buf_fini(&text);
	return err ? 1 : 0;
}

int sched_paths(const struct sched_options *options)
{
	return options->lock ? locks(options) : call_graph(options);
}
