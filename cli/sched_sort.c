/* SPDX-License-Identifier: Apache-2.0 */
/* What the columns of `sonde sched` show, and sorting by them; see sched.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/sched.h"

int64_t sched_runnable_ns(const struct sched_group *g)
{
	return g->totals.ns[SONDE_SCHED_WOKEN] + g->totals.ns[SONDE_SCHED_PREEMPTED];
}

int64_t sched_blocked_ns(const struct sched_group *g)
{
	int64_t sum = 0;

	for (int i = SONDE_SCHED_FIRST_BLOCKED; i < SONDE_SCHED_STATE_COUNT; i++)
		sum += g->totals.ns[i];
	return sum;
}

uint64_t sched_delay_count(const struct sched_group *g)
{
	uint64_t n = 0;

	for (int i = 0; i < SONDE_SCHED_BUCKETS; i++)
		n += g->totals.delay[i];
	return n;
}

uint64_t sched_voluntary(const struct sched_group *g)
{
	uint64_t n = 0;

	for (int i = SONDE_SCHED_FIRST_BLOCKED; i < SONDE_SCHED_STATE_COUNT; i++)
		n += g->totals.entries[i];
	return n;
}

uint64_t sched_involuntary(const struct sched_group *g)
{
	return g->totals.entries[SONDE_SCHED_PREEMPTED] + g->totals.entries[SONDE_SCHED_THROTTLED];
}

uint64_t sched_quantile(const uint64_t *buckets, double q, uint64_t max_ns)
{
	double want, below = 0;
	uint64_t n = 0;

	for (int i = 0; i < SONDE_SCHED_BUCKETS; i++)
		n += buckets[i];
	want = q * (double)n;
	for (int i = 0; i < SONDE_SCHED_BUCKETS; i++) {
		double from = (double)sched_bucket_start(i), at;
		double to = i + 1 < SONDE_SCHED_BUCKETS ? (double)sched_bucket_start(i + 1)
							: 2 * from;

		if (!buckets[i] || below + (double)buckets[i] < want) {
			below += (double)buckets[i];
			continue;
		}
		at = from + (to - from) * (want - below) / (double)buckets[i];
		return max_ns && at > (double)max_ns ? max_ns : (uint64_t)at;
	}
	return max_ns;
}

static int64_t run_ns(const struct sched_group *g)
{
	return g->totals.exec_ns;
}

static int64_t stolen_ns(const struct sched_group *g)
{
	return sched_stolen_ns(&g->totals);
}

static int64_t throttled_ns(const struct sched_group *g)
{
	return g->totals.ns[SONDE_SCHED_THROTTLED];
}

static int64_t lifetime_ns(const struct sched_group *g)
{
	return (int64_t)g->totals.elapsed_ns;
}

static int64_t max_ns(const struct sched_group *g)
{
	return (int64_t)g->totals.max_delay_ns;
}

static int64_t average_ns(const struct sched_group *g)
{
	uint64_t n = sched_delay_count(g);

	return n ? g->totals.delay_ns / (int64_t)n : 0;
}

static int64_t p99_ns(const struct sched_group *g)
{
	return (int64_t)sched_quantile(g->totals.delay, 0.99, g->totals.max_delay_ns);
}

static int64_t switches(const struct sched_group *g)
{
	return (int64_t)(sched_voluntary(g) + sched_involuntary(g));
}

static int64_t migrations(const struct sched_group *g)
{
	return (int64_t)g->totals.migrations;
}

/* The smallest first. `~` and not `-`: a foreign profile may have any number. */
static int64_t pid_order(const struct sched_group *g)
{
	return ~(g->key.tid ? g->key.tid : g->key.pid);
}

static const struct {
	const char *name;
	int64_t (*value)(const struct sched_group *g); /* NULL: by name */
} keys[] = {
	{ "run", run_ns },
	{ "stolen", stolen_ns },
	{ "runnable", sched_runnable_ns },
	{ "throttled", throttled_ns },
	{ "blocked", sched_blocked_ns },
	{ "lifetime", lifetime_ns },
	{ "avg", average_ns },
	{ "p99", p99_ns },
	{ "max", max_ns },
	{ "switches", switches },
	{ "migrations", migrations },
	{ "pid", pid_order },
	{ "name", NULL },
};

struct order {
	const struct profile *p;
	int64_t (*value)(const struct sched_group *g);
	int state; /* a reason's; -1: by value */
};

static int state_of_reason(const char *key)
{
	for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++) {
		if (*sched_reason_names[i] && strcmp(sched_reason_names[i], key) == 0)
			return i;
	}
	return -1;
}

static bool find_order(const char *key, struct order *order)
{
	order->state = state_of_reason(key);
	if (order->state >= 0)
		return true;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		order->value = keys[i].value;
		if (strcmp(keys[i].name, key) == 0)
			return true;
	}
	return false;
}

bool sched_sort_knows(const char *key)
{
	struct order order;

	return find_order(key, &order);
}

static int compare_names(const struct profile *p, const struct sched_group_key *a,
			 const struct sched_group_key *b)
{
	int order = strcmp(profile_text(p, a->comm), profile_text(p, b->comm));

	if (!order)
		order = strcmp(profile_text(p, a->cgroup), profile_text(p, b->cgroup));
	if (!order)
		order = strcmp(profile_text(p, a->thread), profile_text(p, b->thread));
	if (!order)
		order = a->pid < b->pid ? -1 : a->pid > b->pid;
	return order ? order : a->tid < b->tid ? -1 : a->tid > b->tid;
}

static int compare(const void *a, const void *b, void *context)
{
	const struct order *o = context;
	const struct sched_group *x = a, *y = b;
	int64_t vx = 0, vy = 0;

	if (o->state >= 0) {
		vx = x->totals.ns[o->state];
		vy = y->totals.ns[o->state];
	} else if (o->value) {
		vx = o->value(x);
		vy = o->value(y);
	}
	if (vx != vy)
		return vx < vy ? 1 : -1;
	return compare_names(o->p, &x->key, &y->key);
}

int sched_sort(struct sched_group *groups, size_t count, const struct profile *p, const char *key)
{
	struct order order = { .p = p };

	if (!find_order(key, &order))
		return -EINVAL;
	qsort_r(groups, count, sizeof(*groups), compare, &order);
	return 0;
}
