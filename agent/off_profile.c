/* SPDX-License-Identifier: Apache-2.0 */
/* What profiles of time off the CPU hold and say of themselves; see off.h. */
#include <errno.h>
#include <inttypes.h>

#include "agent/off.h"

int agent_off_prepare(const struct agent_off_options *options, struct profile *p,
		      struct resolver *resolver)
{
	const char *time = options->wall ? "wall" : "off_cpu";
	int64_t text = profile_string(p, time);
	int samples = options->wall ? profile_add_type(p, "samples", "count") : 0;
	int waits = profile_add_type(p, "waits", "count");
	int longest = profile_add_type(p, "longest", "nanoseconds");
	int weight = profile_add_type(p, time, "nanoseconds");

	if (samples < 0 || waits < 0 || longest < 0 || weight < 0 || text < 0)
		return -ENOMEM;
	p->maxima = 1u << (longest - 1);
	p->default_type = (uint32_t)text;
	p->period_type = p->types[weight - 1];
	p->period = 1; /* nothing is sampled: each nanosecond counts */
	/* Numbers of types count from 1. */
	resolver_set_columns(resolver, SONDE_KIND_ON_CPU, samples - 1, weight - 1);
	resolver_set_columns(resolver, SONDE_KIND_OFF_CPU, waits - 1, weight - 1);
	resolver_set_columns(resolver, SONDE_KIND_OFF_MAX, RESOLVER_NOWHERE, longest - 1);
	return 0;
}

static const char *const counter_names[] = {
#define X(id, name, text) [SONDE_OFF_COUNT_##id] = name,
	SONDE_OFF_COUNTERS(X)
#undef X
};

static const char *const state_names[] = {
#define X(id, state, reason, text) [SONDE_SCHED_##id] = state "/" reason,
	SONDE_SCHED_STATES(X)
#undef X
};

int agent_off_comment(const struct agent_off_options *options, struct profile *p,
		      const struct agent_off_totals *t)
{
	int err = profile_add_comment(
		p,
		"off-CPU stacks: at most about %u a second of a thread and %u of a CPU, more likely "
		"the rarer; values are exact for each process, reason and log2 of the length",
		(unsigned int)(SONDE_OFF_THREAD_CAPTURES * NSEC_PER_SEC >> SONDE_OFF_WINDOW_SHIFT),
		(unsigned int)(SONDE_OFF_CPU_CAPTURES * NSEC_PER_SEC >> SONDE_OFF_WINDOW_SHIFT));

	if (!err && options->min_ns)
		err = profile_add_comment(p, "off-CPU waits shorter than %" PRIu64 " ns left out",
					  options->min_ns);
	for (int i = 0; !err && i < SONDE_OFF_COUNTER_COUNT; i++)
		err = profile_add_comment(p, "sonde.off.%s=%" PRIu64, counter_names[i],
					  t->kernel.counters[i]);
	for (int i = 0; !err && i < SONDE_SCHED_STATE_COUNT; i++) {
		if (t->states_ns[i])
			err = profile_add_comment(p, "sonde.off.ns[%s]=%" PRIu64, state_names[i],
						  t->states_ns[i]);
	}
	if (!err)
		err = profile_add_comment(p, "sonde.off.unstacked_ns=%" PRIu64, t->unstacked_ns);
	if (!err)
		err = profile_add_comment(p, "sonde.off.duration_ns=%" PRIu64, t->duration_ns);
	if (!err)
		err = profile_add_comment(p, "sonde.off.strata_refused=%" PRIu64, t->refused);
	return err ? err : profile_add_comment(p, "sonde.off.errors=%" PRIu64, t->errors);
}
