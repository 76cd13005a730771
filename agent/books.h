/* SPDX-License-Identifier: Apache-2.0 */
/* The books of a run: counters by name, differences, and the comments that carry them. */
#ifndef AGENT_BOOKS_H
#define AGENT_BOOKS_H

#include "agent/agent.h"

/* now - before, field by field; of gauges the result means nothing. */
struct agent_totals books_since(const struct agent_totals *now,
				const struct agent_totals *before);

/* Comments "sonde.<name>=<number>" for all counters. 0 or -ENOMEM. */
int books_add(struct profile *p, const struct agent_totals *t);

#endif
