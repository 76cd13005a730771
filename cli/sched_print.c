/* SPDX-License-Identifier: Apache-2.0 */
/* The tables and histograms of `sonde sched`; see sched.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/sched.h"

enum { NAME_WIDTH = 24, BAR_WIDTH = 40, MAX_WAITS = 4 };

/* Three to four digits and a unit, as people compare them. */
static const char *duration(char *to, size_t size, int64_t ns)
{
	static const struct {
		double ns;
		const char *unit;
	} units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 1, "ns" } };

	if (ns <= 0)
		return "-";
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		double value = (double)ns / units[i].ns;

		if (value < 1 && units[i].ns > 1)
			continue;
		snprintf(to, size, "%.*f %s", value < 10 ? 2 : value < 100 ? 1 : 0, value,
			 units[i].unit);
		return to;
	}
	return "-";
}

static void put_duration(struct buf *out, int width, int64_t ns)
{
	char text[32];

	buf_printf(out, " %*s", width, duration(text, sizeof(text), ns));
}

struct wait {
	int state;
	int64_t ns;
};

static int by_ns(const void *a, const void *b)
{
	const struct wait *x = a, *y = b;

	return x->ns < y->ns ? 1 : x->ns > y->ns ? -1 : 0;
}

/* What it was blocked for, the longest first. */
static void put_waits(struct buf *out, const struct sched_group *g)
{
	struct wait waits[SONDE_SCHED_STATE_COUNT];
	size_t n = 0;
	char text[32];

	if (g->off_ns)
		buf_printf(out, "  off CPU %s", duration(text, sizeof(text), (int64_t)g->off_ns));
	for (int i = SONDE_SCHED_FIRST_BLOCKED; i < SONDE_SCHED_STATE_COUNT; i++) {
		if (g->totals.ns[i] > 0)
			waits[n++] = (struct wait){ i, g->totals.ns[i] };
	}
	qsort(waits, n, sizeof(waits[0]), by_ns);
	for (size_t i = 0; i < n && i < MAX_WAITS; i++)
		buf_printf(out, "%s%s %s", i ? ", " : "  ", sched_reason_names[waits[i].state],
			   duration(text, sizeof(text), waits[i].ns));
}

static void put_name(const struct sched_table *t, const struct sched_view *view, struct buf *out,
		     const struct sched_group *g)
{
	const struct profile *p = t->p;
	const char *name = profile_text(p, g->key.thread ? g->key.thread : g->key.comm);
	char text[64];

	if (strcmp(view->by, "cgroup") == 0) {
		buf_printf(out, "%-*s", 2 * NAME_WIDTH, profile_text(p, g->key.cgroup));
		return;
	}
	if (strcmp(view->by, "all") == 0)
		name = "[all]";
	if (g->key.pid || g->key.tid)
		snprintf(text, sizeof(text), "%.40s:%lld", name,
			 (long long)(g->key.tid ? g->key.tid : g->key.pid));
	else
		snprintf(text, sizeof(text), "%.60s", name);
	buf_printf(out, "%-*s", NAME_WIDTH, text);
}

static void put_numbers(struct buf *out, const struct sched_group *g)
{
	const struct sched_totals *t = &g->totals;
	uint64_t delays = sched_delay_count(g);

	buf_printf(out, " %7" PRIu64, t->threads);
	put_duration(out, 8, t->exec_ns);
	put_duration(out, 8, sched_stolen_ns(t));
	put_duration(out, 8, sched_runnable_ns(g));
	put_duration(out, 9, t->ns[SONDE_SCHED_THROTTLED]);
	put_duration(out, 8, sched_blocked_ns(g));
	buf_printf(out, " %9" PRIu64 " %9" PRIu64 " %7" PRIu64, sched_voluntary(g),
		   sched_involuntary(g), t->migrations);
	put_duration(out, 8, delays ? t->delay_ns / (int64_t)delays : 0);
	put_duration(out, 8, (int64_t)sched_quantile(t->delay, 0.99, t->max_delay_ns));
	put_duration(out, 8, (int64_t)t->max_delay_ns);
}

static void put_bucket(struct buf *out, int bucket, uint64_t n, uint64_t most)
{
	static const char bar[] = "########################################";
	char from[32], to[32];

	_Static_assert(sizeof(bar) == BAR_WIDTH + 1, "bar");
	duration(from, sizeof(from), (int64_t)sched_bucket_start(bucket));
	buf_printf(out, "  %9s .. %-9s %10" PRIu64 " |%-*.*s|\n",
		   bucket ? from : "0",
		   bucket + 1 < SONDE_SCHED_BUCKETS
			   ? duration(to, sizeof(to), (int64_t)sched_bucket_start(bucket + 1))
			   : "",
		   n, BAR_WIDTH, (int)((double)n * BAR_WIDTH / (double)most + 0.5), bar);
}

static void put_histogram(struct buf *out, const char *title, const uint64_t *buckets)
{
	int first = SONDE_SCHED_BUCKETS, last = -1;
	uint64_t most = 0;

	for (int i = 0; i < SONDE_SCHED_BUCKETS; i++) {
		if (!buckets[i])
			continue;
		first = first < i ? first : i;
		last = i;
		most = most > buckets[i] ? most : buckets[i];
	}
	if (last < 0)
		return;
	buf_printf(out, "  %s\n", title);
	for (int i = first; i <= last; i++)
		put_bucket(out, i, buckets[i], most);
}

static void put_row(const struct sched_table *t, const struct sched_view *view, struct buf *out,
		    const struct sched_group *g)
{
	put_name(t, view, out, g);
	put_numbers(out, g);
	put_waits(out, g);
	buf_put_byte(out, '\n');
	if (!view->histogram)
		return;
	if (strcmp(view->histogram, "off") == 0)
		put_histogram(out, "off the CPU for", g->totals.off);
	else
		put_histogram(out, "waited for a CPU for", g->totals.delay);
}

/* Whether every nanosecond is accounted for. */
static void put_closing(const struct sched_table *t, struct buf *out)
{
	const struct sched_totals *all = &t->all.totals;
	int64_t sum = (int64_t)t->all.off_ns;

	for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++)
		sum += all->ns[i];
	if (all->elapsed_ns)
		buf_printf(out, "# accounted: %.3f s of %.3f s that threads lived (%.2f %%)\n",
			   (double)sum / 1e9, (double)all->elapsed_ns / 1e9,
			   100 * (double)sum / (double)all->elapsed_ns);
}

/* What the counters of the file tell of losses: those that are not 0. */
static void put_losses(const struct profile *p, struct buf *out)
{
	static const char prefix[] = "sonde.sched.";

	for (size_t i = 0; i < p->comment_count; i++) {
		const char *text = profile_text(p, p->comments[i]);
		const char *value = strchr(text, '=');

		if (strncmp(text, prefix, sizeof(prefix) - 1) == 0 && value &&
		    strcmp(value, "=0") != 0)
			buf_printf(out, "# %s\n", text + sizeof(prefix) - 1);
	}
}

void sched_table_print(const struct sched_table *t, const struct sched_view *view, struct buf *out)
{
	size_t rows = view->rows && view->rows < t->count ? view->rows : t->count;
	bool wide = strcmp(view->by, "cgroup") == 0;

	buf_printf(out, "# %.3f s\n", (double)t->p->duration_ns / 1e9);
	buf_printf(out, "%-*s %7s %8s %8s %8s %9s %8s %9s %9s %7s %8s %8s %8s  %s\n",
		   wide ? 2 * NAME_WIDTH : NAME_WIDTH, view->by, "threads", "run", "stolen",
		   "runnable", "throttled", "blocked", "voluntary", "preempted", "moves",
		   "avg wait", "p99", "max", "blocked on");
	for (size_t i = 0; i < rows; i++)
		put_row(t, view, out, &t->groups[i]);
	if (rows < t->count)
		buf_printf(out, "# %zu more rows (--rows)\n", t->count - rows);
	if (t->kernel.totals.threads) {
		buf_put_str(out, "# kernel threads (--kernel): ");
		buf_printf(out, "%" PRIu64 ", on a CPU", t->kernel.totals.threads);
		put_duration(out, 0, t->kernel.totals.exec_ns);
		buf_put_byte(out, '\n');
	}
	put_closing(t, out);
	put_losses(t->p, out);
}
