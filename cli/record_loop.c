/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of `sonde record`: ring buffer, drains, end of time or of targets, signals. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/loop.h"
#include "base/clock.h"
#include "cli/record.h"

static const nsec_t DRAIN_INTERVAL = NSEC_PER_SEC;

struct recording {
	struct agent *agent;
	const struct record_options *options;
	struct launch *launch;
	struct loop *loop;
	size_t targets_left; /* target processes that have not ended */
	nsec_t started;
};

/* A process that is waited for; its pidfd is readable once it has ended. */
struct watched {
	struct recording *recording;
	int fd;
};

static void on_ring(void *context)
{
	struct recording *r = context;
	int err = agent_poll(r->agent);

	if (err)
		loop_stop(r->loop, err);
}

static void show_progress(const struct recording *r)
{
	struct agent_totals totals;

	if (r->options->quiet || !isatty(STDERR_FILENO))
		return;
	agent_totals(r->agent, &totals);
	fprintf(stderr, "\rsonde record: %llu s, %llu samples; Ctrl-C ends ",
		(unsigned long long)((clock_monotonic() - r->started) / NSEC_PER_SEC),
		(unsigned long long)totals.collect.counters[SONDE_COUNT_KEPT]);
}

static void on_drain(void *context)
{
	struct recording *r = context;
	int err = agent_drain(r->agent);

	if (err)
		loop_stop(r->loop, err);
	show_progress(r);
}

static void on_end(void *context)
{
	struct recording *r = context;

	loop_stop(r->loop, 0);
}

static void on_signal(void *context, int signal)
{
	struct recording *r = context;

	if (signal == SIGCHLD) {
		if (launch_has_ended(r->launch))
			loop_stop(r->loop, 0);
		return;
	}
	if (r->launch->pid)
		kill(r->launch->pid, SIGTERM);
	loop_stop(r->loop, 0);
}

static void on_target_end(void *context)
{
	struct watched *watched = context;
	struct recording *r = watched->recording;

	loop_remove(r->loop, watched->fd);
	if (--r->targets_left == 0)
		loop_stop(r->loop, 0);
}

/* Kernels before 5.3 have no pidfds: there the user ends the recording. */
static int watch_targets(struct recording *r, const struct record_target *target,
			 struct watched *watched)
{
	size_t gone = 0;

	for (size_t i = 0; i < target->pid_count; i++) {
		int err, fd = (int)syscall(SYS_pidfd_open, target->pids[i], 0);

		if (fd < 0) {
			gone += errno == ESRCH;
			continue;
		}
		watched[i] = (struct watched){ r, fd };
		err = loop_add_owned_fd(r->loop, fd, on_target_end, &watched[i]);
		if (err)
			return err;
		r->targets_left++;
	}
	if (target->pid_count && gone == target->pid_count)
		loop_stop(r->loop, 0);
	return 0;
}

static int prepare(struct recording *r, const struct record_target *target,
		   struct watched *watched)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD, 0 };
	int err = loop_add_signals(r->loop, signals, on_signal, r);

	if (!err)
		err = loop_add_fd(r->loop, agent_fd(r->agent), on_ring, r);
	if (!err)
		err = loop_add_timer(r->loop, DRAIN_INTERVAL, DRAIN_INTERVAL, on_drain, r);
	if (!err)
		err = watch_targets(r, target, watched);
	return err;
}

static int start(struct recording *r, char *reason, size_t size)
{
	int err = agent_start(r->agent);

	if (err) {
		snprintf(reason, size, "the perf events could not be started: %s", strerror(-err));
		return err;
	}
	err = agent_warm_up(r->agent);
	if (err)
		return err;
	r->started = clock_monotonic();
	if (r->options->duration_ns) {
		agent_set_end(r->agent, r->started + r->options->duration_ns);
		err = loop_add_timer(r->loop, r->options->duration_ns, 0, on_end, r);
	}
	if (err || !r->launch->pid)
		return err;
	err = launch_go(r->launch);
	if (err)
		snprintf(reason, size, "%s: %s", r->options->command[0], strerror(-err));
	return err;
}

int record_loop(struct agent *agent, const struct record_options *options,
		const struct record_target *target, struct launch *launch, char *reason,
		size_t size)
{
	struct recording r = { .agent = agent, .options = options, .launch = launch };
	struct watched *watched = calloc(target->pid_count + 1, sizeof(*watched));
	int err = watched ? loop_new(&r.loop) : -ENOMEM;

	if (!err)
		err = prepare(&r, target, watched);
	if (!err)
		err = start(&r, reason, size);
	if (!err)
		err = loop_run(r.loop);
	if (!options->quiet && isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
	loop_free(r.loop);
	free(watched);
	return err;
}
