/* SPDX-License-Identifier: Apache-2.0 */
/* What `sonde record` tells at its end: how much came, what was lost and why, what has no name. */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "cli/record.h"

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void line(const char *name, uint64_t n, uint64_t of, const char *text)
{
	if (n)
		fprintf(stderr, "  %-18s %10" PRIu64 " %6.2f %%%s%s\n", name, n, percent(n, of),
			*text ? "  " : "", text);
}

static void show_counters(const struct agent_totals *t, enum sonde_counter first,
			  enum sonde_counter last)
{
	const uint64_t *n = t->collect.counters;

	for (int i = first; i <= (int)last; i++)
		line(counter_name(i), n[i], n[SONDE_COUNT_RECEIVED], counter_text(i));
}

static void show_samples(const struct agent_totals *t)
{
	const uint64_t *n = t->collect.counters;
	uint64_t received = n[SONDE_COUNT_RECEIVED];

	line("expected", t->collect.expected_samples, t->collect.expected_samples,
	     "by the perf events' own counts");
	line("missed", t->collect.missed, t->collect.expected_samples,
	     "never ran: throttling, or another BPF program on the CPU");
	line("missed idle", t->collect.missed_idle, t->collect.expected_samples,
	     "never ran, but the CPU was idle");
	show_counters(t, SONDE_COUNT_RECEIVED, SONDE_COUNT_NO_STATE);
	line("no memory", t->resolve.no_memory, received, "samples lost: over the profile's bound");
	line("stack lost", t->resolve.lost_stacks, received, "samples whose stack record was missing");
	line("process unknown", t->resolve.unknown_processes, received,
	     "samples whose process record was missing");
	line("cgroup unknown", t->resolve.unknown_cgroups, received,
	     "samples whose cgroup record was missing");
	show_counters(t, SONDE_COUNT_COUNTS_FULL, SONDE_COUNT_KERNEL_STACK_ERROR);
	show_counters(t, SONDE_COUNT_FACT_RETRY, SONDE_COUNTER_COUNT - 1);
	line("bad records", t->collect.bad_records, received, "records that could not be decoded");
	line("drain errors", t->collect.drain_errors, received, "drains that ended early");
	line("unsampled CPUs", t->collect.failed_cpus, 0, "came online, but could not be sampled");
}

static void show_names(const struct agent_totals *t)
{
	const uint64_t *n = t->collect.counters;
	uint64_t all = 0, unwound = n[SONDE_COUNT_FRAMES_BY_TABLE] + n[SONDE_COUNT_FRAMES_BY_POINTER];

	for (int i = 0; i < SYM_REASON_COUNT; i++)
		all += t->resolve.frames[i];
	fprintf(stderr, "frames:\n");
	for (int i = SONDE_COUNT_FRAMES_BY_TABLE; i <= SONDE_COUNT_FRAMES_BY_POINTER; i++)
		line(counter_name(i), n[i], unwound, counter_text(i));
	for (int i = 0; i < SYM_REASON_COUNT; i++)
		line(i == SYM_OK ? "named" : "no name", t->resolve.frames[i], all,
		     i == SYM_OK ? "" : sym_reason_text(i));
	line("perf map lines", t->resolve.perf_map_bad_lines, 0, "made no sense: left out");
	line("jitdump records", t->resolve.jitdump_bad_records, 0, "made no sense: left out");
}

void record_summary(const struct agent_totals *totals, struct agent *agent, const char *output,
		    uint64_t bytes, uint64_t duration_ns)
{
	fprintf(stderr, "sonde record: %" PRIu64 " samples in %.1f s, %zu CPUs, %s at %u Hz\n",
		totals->resolve.samples, (double)duration_ns / (double)NSEC_PER_SEC,
		agent_cpu_count(agent), agent_is_hardware(agent) ? "cycles" : "cpu-clock",
		agent_frequency(agent));
	show_samples(totals);
	show_names(totals);
	fprintf(stderr, "wrote %s, %" PRIu64 " bytes (%" PRIu64 " stacks, %" PRIu64
			" files, %" PRIu64 " processes)\n",
		output, bytes, totals->resolve.stacks, totals->resolve.files,
		totals->resolve.processes);
}
