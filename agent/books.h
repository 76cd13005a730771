/* SPDX-License-Identifier: Apache-2.0 */
/* The books of a run: counters by name, differences, and the comments that carry them. */
#ifndef AGENT_BOOKS_H
#define AGENT_BOOKS_H

#include "agent/agent.h"

/* now - before, field by field. */
struct agent_totals books_since(const struct agent_totals *now,
				const struct agent_totals *before);

/* Zero in what says how things stand, not how many there were: for use as `before`. */
void books_clear_gauges(struct agent_totals *t);

/* What resolving left out by its filter was kept by the kernel side, which could not know yet. */
void books_move_filtered(struct agent_totals *t);

/* Comments "sonde.<name>=<number>" for all counters. 0 or -ENOMEM. */
int books_add(struct profile *p, const struct agent_totals *t);

#endif
