/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of `sonde record`: ring buffer, drain timer, end of time or of targets, signals. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/record.h"

/* Places in the poll set; those of target processes follow. */
enum { POLL_RING, POLL_DRAIN, POLL_END, POLL_SIGNAL, POLL_FIXED };

static const nsec_t DRAIN_INTERVAL = NSEC_PER_SEC;

struct loop {
	struct agent *agent;
	const struct record_options *options;
	struct launch *launch;
	struct pollfd fds[POLL_FIXED + RECORD_MAX_PIDS];
	size_t fd_count;
	size_t pids_left; /* target processes that have not ended; 0 with none given */
	bool watch_pids;
	bool done;
	nsec_t started;
};

static int open_timer(nsec_t first, nsec_t interval)
{
	struct itimerspec spec = {
		.it_value = { .tv_sec = (time_t)(first / NSEC_PER_SEC),
			      .tv_nsec = (long)(first % NSEC_PER_SEC) },
		.it_interval = { .tv_sec = (time_t)(interval / NSEC_PER_SEC),
				 .tv_nsec = (long)(interval % NSEC_PER_SEC) },
	};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (timerfd_settime(fd, 0, &spec, NULL) < 0) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

/* Signals arrive as a file; the command's side resets the mask. */
static int open_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static void watch(struct loop *l, size_t place, int fd)
{
	l->fds[place] = (struct pollfd){ .fd = fd, .events = POLLIN };
}

static void watch_targets(struct loop *l, const struct record_target *target)
{
	for (size_t i = 0; i < target->pid_count; i++) {
		int fd = (int)syscall(SYS_pidfd_open, target->pids[i], 0);

		if (fd < 0 && errno != ESRCH)
			return; /* old kernel: the user ends the recording */
		if (fd < 0)
			continue;
		watch(l, l->fd_count++, fd);
		l->pids_left++;
	}
	l->watch_pids = target->pid_count > 0;
}

static int open_loop(struct loop *l, const struct record_target *target)
{
	int signals = open_signals();
	int drain = open_timer(DRAIN_INTERVAL, DRAIN_INTERVAL);

	watch(l, POLL_RING, agent_fd(l->agent));
	watch(l, POLL_DRAIN, drain);
	watch(l, POLL_END, -1);
	watch(l, POLL_SIGNAL, signals);
	l->fd_count = POLL_FIXED;
	if (signals < 0 || drain < 0)
		return signals < 0 ? signals : drain;
	watch_targets(l, target);
	return 0;
}

static void close_loop(struct loop *l)
{
	for (size_t i = POLL_DRAIN; i < l->fd_count; i++) {
		if (l->fds[i].fd >= 0)
			close(l->fds[i].fd);
	}
}

/* The command's end is noted, its status kept for launch_wait. */
static bool command_has_ended(const struct launch *launch)
{
	siginfo_t info = { 0 };

	return launch->pid && waitid(P_PID, (id_t)launch->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid != 0;
}

static void handle_signals(struct loop *l)
{
	struct signalfd_siginfo info;

	while (read(l->fds[POLL_SIGNAL].fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo != SIGCHLD) {
			l->done = true;
			if (l->launch->pid)
				kill(l->launch->pid, SIGTERM);
		} else if (command_has_ended(l->launch)) {
			l->done = true;
		}
	}
}

static void show_progress(const struct loop *l)
{
	struct agent_totals totals;

	if (l->options->quiet || !isatty(STDERR_FILENO))
		return;
	agent_totals(l->agent, &totals);
	fprintf(stderr, "\rsonde record: %llu s, %llu samples; Ctrl-C ends ",
		(unsigned long long)((clock_monotonic() - l->started) / NSEC_PER_SEC),
		(unsigned long long)totals.collect.counters[SONDE_COUNT_KEPT]);
}

static void handle_targets(struct loop *l)
{
	for (size_t i = POLL_FIXED; i < l->fd_count; i++) {
		if (l->fds[i].fd < 0 || !l->fds[i].revents)
			continue;
		close(l->fds[i].fd);
		l->fds[i].fd = -1;
		l->pids_left--;
	}
	if (l->watch_pids && l->pids_left == 0)
		l->done = true;
}

static int turn(struct loop *l)
{
	uint64_t ticks;
	int err = 0;

	if (poll(l->fds, l->fd_count, -1) < 0)
		return errno == EINTR ? 0 : -errno;
	if (l->fds[POLL_RING].revents)
		err = agent_poll(l->agent);
	if (l->fds[POLL_DRAIN].revents &&
	    read(l->fds[POLL_DRAIN].fd, &ticks, sizeof(ticks)) == sizeof(ticks)) {
		err = agent_drain(l->agent);
		show_progress(l);
	}
	if (l->fds[POLL_SIGNAL].revents)
		handle_signals(l);
	if (l->fds[POLL_END].revents)
		l->done = true;
	handle_targets(l);
	return err;
}

static int start(struct loop *l, char *reason, size_t size)
{
	int err = agent_start(l->agent);

	if (err) {
		snprintf(reason, size, "the perf events could not be started: %s", strerror(-err));
		return err;
	}
	l->started = clock_monotonic();
	if (l->options->duration_ns) {
		l->fds[POLL_END].fd = open_timer(l->options->duration_ns, 0);
		if (l->fds[POLL_END].fd < 0)
			return l->fds[POLL_END].fd;
	}
	if (!l->launch->pid)
		return 0;
	err = launch_go(l->launch);
	if (err)
		snprintf(reason, size, "%s: %s", l->options->command[0], strerror(-err));
	return err;
}

int record_loop(struct agent *agent, const struct record_options *options,
		const struct record_target *target, struct launch *launch, char *reason,
		size_t size)
{
	struct loop *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->agent = agent;
	l->options = options;
	l->launch = launch;
	err = open_loop(l, target);
	if (!err)
		err = start(l, reason, size);
	while (!err && !l->done)
		err = turn(l);
	if (!options->quiet && isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
	close_loop(l);
	free(l);
	return err;
}
