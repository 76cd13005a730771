/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent uses, and what its governor makes of it. */
#include <stdio.h>
#include <string.h>

#include "agent/daemon_private.h"
#include "agent/log.h"

struct governor_usage daemon_measure(struct daemon *d)
{
	struct governor_usage result = { 0 };
	struct agent_totals totals;
	struct usage usage;
	nsec_t now = clock_monotonic(), spent;
	uint64_t bpf_ns;

	usage_read("/proc", &usage);
	agent_totals(d->agent, &totals);
	bpf_ns = totals.collect.bpf_ns + (d->sched ? daemon_sched_bpf_ns(d->sched) : 0);
	spent = usage.user_ns + usage.system_ns - d->usage.user_ns - d->usage.system_ns + bpf_ns -
		d->bpf_ns;
	if (now > d->measured && agent_cpu_count(d->agent))
		result.cpu = (double)spent / (double)(now - d->measured) /
			     (double)agent_cpu_count(d->agent);
	result.seconds = (double)(now - d->measured) / (double)NSEC_PER_SEC;
	result.memory_bytes = usage.rss_bytes + agent_map_bytes(d->agent);
	if (d->sched) {
		result.memory_bytes += daemon_sched_map_bytes(d->sched);
		result.sched = daemon_sched_cost(d->sched) / (double)agent_cpu_count(d->agent);
	}
	d->usage = usage;
	d->bpf_ns = bpf_ns;
	d->measured = now;
	return result;
}

/* On if it is wanted and the governor lets it. */
static void switch_sched(struct daemon *d)
{
	bool on = !d->options.no_sched && !governor_level(&d->governor)->no_sched;
	int err = d->sched ? daemon_sched_set(d->sched, on) : 0;

	if (err)
		log_warn(
			"scheduler accounting: cannot start again: %s; it stays off until the next "
			"step or reload",
			strerror(-err));
}

void daemon_apply_level(struct daemon *d, const char *why)
{
	const struct governor_level *level = governor_level(&d->governor);
	uint32_t hz = (uint32_t)d->options.frequency_hz / level->rate_divisor;
	char text[256];

	agent_set_reading(d->agent, !level->no_new_names);
	switch_sched(d);
	if (hz == 0)
		hz = 1;
	if (hz != agent_frequency(d->agent))
		agent_set_frequency(d->agent, hz);
	snprintf(text, sizeof(text), "governor: %s: %s, %u Hz", why, level->name, hz);
	agent_comment(d->agent, text);
	/* A line for each rung: with short collections one site's limit would hide steps. */
	log_write(&d->level_sites[d->governor.level], LOG_INFO, "%s", text);
}

void daemon_govern(struct daemon *d)
{
	struct governor_usage usage = daemon_measure(d);
	struct governor_verdict verdict = governor_judge(&d->governor, &usage);
	char why[128];

	if (verdict.drop_symbols) {
		agent_drop_symbols(d->agent);
		log_warn("memory: %llu MiB, over the cap of %llu: symbol tables dropped",
			 (unsigned long long)(usage.memory_bytes >> 20),
			 (unsigned long long)d->options.memory_mib);
	}
	if (verdict.step == 0)
		return;
	snprintf(why, sizeof(why), "%s: CPU %.2f %% of %.2f %%", verdict.step < 0 ? "less" : "more",
		 usage.cpu * 100, d->options.cpu_budget);
	daemon_apply_level(d, why);
}
