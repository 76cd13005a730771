/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles out of what was collected, with their books; the warm-up. See agent.h. */
#include <errno.h>
#include <poll.h>
#include <sys/utsname.h>

#include "agent/agent_private.h"
#include "agent/books.h"
#include "agent/version.h"

enum { WARM_UP_QUIET_MS = 100 };

/* For what is met; and as long as tables of files that were met are being read. */
static const nsec_t WARM_UP_MOST = NSEC_PER_SEC / 2, WARM_UP_TABLES = 5 * NSEC_PER_SEC;

/*
 * A profile that others follow waits this long for files that its last samples need: names of JIT
 * code are read once the samples are there, which takes milliseconds.
 */
static const nsec_t MORE_WAIT = NSEC_PER_SEC / 10;

/* Why a profile is taken. */
enum take { TAKE_MORE, TAKE_LAST, TAKE_UNWANTED };

/* An empty profile whose types say what will be counted. */
int agent_prepare_profile(struct agent *a)
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
	if (a->off) {
		err = agent_off_prepare(&a->options.off, p, a->resolver);
		if (!err)
			resolver_begin(a->resolver, p);
		return err;
	}
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

void agent_start_clock(struct agent *a, nsec_t since)
{
	nsec_t ago = clock_monotonic() - since;

	a->profile->time_ns = (int64_t)(clock_realtime() - ago);
	a->started = since;
}

static int add_comments(struct agent *a, const struct agent_totals *t)
{
	struct profile *p = a->profile;
	struct utsname host;
	uint64_t text;
	int err;

	uname(&host);
	err = profile_add_comment(p, "sonde: %s", SONDE_VERSION);
	if (!err)
		err = profile_add_comment(p, "host: %s", host.nodename);
	if (!err)
		err = profile_add_comment(p, "kernel: %s %s", host.release, host.machine);
	if (!err && (!a->off || a->options.off.wall))
		err = profile_add_comment(p, "event: %s at %u Hz on %zu CPUs",
					  collect_is_hardware(a->collect) ? "cycles" : "cpu-clock",
					  collect_frequency(a->collect),
					  collect_cpu_count(a->collect));
	if (!err && !collect_has_user_stacks(a->collect))
		err = profile_add_comment(p, "user stacks: off, reading user memory may hang this "
					     "kernel");
	/* Where it lies in this boot, so that its addresses can be named later. */
	if (!err && a->options.no_symbols && sym_kernel_text("/proc/kallsyms", &text) == 0)
		err = profile_add_comment(p, AGENT_KERNEL_TEXT "%llx", (unsigned long long)text);
	if (!err && a->off)
		err = agent_off_comment(&a->options.off, p, &t->off);
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
	nsec_t flipped = collect_flipped(a->collect);

	return a->end && a->end < flipped ? a->end : flipped;
}

/*
 * For files that samples need, `most` ns. What the ring buffer brings is taken in meanwhile, and counts
 * keep in the kernel.
 */
static void wait_for_files(struct agent *a, nsec_t most)
{
	nsec_t end = clock_monotonic() + most, now;

	while (resolver_is_waiting(a->resolver) && (now = clock_monotonic()) < end) {
		struct pollfd fd = { .fd = a->fd, .events = POLLIN };

		if (poll(&fd, 1, (int)((end - now) / NSEC_PER_MS) + 1) < 0 && errno != EINTR)
			break;
		agent_poll(a);
	}
}

static int take(struct agent *a, enum take why, struct profile **ret_profile)
{
	struct agent_totals now, t;
	struct profile *p = a->profile;
	int err, drain_error;

	if (why == TAKE_LAST)
		collect_stop(a->collect);
	drain_error = agent_drain(a);
	p->duration_ns = (int64_t)(end_of_profile(a) - a->started);
	if (why == TAKE_MORE)
		wait_for_files(a, MORE_WAIT);
	/* Nothing is sampled any more, so there is time: what is still missing then has a reason. */
	if (why == TAKE_LAST) {
		wait_for_files(a, a->options.last_wait_ns);
		resolver_stop_waiting(a->resolver);
	}
	if (why == TAKE_UNWANTED)
		resolver_discard_waiting(a->resolver);
	agent_totals(a, &now);
	t = books_since(&now, &a->taken);
	add_lost_weight(a, &t);
	resolver_end(a->resolver);
	if (!a->off || a->options.off.wall)
		p->period = mean_period(a, &t);
	err = add_comments(a, &t);
	a->profile = NULL;
	a->taken = now;
	if (!err)
		err = agent_prepare_profile(a);
	if (err) {
		profile_free(p);
		return err;
	}
	agent_start_clock(a, collect_flipped(a->collect));
	*ret_profile = p;
	return drain_error;
}

int agent_take(struct agent *a, bool last, struct profile **ret_profile)
{
	return take(a, last ? TAKE_LAST : TAKE_MORE, ret_profile);
}

int agent_warm_up(struct agent *a)
{
	nsec_t start = clock_monotonic(), spent;
	struct profile *unwanted;
	uint64_t files = 0, before;
	int err = 0;

	if (a->off)
		agent_off_warm(a->off, true);
	while (!err && (spent = clock_monotonic() - start) < WARM_UP_TABLES) {
		struct pollfd ring = { .fd = agent_fd(a), .events = POLLIN };
		struct resolver_totals totals;
		int n = poll(&ring, 1, WARM_UP_QUIET_MS);

		if (n < 0 && errno != EINTR)
			return -errno;
		err = agent_poll(a);
		resolver_totals(a->resolver, &totals);
		before = files;
		files = totals.files_known;
		if (!resolver_tables_due(a->resolver) &&
		    (spent >= WARM_UP_MOST || (n == 0 && files == before)))
			break;
	}
	if (a->off)
		agent_off_warm(a->off, false);
	if (!err)
		err = take(a, TAKE_UNWANTED, &unwanted);
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
