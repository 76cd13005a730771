/* SPDX-License-Identifier: Apache-2.0 */
/* Budget arithmetic; see governor.h. */
#include "agent/governor.h"

/* Off-CPU stacks and wakers will stand at the top once they exist. */
static const struct governor_level ladder[GOVERNOR_LEVELS] = {
	{ .name = "full", .rate_divisor = 1 },
	{ .name = "no new names", .no_new_names = true, .rate_divisor = 1 },
	{ .name = "half rate", .no_new_names = true, .rate_divisor = 2 },
	{ .name = "quarter rate", .no_new_names = true, .rate_divisor = 4 },
	{ .name = "eighth rate", .no_new_names = true, .rate_divisor = 8 },
};

static const size_t LAST = GOVERNOR_LEVELS - 1;

/*
 * Cost is about proportional to the rate, so the rung above costs about `ratio` times as much.
 * Going up needs room for that and a fifth more, else the governor would swing.
 */
static bool rung_above_fits(const struct governor *g, double cpu)
{
	double ratio;

	if (g->level == 0)
		return false;
	ratio = (double)ladder[g->level].rate_divisor / ladder[g->level - 1].rate_divisor;
	return cpu * ratio < g->cpu_budget * 0.8;
}

/* Half of the credit comes back with a step, for its effect to show. */
static int step_down(struct governor *g, size_t rungs)
{
	size_t before = g->level;

	g->calm = 0;
	g->spent = GOVERNOR_BURST_SECONDS / 2.0;
	g->level = LAST - g->level < rungs ? LAST : g->level + rungs;
	if (g->level != before)
		g->steps_down++;
	return -(int)(g->level - before);
}

static int judge_cpu(struct governor *g, double cpu, double seconds)
{
	if (g->cpu_budget <= 0)
		return 0;
	g->spent += (cpu / g->cpu_budget - 1) * seconds;
	if (g->spent < 0)
		g->spent = 0;
	if (g->spent > GOVERNOR_BURST_SECONDS)
		return step_down(g, cpu > g->cpu_budget * 1.5 ? 2 : 1);
	if (!rung_above_fits(g, cpu)) {
		g->calm = 0;
		return 0;
	}
	if (++g->calm < GOVERNOR_UP_INTERVALS)
		return 0;
	g->calm = 0;
	g->level--;
	g->steps_up++;
	return 1;
}

struct governor_verdict governor_judge(struct governor *g, const struct governor_usage *usage)
{
	struct governor_verdict verdict = { .step = judge_cpu(g, usage->cpu, usage->seconds) };

	if (g->memory_cap && usage->memory_bytes > g->memory_cap) {
		verdict.drop_symbols = true;
		g->memory_drops++;
	}
	return verdict;
}

const struct governor_level *governor_level(const struct governor *g)
{
	return &ladder[g->level];
}
