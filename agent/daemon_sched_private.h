/* SPDX-License-Identifier: Apache-2.0 */
/* What daemon_sched.c and daemon_sched_metrics.c share. */
#ifndef AGENT_DAEMON_SCHED_PRIVATE_H
#define AGENT_DAEMON_SCHED_PRIVATE_H

#include "agent/collect/sched.h"
#include "agent/daemon_sched.h"
#include "agent/sched/groups.h"

struct daemon_sched {
	struct sched_collect *collect;
	struct sched_books *books;
	struct sched_groups *groups;
	bool on;
	uint64_t max_threads;

	/* Since the start; the kernel's own counts begin anew each time. */
	uint64_t counters[SONDE_SCHED_COUNTER_COUNT];
	uint64_t torn, read_errors, failures, starts;
	uint64_t runs, bpf_ns;
	uint64_t threads, untracked; /* at the last snapshot */

	/* What a switch costs: kernel and user time over switches, in the last interval. */
	double switch_ns, switches_per_second;
	uint64_t switches;
	nsec_t measured;
};

#endif
