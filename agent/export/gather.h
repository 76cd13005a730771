/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows that go together. What a quiet node has to say in a minute is less than what a request
 * says about itself: names of functions, containers and files. So light windows wait, by
 * default up to ten minutes, and go as one profile over their whole time, in one request with
 * one copy of each name. A window that is not light goes by itself, as soon as it is there, and
 * those before it do not wait any longer: what happens in a busy minute is seen at once, and as that
 * minute's.
 *
 * Samples and the scheduler's accounts come in turn, and each go with their like: up to two kinds of
 * profiles in one go, one after the other.
 */
#ifndef AGENT_EXPORT_GATHER_H
#define AGENT_EXPORT_GATHER_H

#include "agent/export/exporter_private.h"

enum { GATHER_KINDS = 2 };

/* Windows of one kind as one profile. */
struct gathered_kind {
	struct spool_chunk first;
	struct profile *p;
	uint64_t windows;
};

/* What is to be sent next: all windows with numbers below `end`, from the first kind's first on. */
struct gathered {
	struct gathered_kind kinds[GATHER_KINDS];
	size_t count;
	uint64_t end;
};

/* Whether a window waits; `bytes`: of its chunk. */
bool gather_is_light(const struct profile *p, uint64_t bytes);

/* When the windows from `first` on may go (monotonic; 0: at once). Under the exporter's lock. */
nsec_t gather_due(struct sender *s, const struct spool_chunk *first);

/*
 * Loads the window `first`, and those behind it that go with it: of each kind no more than the
 * option's time together, without a hole between them, and of the same types and period. 0, or what
 * loading the first one returned. Takes the lock.
 */
int gather_load(struct sender *s, const struct spool_chunk *first, struct gathered *ret_gathered);
void gathered_fini(struct gathered *g);

#endif
