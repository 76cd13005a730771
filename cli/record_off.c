/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde record --off-cpu` and `--wall`: what is waited for, and what the summary says of it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/sched/sched_writer.h"
#include "cli/record.h"

enum { MAX_THREADS = 32768 };

static int reason_find(const char *name, size_t len)
{
	for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++) {
		if (strlen(sched_reason_names[i]) == len && len &&
		    strncmp(sched_reason_names[i], name, len) == 0)
			return i;
	}
	return -1;
}

/* "lock,disk" as bits. */
static int parse_reasons(const char *list, uint32_t *ret_states, char *reason, size_t size)
{
	uint32_t states = 0;

	while (*list) {
		size_t len = strcspn(list, ",");
		int state = reason_find(list, len);

		if (state < 0) {
			int at = snprintf(reason, size, "--reason: '%.*s' is none of", (int)len, list);

			for (int i = 0; i < SONDE_SCHED_STATE_COUNT && at > 0 && (size_t)at < size; i++)
				at += snprintf(reason + at, size - (size_t)at, "%s%s",
					       sched_reason_names[i][0] ? " " : "",
					       sched_reason_names[i]);
			return -EINVAL;
		}
		states |= 1u << state;
		list += len + (list[len] == ',');
	}
	*ret_states = states;
	return 0;
}

int record_off_options(const struct record_options *o, struct agent_options *agent, char *reason,
		       size_t size)
{
	uint32_t states = UINT32_MAX;
	int err = o->reasons ? parse_reasons(o->reasons, &states, reason, size) : 0;

	if (err)
		return err;
	agent->off = (struct agent_off_options){
		.enabled = o->off_cpu || o->wall,
		.wall = o->wall,
		.min_ns = o->min_wait_ns,
		.states = states,
		.max_threads = MAX_THREADS,
	};
	/* Cycles and nanoseconds do not add up. */
	if (o->wall)
		agent->collect.no_hardware = true;
	return 0;
}

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

void record_off_summary(const struct agent_totals *t, const char *output, uint64_t bytes)
{
	const uint64_t *n = t->off.kernel.counters;
	uint64_t all = 0;

	for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++)
		all += t->off.states_ns[i];
	fprintf(stderr,
		"sonde record: off the CPU: %.3f s in %.1f s, %" PRIu64 " departures, %" PRIu64
		" stacks taken; without a stack: %.2f %%\n",
		seconds(all), seconds(t->off.duration_ns), n[SONDE_OFF_COUNT_DEPARTURES],
		n[SONDE_OFF_COUNT_CAPTURES],
		all ? 100.0 * (double)t->off.unstacked_ns / (double)all : 0);
	for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++) {
		if (t->off.states_ns[i])
			fprintf(stderr, "  %-10s %-16s %12.3f s\n", sched_state_names[i],
				sched_reason_names[i], seconds(t->off.states_ns[i]));
	}
	for (int i = SONDE_OFF_COUNT_STRATA_FULL; i < SONDE_OFF_COUNTER_COUNT; i++) {
		static const char *const texts[] = {
#define X(id, name, text) [SONDE_OFF_COUNT_##id] = text,
			SONDE_OFF_COUNTERS(X)
#undef X
		};

		if (n[i])
			fprintf(stderr, "  %10" PRIu64 " %s\n", n[i], texts[i]);
	}
	fprintf(stderr, "wrote %s, %" PRIu64 " bytes\n", output, bytes);
}
