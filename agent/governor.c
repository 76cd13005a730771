/* SPDX-License-Identifier: Apache-2.0 */
/* Budget arithmetic; see governor.h. */
#include "agent/governor.h"

/* Off-CPU stacks and wakers will stand at the top once they exist. */

static const struct governor_level ladder[GOVERNOR_LEVELS] = {
	{ .name = "full", .rate_divisor = 1 },
	{ .name = "no scheduler accounting", .no_sched = true, .rate_divisor = 1 },
	{ .name = "no new names", .no_sched = true, .no_new_names = true, .rate_divisor = 1 },
	{ .name = "half rate", .no_sched = true, .no_new_names = true, .rate_divisor = 2 },
	{ .name = "quarter rate", .no_sched = true, .no_new_names = true, .rate_divisor = 4 },
	{ .name = "eighth rate", .no_sched = true, .no_new_names = true, .rate_divisor = 8 },
};

static const size_t LAST = GOVERNOR_LEVELS - 1;

static bool is_passed_over(const struct governor *g, size_t level)
{
	return !g->has_sched && level > 0 && ladder[level].no_sched && !ladder[level - 1].no_sched;
}

/* From the level that is not 0. */
static size_t rung_above(const struct governor *g)
{
	size_t above = g->level - 1;

	return is_passed_over(g, above) ? above - 1 : above;
}

static size_t rung_below(const struct governor *g, size_t level)
{
	if (level < LAST)
		level++;
	return is_passed_over(g, level) ? level + 1 : level;
}

/*
 * Cost is about proportional to the rate, so the rung above costs about `ratio` times as much; what
 * scheduler accounting costs goes by the switches. Going up needs room for that and a fifth
 * more, else the governor would swing.
 */
static bool rung_above_fits(const struct governor *g, const struct governor_usage *usage)
{
	const struct governor_level *here = &ladder[g->level], *above;
	double cpu;

	if (g->level == 0)
		return false;
	above = &ladder[rung_above(g)];
	cpu = usage->cpu * here->rate_divisor / above->rate_divisor;
	if (here->no_sched && !above->no_sched && g->has_sched)
		cpu += usage->sched;
	return cpu < g->cpu_budget * 0.8;
}

/* Half of the credit comes back with a step, for its effect to show. */
static int step_down(struct governor *g, size_t rungs)
{
	size_t before = g->level;

	g->calm = 0;
	g->spent = GOVERNOR_BURST_SECONDS / 2.0;
	for (size_t i = 0; i < rungs; i++)
		g->level = rung_below(g, g->level);
	if (g->level != before)
		g->steps_down++;
	return -(int)(g->level - before);
}

static int judge_cpu(struct governor *g, const struct governor_usage *usage)
{
	double cpu = usage->cpu;

	if (g->cpu_budget <= 0)
		return 0;
	g->spent += (cpu / g->cpu_budget - 1) * usage->seconds;
	if (g->spent < 0)
		g->spent = 0;
	if (g->spent > GOVERNOR_BURST_SECONDS)
		return step_down(g, cpu > g->cpu_budget * 1.5 ? 2 : 1);
	if (!rung_above_fits(g, usage)) {
		g->calm = 0;
		return 0;
	}
	if (++g->calm < GOVERNOR_UP_INTERVALS)
		return 0;
	g->calm = 0;
	g->level = rung_above(g);
	g->steps_up++;
	return 1;
}

struct governor_verdict governor_judge(struct governor *g, const struct governor_usage *usage)
{
	struct governor_verdict verdict = { .step = judge_cpu(g, usage) };

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
