/* SPDX-License-Identifier: Apache-2.0 */
/* Collect and resolve, joined; see agent.h. */
#include "agent/agent.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "agent/books.h"
#include "agent/tables.h"
#include "agent/version.h"
#include "base/clock.h"

enum { WARM_UP_QUIET_MS = 100 };

static const nsec_t WARM_UP_MOST = NSEC_PER_SEC / 2;

struct agent {
	struct agent_options options;
	struct collect *collect;
	struct resolver *resolver;
	struct table_feeder tables;
	struct profile *profile; /* in the making */
	nsec_t started;          /* of that profile, monotonic */
	nsec_t end;              /* that it shall not go beyond; 0: none */
	struct agent_totals warm_up; /* the books of the samples thrown away at the start */
	struct agent_totals taken;   /* the books when the last profile was taken */
};

static void on_event(void *context, const struct event *event)
{
	struct agent *a = context;

	resolver_event(a->resolver, event);
	/* At once: until a file's table is loaded, stacks that meet the file are cut. */
	if (event->type == SONDE_RECORD_FILE)
		tables_feed(&a->tables, a->collect, a->resolver);
}

static void on_count(void *context, const struct sonde_count_key *key,
		     const struct sonde_count *count)
{
	struct agent *a = context;

	resolver_count(a->resolver, key, count);
}

static void on_overflow(void *context, const struct sonde_overflow_key *key,
			const struct sonde_count *count)
{
	struct agent *a = context;

	resolver_overflow(a->resolver, key, count);
}

/* An empty profile whose types say what will be counted. */
static int profile_prepare(struct agent *a)
{
	bool hardware = collect_is_hardware(a->collect);
	const char *type = hardware ? "cycles" : "cpu";
	const char *unit = hardware ? "count" : "nanoseconds";
	struct profile *p;
	int64_t strings[2];
	int err = profile_new(a->options.profile_bytes, &p);

	if (err)
		return err;
	a->profile = p;
	strings[0] = profile_string(p, type);
	strings[1] = profile_string(p, unit);
	if (profile_add_type(p, "samples", "count") < 0 || profile_add_type(p, type, unit) < 0 ||
	    strings[0] < 0 || strings[1] < 0)
		return -ENOMEM;
	p->period_type.type = (uint32_t)strings[0];
	p->period_type.unit = (uint32_t)strings[1];
	resolver_begin(a->resolver, p);
	return 0;
}

static int open_parts(struct agent *a, char *reason, size_t reason_size)
{
	const struct agent_options *options = &a->options;
	struct collect_handler handler = { on_event, on_count, on_overflow, a };
	struct resolver_options resolve = {
		.proc_root = "/proc",
		.debug_dir = options->debug_dir,
		.symbol_bytes = options->symbol_bytes,
		.no_demangle = options->no_demangle,
	};
	int err = collect_open(&options->collect, &handler, &a->collect, reason, reason_size);

	if (err)
		return err;
	/* After the programs are loaded, so that kallsyms knows them. */
	err = resolver_new(&resolve, &a->resolver);
	if (!err)
		err = profile_prepare(a);
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
	collect_close(a->collect);
	resolver_free(a->resolver);
	profile_free(a->profile);
	free(a);
}

int agent_add_target(struct agent *a, pid_t pid)
{
	return collect_add_target(a->collect, pid);
}

static void start_clock(struct agent *a)
{
	a->profile->time_ns = (int64_t)clock_realtime();
	a->started = clock_monotonic();
}

int agent_start(struct agent *a)
{
	start_clock(a);
	return collect_start(a->collect);
}

int agent_warm_up(struct agent *a)
{
	nsec_t end = clock_monotonic() + WARM_UP_MOST;
	struct profile *unwanted;
	uint64_t files = 0;
	int err = 0;

	while (!err && clock_monotonic() < end) {
		struct pollfd ring = { .fd = agent_fd(a), .events = POLLIN };
		struct resolver_totals totals;
		int n = poll(&ring, 1, WARM_UP_QUIET_MS);

		if (n < 0 && errno != EINTR)
			return -errno;
		err = agent_poll(a);
		resolver_totals(a->resolver, &totals);
		if (n == 0 && totals.files + totals.files_failed == files)
			break;
		files = totals.files + totals.files_failed;
	}
	if (!err)
		err = agent_take(a, false, &unwanted);
	if (err)
		return err;
	profile_free(unwanted);
	a->warm_up = a->taken;
	/* What was learned stays learned. */
	a->warm_up.resolve.files = a->warm_up.resolve.files_failed = 0;
	a->warm_up.resolve.stacks = a->warm_up.resolve.processes = 0;
	books_clear_gauges(&a->warm_up);
	a->taken = (struct agent_totals){ 0 };
	return 0;
}

void agent_set_end(struct agent *a, nsec_t end)
{
	a->end = end;
	collect_set_end(a->collect, end);
}

int agent_fd(const struct agent *a)
{
	return collect_fd(a->collect);
}

/* Passes on what resolving asks to be sent again: the one way back, by value only. */
static void forward_forgotten(struct agent *a)
{
	static const enum collect_thing things[] = {
		[RESOLVER_STACK] = COLLECT_STACK,
		[RESOLVER_FACT] = COLLECT_FACT,
		[RESOLVER_FILE] = COLLECT_FILE,
	};
	enum resolver_thing thing;
	uint64_t id;

	while (resolver_next_forgotten(a->resolver, &thing, &id))
		collect_forget(a->collect, things[thing], id);
}

int agent_poll(struct agent *a)
{
	return collect_poll(a->collect);
}

int agent_drain(struct agent *a)
{
	int err = collect_drain(a->collect);

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
	*ret_totals = books_since(&t, &a->warm_up);
}

static int add_comments(struct agent *a, const struct agent_totals *t)
{
	struct profile *p = a->profile;
	struct utsname host;
	int err;

	uname(&host);
	err = profile_add_comment(p, "sonde: %s", SONDE_VERSION);
	if (!err)
		err = profile_add_comment(p, "host: %s", host.nodename);
	if (!err)
		err = profile_add_comment(p, "kernel: %s %s", host.release, host.machine);
	if (!err)
		err = profile_add_comment(p, "event: %s at %u Hz on %zu CPUs",
					  collect_is_hardware(a->collect) ? "cycles" : "cpu-clock",
					  collect_frequency(a->collect),
					  collect_cpu_count(a->collect));
	if (!err && !collect_has_user_stacks(a->collect))
		err = profile_add_comment(p, "user stacks: off, reading user memory may hang this "
					     "kernel");
	return err ? err : books_add(p, t);
}

/* A stack's worth of weight without any stack: the overflow of the overflow. */
static void add_lost_weight(struct agent *a, const struct agent_totals *t)
{
	struct sonde_count count = {
		.samples = t->collect.counters[SONDE_COUNT_OVERFLOW_TOTAL],
		.weight = t->collect.overflow_weight,
	};
	struct sonde_overflow_key nobody = { .kind = SONDE_KIND_ON_CPU };

	if (count.samples)
		resolver_overflow(a->resolver, &nobody, &count);
}

/* ns a sample for cpu-clock; the mean for hardware cycles, whose period varies. */
static int64_t mean_period(const struct agent *a, const struct agent_totals *t)
{
	uint64_t received = t->collect.counters[SONDE_COUNT_RECEIVED];

	if (!collect_is_hardware(a->collect))
		return (int64_t)(NSEC_PER_SEC / collect_frequency(a->collect));
	return received && t->collect.received_weight >= received
		       ? (int64_t)(t->collect.received_weight / received)
		       : 1;
}

static nsec_t end_of_profile(const struct agent *a)
{
	nsec_t now = clock_monotonic();

	return a->end && a->end < now ? a->end : now;
}

int agent_take(struct agent *a, bool last, struct profile **ret_profile)
{
	struct agent_totals now, t;
	struct profile *p = a->profile;
	int err, drain_error;

	if (last)
		collect_stop(a->collect);
	drain_error = agent_drain(a);
	p->duration_ns = (int64_t)(end_of_profile(a) - a->started);
	agent_totals(a, &now);
	t = books_since(&now, &a->taken);
	add_lost_weight(a, &t);
	resolver_end(a->resolver);
	p->period = mean_period(a, &t);
	err = add_comments(a, &t);
	a->profile = NULL;
	a->taken = now;
	if (!err)
		err = profile_prepare(a);
	if (err) {
		profile_free(p);
		return err;
	}
	start_clock(a);
	*ret_profile = p;
	return drain_error;
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
	return collect_map_bytes(a->collect);
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
