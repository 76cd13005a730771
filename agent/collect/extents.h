/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which parts of a large array are free: an allocator of contiguous runs, first fit, whose
 * memory is apart from what it manages. Numbers are in units chosen by the caller.
 */
#ifndef AGENT_COLLECT_EXTENTS_H
#define AGENT_COLLECT_EXTENTS_H

#include <stddef.h>
#include <stdint.h>

struct extent {
	uint32_t first, count;
};

/* Free runs, sorted, never touching one another unless a barrier lies between. */
struct extents {
	struct extent *free;
	size_t free_count, cap;
	uint32_t barrier; /* no run crosses a multiple of this */
	uint32_t free_units;
};

/* All of 0..total-1 is free. total is a multiple of barrier. */
int extents_init(struct extents *e, uint32_t total, uint32_t barrier);
void extents_fini(struct extents *e);

/* A run of `count` units: 0, or -ENOSPC if no free run is long enough. Linear in free runs. */
int extents_alloc(struct extents *e, uint32_t count, uint32_t *ret_first);

/* Gives a run back; -ENOMEM loses it (until extents_fini). */
int extents_free(struct extents *e, uint32_t first, uint32_t count);

#endif
