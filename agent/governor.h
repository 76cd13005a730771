/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the agent within its CPU budget and its memory cap by announced steps, from a fixed
 * ladder: what costs most and tells least goes first. Pure arithmetic: the caller measures, and
 * applies the level. One step down after an interval over the budget (two when it is over
 * by half), one step up after UP_INTERVALS in a row in which the level above would have fitted.
 */
#ifndef AGENT_GOVERNOR_H
#define AGENT_GOVERNOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GOVERNOR_UP_INTERVALS = 6 };

/* A rung: everything that the rungs above it gave up stays given up. */
struct governor_level {
	const char *name;       /* "full", "no new names", "half rate" ... */
	bool no_new_names;      /* files seen first from now on are not read */
	uint32_t rate_divisor;
};

struct governor {
	double cpu_budget;      /* fraction of all CPUs; 0: no limit */
	uint64_t memory_cap;    /* bytes; 0: no limit */
	size_t level;           /* index into the ladder */
	uint32_t calm;          /* intervals in a row that were well below */
	uint64_t steps_down, steps_up, memory_drops;
};

/* What one interval used. */
struct governor_usage {
	double cpu;            /* fraction of all CPUs: user, kernel and BPF time */
	uint64_t memory_bytes;
};

struct governor_verdict {
	int step;              /* -1: one rung down (less), +1: one up, 0; -2: two down */
	bool drop_symbols;     /* over the memory cap: free symbol tables */
};

/* Judges an interval and moves g->level. */
struct governor_verdict governor_judge(struct governor *g, const struct governor_usage *usage);

/* The rung in force. */
const struct governor_level *governor_level(const struct governor *g);
size_t governor_level_count(void);

#endif
