/* SPDX-License-Identifier: Apache-2.0 */
/* Event loop on epoll, timerfd and signalfd; see loop.h. */
#include "agent/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { MAX_EVENTS = 16 };

enum source_kind { SOURCE_FD, SOURCE_TIMER, SOURCE_SIGNALS };

/* Sources live until loop_free: an event of a removed one may still be in hand. */
struct source {
	struct source *next;
	enum source_kind kind;
	int fd; /* -1: removed */
	bool owned;
	loop_fn fn;
	loop_signal_fn signal_fn;
	void *context;
};

struct loop {
	int epoll_fd;
	struct source *sources;
	bool stopped;
	int err;
};

int loop_new(struct loop **ret_loop)
{
	struct loop *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll_fd < 0) {
		int err = -errno;

		free(l);
		return err;
	}
	*ret_loop = l;
	return 0;
}

static void source_drop(struct loop *l, struct source *s)
{
	if (s->fd < 0)
		return;
	epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
	if (s->owned)
		close(s->fd);
	s->fd = -1;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	while (l->sources) {
		struct source *next = l->sources->next;

		source_drop(l, l->sources);
		free(l->sources);
		l->sources = next;
	}
	close(l->epoll_fd);
	free(l);
}

/* Takes a source by value; owned fds are closed on failure. */
static int add(struct loop *l, struct source source)
{
	struct source *s = calloc(1, sizeof(*s));
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = s };
	int err = 0;

	if (!s)
		err = -ENOMEM;
	else if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, source.fd, &event) < 0)
		err = -errno;
	if (err) {
		if (source.owned)
			close(source.fd);
		free(s);
		return err;
	}
	*s = source;
	s->next = l->sources;
	l->sources = s;
	return 0;
}

int loop_add_fd(struct loop *l, int fd, loop_fn fn, void *context)
{
	return add(l, (struct source){ .kind = SOURCE_FD, .fd = fd, .fn = fn, .context = context });
}

int loop_add_owned_fd(struct loop *l, int fd, loop_fn fn, void *context)
{
	return add(l, (struct source){ .kind = SOURCE_FD, .fd = fd, .owned = true, .fn = fn,
				       .context = context });
}

void loop_remove(struct loop *l, int fd)
{
	for (struct source *s = l->sources; s; s = s->next) {
		if (s->fd == fd)
			source_drop(l, s);
	}
}

static struct timespec to_timespec(nsec_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NSEC_PER_SEC),
				  .tv_nsec = (long)(ns % NSEC_PER_SEC) };
}

int loop_add_timer(struct loop *l, nsec_t first_ns, nsec_t interval_ns, loop_fn fn, void *context)
{
	struct itimerspec spec = { .it_value = to_timespec(first_ns ? first_ns : 1),
				   .it_interval = to_timespec(interval_ns) };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (timerfd_settime(fd, 0, &spec, NULL) < 0) {
		int err = -errno;

		close(fd);
		return err;
	}
	return add(l, (struct source){ .kind = SOURCE_TIMER, .fd = fd, .owned = true, .fn = fn,
				       .context = context });
}

int loop_add_signals(struct loop *l, const int *signals, loop_signal_fn fn, void *context)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	while (*signals)
		sigaddset(&set, *signals++);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	return add(l, (struct source){ .kind = SOURCE_SIGNALS, .fd = fd, .owned = true,
				       .signal_fn = fn, .context = context });
}

static void dispatch(struct source *s)
{
	struct signalfd_siginfo info;
	uint64_t ticks;

	if (s->fd < 0)
		return;
	switch (s->kind) {
	case SOURCE_FD:
		s->fn(s->context);
		return;
	case SOURCE_TIMER:
		if (read(s->fd, &ticks, sizeof(ticks)) == sizeof(ticks))
			s->fn(s->context);
		return;
	case SOURCE_SIGNALS:
		while (s->fd >= 0 && read(s->fd, &info, sizeof(info)) == sizeof(info))
			s->signal_fn(s->context, (int)info.ssi_signo);
		return;
	}
}

int loop_run(struct loop *l)
{
	struct epoll_event events[MAX_EVENTS];

	while (!l->stopped) {
		int n = epoll_wait(l->epoll_fd, events, MAX_EVENTS, -1);

		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n && !l->stopped; i++)
			dispatch(events[i].data.ptr);
	}
	return l->err;
}

void loop_stop(struct loop *l, int err)
{
	l->stopped = true;
	if (!l->err)
		l->err = err;
}
