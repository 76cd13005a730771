/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time off the CPU as a part of the engine: with each drain the scheduler's books of the interval
 * are shared out to the stacks that were taken (agent/sched/strata.h), and go into the profile.
 */
#ifndef AGENT_OFF_H
#define AGENT_OFF_H

#include "agent/agent.h"

struct agent_off;

/* On failure `reason` holds one line. The collect outlives it. */
int agent_off_open(const struct agent_off_options *options, struct collect *collect,
		   struct agent_off **ret_off, char *reason, size_t reason_size);
void agent_off_close(struct agent_off *off);

/* Ends an interval and hands it to the resolver: 0 or -errno. */
int agent_off_drain(struct agent_off *off, struct resolver *resolver);

/*
 * For the wall clock, of what is drained before agent_off_drain: a process's record, and samples
 * on a CPU. False: it cannot be shared out here, the sample counts as it is.
 */
void agent_off_process(struct agent_off *off, const struct event *event);
bool agent_off_on_cpu(struct agent_off *off, const struct sonde_count_key *key,
		      const struct sonde_count *count);

/* See sched_collect_warm. */
void agent_off_warm(struct agent_off *off, bool on);

void agent_off_forget(struct agent_off *off, enum collect_thing thing, uint64_t id);
void agent_off_totals(struct agent_off *off, struct agent_off_totals *ret_totals);
uint64_t agent_off_map_bytes(const struct agent_off *off);

/* The types of its profiles, and where what it counts goes: 0 or -ENOMEM. */
int agent_off_prepare(const struct agent_off_options *options, struct profile *p,
		      struct resolver *resolver);

/* What a profile must say of it: rates, counters of losses, what the books hold. 0 or -ENOMEM. */
int agent_off_comment(const struct agent_off_options *options, struct profile *p,
		      const struct agent_off_totals *totals);

#endif
