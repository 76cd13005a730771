/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The series of the scheduler accounting. A state that a group was never in has no line, and the
 * histograms show every second power of two: 64 groups of all kinds are about 3,000 lines.
 */
#include <stdio.h>

#include "agent/daemon_sched_private.h"
#include "agent/metrics.h"
#include "agent/sched/sched_writer.h"

enum { OWNER_LABELS = 3, MAX_LABELS = OWNER_LABELS + 2, NAME_BYTES = 64 };

static double seconds(int64_t ns)
{
	return (double)ns / (double)NSEC_PER_SEC;
}

/* A label without text is as good as none. */
static size_t put_label(struct metric_label *labels, size_t count, const char *name,
			const char *text)
{
	if (text[0])
		labels[count++] = (struct metric_label){ name, text };
	return count;
}

/* Labels of a group behind `count` others: how many there are now. */
static size_t put_owner(const struct sched_owner *owner, struct metric_label *labels, size_t count)
{
	count = put_label(labels, count, "container", owner->container);
	count = put_label(labels, count, "pod_uid", owner->pod);
	return put_label(labels, count, "systemd_unit", owner->unit);
}

static void put_state(struct buf *out, const struct sched_owner *owner, const char *state,
		      const char *reason, int64_t ns)
{
	struct metric_label labels[MAX_LABELS] = { { "state", state } };
	size_t count = put_owner(owner, labels, put_label(labels, 1, "reason", reason));

	if (ns > 0)
		metric_labelled(out, "sonde_sched_seconds_total", labels, count, seconds(ns));
}

static void write_states(const struct daemon_sched *s, struct buf *out)
{
	const struct sched_owner *owner;
	const struct sched_group *g;
	size_t cursor = 0;

	metric_family(out, "sonde_sched_seconds_total", METRIC_COUNTER,
		      "Time of threads by what they did; over all states it is their lifetimes.");
	while (sched_groups_next(s->groups, &cursor, &owner, &g)) {
		for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++) {
			int64_t ns = g->totals.ns[i];

			if (i == SONDE_SCHED_RUNNING)
				ns -= g->stolen_ns;
			put_state(out, owner, sched_state_names[i], sched_reason_names[i], ns);
		}
		put_state(out, owner, sched_state_names[SONDE_SCHED_RUNNING], SCHED_FRAME_STOLEN,
			  g->stolen_ns);
		put_state(out, owner, SCHED_FRAME_OFF_CPU, "", g->off_ns);
	}
}

/* Families with a sample for each group. */
struct family {
	const char *name, *help;
	double (*value)(const struct sched_group *g);
	struct metric_label label; /* beside those of the group; name NULL: none */
	bool goes_on;              /* the family begun before */
};

static uint64_t entries(const struct sched_group *g, int from, int to)
{
	uint64_t sum = 0;

	for (int i = from; i < to; i++)
		sum += g->totals.entries[i];
	return sum;
}

static double lifetime(const struct sched_group *g)
{
	return seconds((int64_t)g->totals.elapsed_ns);
}

static double voluntary(const struct sched_group *g)
{
	return (double)entries(g, SONDE_SCHED_FIRST_BLOCKED, SONDE_SCHED_STATE_COUNT);
}

static double involuntary(const struct sched_group *g)
{
	return (double)entries(g, SONDE_SCHED_PREEMPTED, SONDE_SCHED_THROTTLED + 1);
}

static double wakeups(const struct sched_group *g)
{
	return (double)g->totals.entries[SONDE_SCHED_WOKEN];
}

static double migrations(const struct sched_group *g)
{
	return (double)g->totals.migrations;
}

static const struct family families[] = {
	{ "sonde_sched_lifetime_seconds_total",
	  "Lifetimes of threads, by the clock alone.",
	  lifetime,
	  { NULL, NULL },
	  false },
	{ "sonde_sched_switches_total",
	  "Times that a thread left the CPU: to wait, or for another thread.",
	  voluntary,
	  { "kind", "voluntary" },
	  false },
	{ "sonde_sched_switches_total", "", involuntary, { "kind", "involuntary" }, true },
	{ "sonde_sched_wakeups_total",
	  "Times that a blocked thread was woken.",
	  wakeups,
	  { NULL, NULL },
	  false },
	{ "sonde_sched_migrations_total",
	  "Times that a thread changed its CPU.",
	  migrations,
	  { NULL, NULL },
	  false },
};

static void write_family(const struct daemon_sched *s, struct buf *out, const struct family *f)
{
	const struct sched_owner *owner;
	const struct sched_group *g;
	size_t cursor = 0;

	if (!f->goes_on)
		metric_family(out, f->name, METRIC_COUNTER, f->help);
	while (sched_groups_next(s->groups, &cursor, &owner, &g)) {
		struct metric_label labels[MAX_LABELS] = { f->label };
		size_t count = put_owner(owner, labels, f->label.name ? 1 : 0);

		metric_labelled(out, f->name, labels, count, f->value(g));
	}
}

/* ---- histograms ---- */

struct histogram {
	const char *name, *help;
	const uint64_t *(*buckets)(const struct sched_group *g);
	int64_t (*sum_ns)(const struct sched_group *g);
};

static const uint64_t *delay_buckets(const struct sched_group *g)
{
	return g->totals.delay;
}

static int64_t delay_sum(const struct sched_group *g)
{
	return g->totals.delay_ns;
}

static const uint64_t *off_buckets(const struct sched_group *g)
{
	return g->totals.off;
}

static int64_t off_sum(const struct sched_group *g)
{
	return g->totals.off_ns;
}

static const struct histogram histograms[] = {
	{ "sonde_sched_delay_seconds", "Waits of threads for a CPU that are over.", delay_buckets,
	  delay_sum },
	{ "sonde_sched_off_cpu_seconds", "Times from leaving a CPU to the return, that are over.",
	  off_buckets, off_sum },
};

/* Bounds of every second bucket: 1.024 us, four times that ..., and the last, which has none. */
static void put_buckets(struct buf *out, const char *name, const struct sched_owner *owner,
			const uint64_t *buckets)
{
	uint64_t below = 0;

	for (int i = 0; i < SONDE_SCHED_BUCKETS; i++) {
		bool last = i == SONDE_SCHED_BUCKETS - 1;
		char bound[32];
		struct metric_label labels[MAX_LABELS] = { { "le", bound } };
		size_t count = put_owner(owner, labels, 1);

		below += buckets[i];
		if (!last && i % 2 != 0)
			continue;
		if (last)
			snprintf(bound, sizeof(bound), "+Inf");
		else
			snprintf(bound, sizeof(bound), "%.9g",
				 seconds((int64_t)sched_bucket_start(i + 1)));
		metric_labelled(out, name, labels, count, (double)below);
	}
}

static void write_histogram(const struct daemon_sched *s, struct buf *out,
			    const struct histogram *h)
{
	const struct sched_owner *owner;
	const struct sched_group *g;
	size_t cursor = 0;

	metric_family(out, h->name, METRIC_HISTOGRAM, h->help);
	while (sched_groups_next(s->groups, &cursor, &owner, &g)) {
		struct metric_label labels[OWNER_LABELS];
		size_t count = put_owner(owner, labels, 0);
		const uint64_t *buckets = h->buckets(g);
		char name[NAME_BYTES];
		uint64_t n = 0;

		for (int i = 0; i < SONDE_SCHED_BUCKETS; i++)
			n += buckets[i];
		snprintf(name, sizeof(name), "%s_bucket", h->name);
		put_buckets(out, name, owner, buckets);
		snprintf(name, sizeof(name), "%s_sum", h->name);
		metric_labelled(out, name, labels, count, seconds(h->sum_ns(g)));
		snprintf(name, sizeof(name), "%s_count", h->name);
		metric_labelled(out, name, labels, count, (double)n);
	}
}

/* ---- the accounting itself ---- */

static void write_state_of(const struct daemon_sched *s, struct buf *out)
{
	static const char losses[] = "sonde_sched_losses_total";

	metric_single(out, "sonde_sched_on", METRIC_GAUGE,
		      "1 while threads are accounted for; 0: switched off, see the governor.",
		      s->on);
	metric_single(out, "sonde_sched_starts_total", METRIC_COUNTER,
		      "Times that the accounting began.", (double)s->starts);
	metric_family(out, "sonde_sched_threads", METRIC_GAUGE,
		      "Living threads: those with books of their own, and those without room.");
	metric_sample(out, "sonde_sched_threads", "books", "own", (double)s->threads);
	metric_sample(out, "sonde_sched_threads", "books", "overflow", (double)s->untracked);
	metric_single(out, "sonde_sched_max_threads", METRIC_GAUGE,
		      "Threads at a time for which there is room.", (double)s->max_threads);
	metric_single(out, "sonde_sched_runs_total", METRIC_COUNTER,
		      "Runs of the programs at switches and wake-ups.", (double)s->runs);
	metric_family(out, losses, METRIC_COUNTER,
		      "What did not go as it should; see bpf/sched_abi.h for each kind.");
	for (int i = 0; i < SONDE_SCHED_COUNTER_COUNT; i++)
		metric_sample(out, losses, "kind", sched_counter_names[i], (double)s->counters[i]);
	metric_sample(out, losses, "kind", "torn", (double)s->torn);
	metric_sample(out, losses, "kind", "read_errors", (double)s->read_errors);
	metric_sample(out, losses, "kind", "lost", (double)sched_books_lost(s->books));
	metric_sample(out, losses, "kind", "collections", (double)s->failures);
	metric_sample(out, losses, "kind", "cgroups_refused",
		      (double)sched_books_cgroups_refused(s->books));
	metric_sample(out, losses, "kind", "groups_folded", (double)sched_groups_folded(s->groups));
}

void daemon_sched_metrics(const struct daemon_sched *s, struct buf *out)
{
	if (!s)
		return;
	write_state_of(s, out);
	write_states(s, out);
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		write_family(s, out, &families[i]);
	for (size_t i = 0; i < sizeof(histograms) / sizeof(histograms[0]); i++)
		write_histogram(s, out, &histograms[i]);
}
