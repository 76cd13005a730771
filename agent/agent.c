/* SPDX-License-Identifier: Apache-2.0 */
/* Collect and resolve, joined; see agent.h. */
#include "agent/agent.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "agent/version.h"
#include "base/clock.h"

struct agent {
	struct agent_options options;
	struct collect *collect;
	struct resolver *resolver;
	struct profile *profile;
	nsec_t started; /* monotonic */
};

static const struct {
	const char *name, *text;
} counters[] = {
#define X(id, name, text) [SONDE_COUNT_##id] = { name, text },
	SONDE_COUNTERS(X)
#undef X
};

const char *counter_name(enum sonde_counter counter)
{
	return counters[counter].name;
}

const char *counter_text(enum sonde_counter counter)
{
	return counters[counter].text;
}

static void on_event(void *context, const struct event *event)
{
	struct agent *a = context;

	resolver_event(a->resolver, event);
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
	a->profile->time_ns = (int64_t)clock_realtime();
	a->started = clock_monotonic();
	return collect_start(a->collect);
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

	resolver_tick(a->resolver);
	forward_forgotten(a);
	return err;
}

void agent_totals(struct agent *a, struct agent_totals *ret_totals)
{
	struct agent_totals t = { 0 };
	uint64_t received;

	collect_totals(a->collect, &t.collect);
	resolver_totals(a->resolver, &t.resolve);
	received = t.collect.counters[SONDE_COUNT_RECEIVED];
	if (t.collect.expected_samples > received)
		t.missed = t.collect.expected_samples - received;
	*ret_totals = t;
}

static int comment(struct profile *p, const char *name, uint64_t value)
{
	return profile_add_comment(p, "sonde.%s=%" PRIu64, name, value);
}

static int add_books(struct agent *a, const struct agent_totals *t)
{
	struct profile *p = a->profile;
	int err = comment(p, "expected", t->collect.expected_samples);

	if (!err)
		err = comment(p, "missed", t->missed);
	for (int i = 0; !err && i < SONDE_COUNTER_COUNT; i++)
		err = comment(p, counters[i].name, t->collect.counters[i]);
	if (!err)
		err = comment(p, "lost_stacks", t->resolve.lost_stacks);
	if (!err)
		err = comment(p, "unknown_processes", t->resolve.unknown_processes);
	if (!err)
		err = comment(p, "lost_no_memory", t->resolve.no_memory);
	if (!err)
		err = comment(p, "bad_records", t->collect.bad_records);
	if (!err)
		err = comment(p, "drain_errors", t->collect.drain_errors);
	for (int i = 0; !err && i < SYM_REASON_COUNT; i++) {
		if (t->resolve.frames[i])
			err = profile_add_comment(p, "sonde.frames[%s]=%" PRIu64,
						  sym_reason_text(i), t->resolve.frames[i]);
	}
	return err;
}

static int add_comments(struct agent *a, const struct agent_totals *t)
{
	struct profile *p = a->profile;
	struct utsname host;
	int err;

	uname(&host);
	err = profile_add_comment(p, "sonde %s", SONDE_VERSION);
	if (!err)
		err = profile_add_comment(p, "host=%s", host.nodename);
	if (!err)
		err = profile_add_comment(p, "kernel=%s %s", host.release, host.machine);
	if (!err)
		err = profile_add_comment(p, "sonde.event=%s",
					  collect_is_hardware(a->collect) ? "cycles" : "cpu-clock");
	if (!err)
		err = comment(p, "frequency_hz", collect_frequency(a->collect));
	if (!err)
		err = comment(p, "cpus", collect_cpu_count(a->collect));
	if (!err && !collect_has_user_stacks(a->collect))
		err = profile_add_comment(p, "sonde.user_stacks=off: reading user memory may hang "
					     "this kernel");
	return err ? err : add_books(a, t);
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

int agent_finish(struct agent *a, struct profile **ret_profile)
{
	struct profile *p = a->profile;
	struct agent_totals totals;
	int err, drain_error;

	collect_stop(a->collect);
	p->duration_ns = (int64_t)(clock_monotonic() - a->started);
	drain_error = agent_drain(a);
	agent_totals(a, &totals);
	add_lost_weight(a, &totals);
	resolver_end(a->resolver);
	p->period = totals.collect.period ? (int64_t)totals.collect.period : 1;
	err = add_comments(a, &totals);
	if (err)
		return err;
	a->profile = NULL;
	*ret_profile = p;
	return drain_error;
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
