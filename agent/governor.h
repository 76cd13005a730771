/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the agent within its CPU budget and its memory cap by announced steps, from a fixed
 * ladder: what costs most and tells least goes first. Pure arithmetic: the caller measures, and
 * applies the level.
 *
 * The budget holds over any GOVERNOR_BURST_SECONDS or so: what was not used is credit, up to that
 * many seconds of the budget, so a burst (reading the symbols of many new files) costs no
 * detail. When the credit is used up: one rung down (two when the interval was over by half). One
 * rung up after GOVERNOR_UP_INTERVALS in a row in which the rung above would have fitted.
 */
#ifndef AGENT_GOVERNOR_H
#define AGENT_GOVERNOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GOVERNOR_UP_INTERVALS = 6, GOVERNOR_BURST_SECONDS = 60, GOVERNOR_LEVELS = 6 };

/* A rung: everything that the rungs above it gave up stays given up. */
struct governor_level {
	const char *name;       /* "full", "no scheduler accounting", "half rate" ... */
	bool no_sched;          /* threads are not accounted for */
	bool no_new_names;      /* files seen first from now on are not read */
	uint32_t rate_divisor;
};

struct governor {
	double cpu_budget;      /* fraction of all CPUs; 0: no limit */
	uint64_t memory_cap;    /* bytes; 0: no limit */
	bool has_sched;         /* there is scheduler accounting; else its rung is passed over */
	size_t level;           /* index into the ladder */
	double spent;           /* credit used, in seconds of the budget */
	uint32_t calm;          /* intervals in a row that were well below */
	uint64_t steps_down, steps_up, memory_drops;
};

/* What one interval used. */
struct governor_usage {
	double seconds;        /* its length */
	double cpu;            /* fraction of all CPUs: user, kernel and BPF time */
	double sched;          /* what scheduler accounting costs, or would: part of cpu if on */
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

#endif
