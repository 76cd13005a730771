/* SPDX-License-Identifier: Apache-2.0 */
/* Collect and resolve, joined; see agent.h. */
#include "agent/agent_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/books.h"

static void on_event(void *context, const struct event *event)
{
	struct agent *a = context;

	resolver_event(a->resolver, event);
	if (a->off && event->type == SONDE_RECORD_PROCESS)
		agent_off_process(a->off, event);
	/* A file that cannot be opened has its answer at once. */
	if (event->type == SONDE_RECORD_FILE)
		tables_feed(&a->tables, a->collect, a->resolver);
}

static void on_count(void *context, const struct sonde_count_key *key,
		     const struct sonde_count *count)
{
	struct agent *a = context;

	if (!a->off || !agent_off_on_cpu(a->off, key, count))
		resolver_count(a->resolver, key, count);
}

static void on_overflow(void *context, const struct sonde_overflow_key *key,
			const struct sonde_count *count)
{
	struct agent *a = context;

	resolver_overflow(a->resolver, key, count);
}

/* What collecting and resolving have to say, on one descriptor. */
static int join_fds(struct agent *a)
{
	const int fds[] = { collect_fd(a->collect), resolver_fd(a->resolver) };

	a->fd = epoll_create1(EPOLL_CLOEXEC);
	if (a->fd < 0)
		return -errno;
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		struct epoll_event event = { .events = EPOLLIN };

		if (epoll_ctl(a->fd, EPOLL_CTL_ADD, fds[i], &event) < 0)
			return -errno;
	}
	return 0;
}

static int open_parts(struct agent *a, char *reason, size_t reason_size)
{
	const struct agent_options *options = &a->options;
	struct collect_handler handler = { on_event, on_count, on_overflow, a };
	struct resolver_options resolve = {
		.proc_root = "/proc",
		.debug_dir = options->debug_dir,
		.symfs = options->symfs,
		.symbol_bytes = options->symbol_bytes,
		.no_demangle = options->no_demangle,
		.filter = options->filter,
		.no_symbols = options->no_symbols,
	};
	int err = collect_open(&options->collect, &handler, &a->collect, reason, reason_size);

	if (err)
		return err;
	if (options->off.enabled)
		err = agent_off_open(&options->off, a->collect, &a->off, reason, reason_size);
	if (err)
		return err;
	/* After the programs are loaded, so that kallsyms knows them. */
	err = resolver_new(&resolve, &a->resolver);
	if (!err)
		err = join_fds(a);
	if (!err)
		err = agent_prepare_profile(a);
	if (err)
		snprintf(reason, reason_size, "%s", strerror(-err));
	else
		tables_add_vdso(a->collect);
	return err;
}

int agent_open(const struct agent_options *options, struct agent **ret_agent, char *reason,
	       size_t reason_size)
{
	struct agent *a = calloc(1, sizeof(*a));
	int err;

	if (!a) {
		snprintf(reason, reason_size, "out of memory");
		return -ENOMEM;
	}
	a->options = *options;
	a->fd = -1;
	err = open_parts(a, reason, reason_size);
	if (err) {
		agent_close(a);
		return err;
	}
	*ret_agent = a;
	return 0;
}

void agent_close(struct agent *a)
{
	if (!a)
		return;
	tables_fini(&a->tables);
	if (a->fd >= 0)
		close(a->fd);
	agent_off_close(a->off); /* before what it shares with the collect */
	collect_close(a->collect);
	resolver_free(a->resolver);
	profile_free(a->profile);
	free(a);
}

int agent_add_target(struct agent *a, pid_t pid)
{
	return collect_add_target(a->collect, pid);
}

int agent_start(struct agent *a)
{
	int err = resolver_start(a->resolver);

	if (err)
		return err;
	agent_start_clock(a, clock_monotonic());
	return a->off && !a->options.off.wall ? 0 : collect_start(a->collect);
}

int agent_call_in_reader(struct agent *a, int (*fn)(void))
{
	return resolver_call_in_reader(a->resolver, fn);
}

void agent_set_end(struct agent *a, nsec_t end)
{
	a->end = end;
	collect_set_end(a->collect, end);
}

int agent_fd(const struct agent *a)
{
	return a->fd;
}

/* Passes on what shall be sent again, and what not at all: the one way back, by value only. */
static void forward_forgotten(struct agent *a)
{
	static const enum collect_thing things[] = {
		[RESOLVER_STACK] = COLLECT_STACK,
		[RESOLVER_FACT] = COLLECT_FACT,
		[RESOLVER_FILE] = COLLECT_FILE,
	};
	enum resolver_thing thing;
	uint64_t id;

	while (resolver_next_forgotten(a->resolver, &thing, &id)) {
		collect_forget(a->collect, things[thing], id);
		if (a->off)
			agent_off_forget(a->off, things[thing], id);
	}
	while (resolver_next_refused(a->resolver, &id))
		collect_refuse_cgroup(a->collect, id);
}

/* Tables at once: until a file's table is loaded, stacks that meet the file are cut. */
static void take_in_files(struct agent *a)
{
	resolver_poll(a->resolver);
	tables_feed(&a->tables, a->collect, a->resolver);
}

int agent_poll(struct agent *a)
{
	int err = collect_poll(a->collect);

	take_in_files(a);
	return err;
}

int agent_drain(struct agent *a)
{
	int err;

	take_in_files(a); /* before the counts that have use for their symbols */
	resolver_drain(a->resolver);
	err = collect_drain(a->collect);
	if (!err && a->off)
		err = agent_off_drain(a->off, a->resolver);
	tables_tick(&a->tables, a->collect, a->resolver);
	resolver_tick(a->resolver);
	forward_forgotten(a);
	return err;
}

void agent_totals(struct agent *a, struct agent_totals *ret_totals)
{
	struct agent_totals t;

	collect_totals(a->collect, &t.collect);
	resolver_totals(a->resolver, &t.resolve);
	agent_off_totals(a->off, &t.off);
	books_move_filtered(&t);
	*ret_totals = books_since(&t, &a->warm_up);
}

void agent_set_frequency(struct agent *a, uint32_t hz)
{
	collect_set_frequency(a->collect, hz);
}

void agent_set_reading(struct agent *a, bool read_files)
{
	resolver_set_reading(a->resolver, read_files);
}

void agent_drop_symbols(struct agent *a)
{
	resolver_drop_symbols(a->resolver);
	forward_forgotten(a);
}

uint64_t agent_map_bytes(const struct agent *a)
{
	return collect_map_bytes(a->collect) + (a->off ? agent_off_map_bytes(a->off) : 0);
}

int agent_comment(struct agent *a, const char *text)
{
	return profile_add_comment(a->profile, "%s", text);
}

bool agent_is_hardware(const struct agent *a)
{
	return collect_is_hardware(a->collect);
}

bool agent_has_user_stacks(const struct agent *a)
{
	return collect_has_user_stacks(a->collect);
}

uint32_t agent_frequency(const struct agent *a)
{
	return collect_frequency(a->collect);
}

size_t agent_cpu_count(const struct agent *a)
{
	return collect_cpu_count(a->collect);
}
