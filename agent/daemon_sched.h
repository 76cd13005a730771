/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduler accounting as a part of the agent: with each collection the books of all threads become
 * series of /metrics and a wall-clock profile, which goes the way of all profiles.
 *
 * It may be off: not wanted, refused by the kernel (the agent then samples all the same), or given
 * up by the governor. When it comes back all threads are found anew and counting goes on.
 */
#ifndef AGENT_DAEMON_SCHED_H
#define AGENT_DAEMON_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/loop.h"
#include "base/buf.h"
#include "base/clock.h"
#include "proto/profile.h"

struct daemon_sched;

struct daemon_sched_options {
	uint64_t max_threads; /* 0: by how many there are */
	uint64_t max_groups;  /* of series */
};

/* Loads and starts it: 0 or -errno with one line in `reason`. */
int daemon_sched_open(const struct daemon_sched_options *options, struct loop *loop,
		      struct daemon_sched **ret_sched, char *reason, size_t reason_size);
void daemon_sched_close(struct daemon_sched *s);

/* Ends the collection: 0 and its profile, or NULL if it was off; -errno: it is lost. */
int daemon_sched_take(struct daemon_sched *s, struct profile **ret_profile);

/* On or off, after a daemon_sched_take. A failure to start again is 0 tried again, or -errno. */
int daemon_sched_set(struct daemon_sched *s, bool on);
bool daemon_sched_is_on(const struct daemon_sched *s);

/* What it has cost in the kernel since the start. */
uint64_t daemon_sched_bpf_ns(const struct daemon_sched *s);

/*
 * What it costs, or would cost if it were on, as a fraction of one CPU: by what a switch has cost
 * and how many there are now.
 */
double daemon_sched_cost(const struct daemon_sched *s);

uint64_t daemon_sched_map_bytes(const struct daemon_sched *s);

/* Its families; s may be NULL. */
void daemon_sched_metrics(const struct daemon_sched *s, struct buf *out);

#endif
