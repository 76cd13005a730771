/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths of cgroups by their ids, bounded. The kernel side sends a path once; an agent that
 * runs for a year meets more cgroups than live at a time. So what no thread has belonged to for
 * ten snapshots is forgotten in two steps: first by the kernel side, which then sends the path again
 * if it is met again, and here two snapshots later, when no record can refer to it any more.
 */
#ifndef AGENT_SCHED_CGROUPS_H
#define AGENT_SCHED_CGROUPS_H

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

struct sched_cgroups {
	struct map paths;
	size_t bytes;     /* of all paths */
	uint64_t refused; /* paths for which there was no room: shown as unknown */
};

void sched_cgroups_init(struct sched_cgroups *c);
void sched_cgroups_fini(struct sched_cgroups *c);

/* A path, of any bytes; kept as clean text. */
void sched_cgroups_add(struct sched_cgroups *c, uint64_t id, const char *path, size_t len,
		       uint64_t snapshot);

/* A thread belongs to it. */
void sched_cgroups_use(struct sched_cgroups *c, uint64_t id, uint64_t snapshot);

/* NULL: not known. */
const char *sched_cgroups_path(const struct sched_cgroups *c, uint64_t id);

/* After a snapshot. `forget` is called for ids that the kernel side shall forget; may be NULL. */
void sched_cgroups_sweep(struct sched_cgroups *c, uint64_t snapshot,
			 void (*forget)(void *context, uint64_t id), void *context);

#endif
