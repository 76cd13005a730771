/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde sched record`: the accounting runs, tables each interval, a profile at the end. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/collect/sched.h"
#include "agent/loop.h"
#include "base/clock.h"
#include "cli/output.h"
#include "cli/record.h"
#include "cli/sched.h"

enum { REASON_BYTES = 1024, MAX_ROWS = 65536, TABLE_BYTES = 64 << 20,
       PROFILE_BYTES = 512 << 20 };

struct session {
	const struct sched_options *options;
	struct sched_collect *collect;
	struct sched_books *books;
	struct loop *loop;
	struct launch launch;
	struct output output;
};

static int snapshot(struct session *s)
{
	struct sched_machine machine;
	int err = sched_collect_snapshot(s->collect, &machine);

	if (!err)
		sched_books_snapshot(s->books, &machine);
	return err;
}

static int print_table(struct session *s, const struct profile *p)
{
	const struct sched_view *view = &s->options->view;
	struct sched_table table;
	struct buf text;
	int err;

	buf_init(&text, TABLE_BYTES);
	err = sched_table_make(p, view, &table);
	if (!err) {
		(view->csv ? sched_table_csv : sched_table_print)(&table, view, &text);
		sched_table_fini(&table);
		err = buf_error(&text);
	}
	if (!err && (fwrite(text.data, 1, text.len, stdout) != text.len || fputc('\n', stdout) < 0 ||
		     fflush(stdout) != 0))
		err = -EPIPE;
	buf_fini(&text);
	return err;
}

/* Ends the interval: its table, if it is to be shown; the profile's file, if it is the last. */
static int close_interval(struct session *s, bool last)
{
	struct profile *p = NULL;
	uint64_t bytes;
	int err = snapshot(s);

	if (!err)
		err = sched_profile_new(s->books,
					&(struct sched_profile_options){
						.realtime_ns = clock_realtime(),
						.max_bytes = PROFILE_BYTES },
					&p);
	if (!err && s->options->interval_ns)
		err = print_table(s, p);
	if (!err && last && s->output.path) {
		err = output_write(&s->output, p, &bytes);
		if (!err && !s->options->quiet)
			fprintf(stderr, "sonde sched record: %.3f s of %llu threads in %s, %llu bytes; "
					"sonde sched report shows it\n",
				(double)p->duration_ns / 1e9,
				(unsigned long long)sched_books_threads(s->books), s->output.path,
				(unsigned long long)bytes);
	}
	profile_free(p);
	return err;
}

static void on_ring(void *context)
{
	struct session *s = context;
	int err = sched_collect_poll(s->collect);

	if (err)
		loop_stop(s->loop, err);
}

static void on_interval(void *context)
{
	struct session *s = context;
	int err = close_interval(s, false);

	sched_books_clear(s->books);
	if (err)
		loop_stop(s->loop, err);
}

static void on_end(void *context)
{
	struct session *s = context;

	loop_stop(s->loop, 0);
}

static void on_signal(void *context, int signal)
{
	struct session *s = context;

	if (signal != SIGCHLD) {
		if (s->launch.pid)
			kill(s->launch.pid, SIGTERM);
		loop_stop(s->loop, 0);
	} else if (launch_has_ended(&s->launch)) {
		loop_stop(s->loop, 0);
	}
}

static int prepare(struct session *s)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD, 0 };
	const struct sched_options *o = s->options;
	int err = loop_new(&s->loop);

	if (!err)
		err = loop_add_signals(s->loop, signals, on_signal, s);
	if (!err)
		err = loop_add_fd(s->loop, sched_collect_fd(s->collect), on_ring, s);
	if (!err && o->interval_ns)
		err = loop_add_timer(s->loop, o->interval_ns, o->interval_ns, on_interval, s);
	if (!err && o->duration_ns)
		err = loop_add_timer(s->loop, o->duration_ns, 0, on_end, s);
	return err;
}

/* The first snapshot is where the books begin. */
static int run(struct session *s, char *reason, size_t size)
{
	int err = snapshot(s);

	if (err)
		return err;
	sched_books_clear(s->books);
	err = prepare(s);
	if (!err && s->launch.pid) {
		err = launch_go(&s->launch);
		if (err)
			snprintf(reason, size, "%s: %s", s->options->command[0], strerror(-err));
	}
	if (!err)
		err = loop_run(s->loop);
	return err ? err : close_interval(s, true);
}

static int open_all(struct session *s, char *reason, size_t size)
{
	const struct sched_options *o = s->options;
	struct sched_collect_options collect = { .max_threads = (uint32_t)o->max_threads };
	struct sched_books_options books = {
		.by_thread = o->per_thread || strcmp(o->view.by, "thread") == 0,
		.max_rows = MAX_ROWS,
		.max_threads = 2 * o->max_threads,
	};
	struct sched_handler handler = { sched_books_thread, sched_books_cgroup, NULL };
	int err = 0;

	if (o->output) {
		err = output_open(o->output, &s->output);
		if (err)
			snprintf(reason, size, "--output: %s: %s", o->output, strerror(-err));
	}
	if (!err)
		err = sched_books_new(&books, &s->books);
	handler.context = s->books;
	if (!err)
		err = sched_collect_open(&collect, &handler, &s->collect, reason, size);
	if (!err && o->command)
		err = launch_prepare(o->command, &s->launch);
	return err;
}

int sched_record(const struct sched_options *options)
{
	struct session s = { .options = options, .launch = { .go_fd = -1, .error_fd = -1 },
			     .output = { .fd = -1 } };
	char reason[REASON_BYTES] = "";
	int status = 0, err = open_all(&s, reason, sizeof(reason));

	/* Ends of threads wait in the ring for this process. */
	setpriority(PRIO_PROCESS, 0, AGENT_NICE);
	if (!err)
		err = run(&s, reason, sizeof(reason));
	loop_free(s.loop);
	sched_collect_close(s.collect);
	sched_books_free(s.books);
	output_close(&s.output);
	if (err)
		fprintf(stderr, "sonde sched record: %s\n", reason[0] ? reason : strerror(-err));
	launch_close(&s.launch);
	if (s.launch.pid)
		status = launch_wait(&s.launch);
	return err && status == 0 ? 1 : status;
}
