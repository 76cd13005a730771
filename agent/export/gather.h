/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows that go together. What a quiet node has to say in a minute is less than what a request
 * says about itself: names of functions, containers and files. So light windows wait, by
 * default up to ten minutes, and go as one profile over their whole time, in one request with
 * one copy of each name. A window that is not light goes by itself, as soon as it is there.
 */
#ifndef AGENT_EXPORT_GATHER_H
#define AGENT_EXPORT_GATHER_H

#include "agent/export/exporter_private.h"

/* What is to be sent next: windows with numbers in [first.number, end) as one profile. */
struct gathered {
	struct spool_chunk first;
	struct profile *p;
	uint64_t end, windows;
};

/* When the windows from `first` on may go (monotonic; 0: at once). Under the exporter's lock. */
nsec_t gather_due(struct sender *s, const struct spool_chunk *first);

/*
 * Loads the window `first`, and those behind it that go with it: no more than the option's time
 * together, without a hole between them, and of the same types and period. 0, or what loading the
 * first one returned. Takes the lock.
 */
int gather_load(struct sender *s, const struct spool_chunk *first, struct gathered *ret_gathered);

#endif
