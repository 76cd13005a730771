/* SPDX-License-Identifier: Apache-2.0 */
/* The pages /metrics and /healthz of the agent. */
#include <inttypes.h>

#include "agent/daemon_private.h"
#include "agent/metrics.h"
#include "agent/version.h"
#include "base/clock.h"

/* A loop that has not turned for this long is not healthy. */
static const nsec_t HEARTBEAT_LIMIT = 30 * NSEC_PER_SEC;

static double seconds(nsec_t ns)
{
	return (double)ns / (double)NSEC_PER_SEC;
}

/* Families with one sample each. */
struct single {
	const char *name;
	enum metric_type type;
	const char *help;
	double value;
};

static void write_singles(struct buf *out, const struct single *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		metric_single(out, rows[i].name, rows[i].type, rows[i].help, rows[i].value);
}

#define WRITE_SINGLES(out, rows) write_singles(out, rows, sizeof(rows) / sizeof((rows)[0]))

static void write_samples(struct buf *out, const struct agent_totals *t)
{
	const struct single rows[] = {
		{ "sonde_samples_expected_total", METRIC_COUNTER,
		  "Samples by the perf events' own counts.", (double)t->collect.expected_samples },
		{ "sonde_samples_missed_total", METRIC_COUNTER,
		  "Expected samples for which the kernel never ran the program.",
		  (double)t->collect.missed },
		{ "sonde_samples_missed_idle_total", METRIC_COUNTER,
		  "Expected samples that did not come while their CPU was idle.",
		  (double)t->collect.missed_idle },
		{ "sonde_samples_lost_stack_total", METRIC_COUNTER,
		  "Samples whose stack record was missing.", (double)t->resolve.lost_stacks },
		{ "sonde_samples_unknown_process_total", METRIC_COUNTER,
		  "Samples whose process record was missing.",
		  (double)t->resolve.unknown_processes },
		{ "sonde_samples_unknown_cgroup_total", METRIC_COUNTER,
		  "Samples whose cgroup record was missing.", (double)t->resolve.unknown_cgroups },
		{ "sonde_samples_no_memory_total", METRIC_COUNTER,
		  "Samples lost to the bound of a profile's memory.", (double)t->resolve.no_memory },
		{ "sonde_records_bad_total", METRIC_COUNTER,
		  "Ring buffer records that could not be decoded.", (double)t->collect.bad_records },
	};

	WRITE_SINGLES(out, rows);
	metric_family(out, "sonde_samples_total", METRIC_COUNTER,
		      "Samples and what became of them; see bpf/abi.h for each outcome.");
	for (int i = 0; i < SONDE_COUNTER_COUNT; i++)
		metric_sample(out, "sonde_samples_total", "outcome", counter_name(i),
			      (double)t->collect.counters[i]);
	metric_family(out, "sonde_frames_total", METRIC_COUNTER,
		      "Frames of samples, by whether they got a name and why not.");
	for (int i = 0; i < SYM_REASON_COUNT; i++)
		metric_sample(out, "sonde_frames_total", "outcome", sym_reason_text(i),
			      (double)t->resolve.frames[i]);
}

static void write_tables(struct buf *out, const struct agent_totals *t)
{
	const struct {
		const char *table;
		uint64_t entries;
	} tables[] = {
		{ "stacks", t->resolve.stacks_known },
		{ "facts", t->resolve.facts_known },
		{ "files", t->resolve.files_known },
	};
	const struct single rows[] = {
		{ "sonde_count_entries_total", METRIC_COUNTER, "Entries drained from the map of counts.",
		  (double)t->collect.entries },
		{ "sonde_drains_total", METRIC_COUNTER, "Drains of the kernel's maps.",
		  (double)t->collect.drains },
		{ "sonde_drain_seconds_total", METRIC_COUNTER,
		  "Time spent in drains, waiting for grace periods included.",
		  seconds(t->collect.drain_ns) },
		{ "sonde_drain_errors_total", METRIC_COUNTER, "Drains that ended early.",
		  (double)t->collect.drain_errors },
		{ "sonde_unwind_bytes", METRIC_GAUGE, "Rows of unwind tables in the kernel.",
		  (double)t->collect.table_bytes },
		{ "sonde_unwind_loads_total", METRIC_COUNTER, "Unwind tables loaded.",
		  (double)t->collect.table_loads },
		{ "sonde_unwind_drops_total", METRIC_COUNTER,
		  "Unwind tables dropped to make room for others.",
		  (double)t->collect.table_drops },
		{ "sonde_unwind_refusals_total", METRIC_COUNTER,
		  "Unwind tables that found no room or could not be loaded.",
		  (double)t->collect.table_refusals },
		{ "sonde_symbol_bytes", METRIC_GAUGE, "Memory of symbol tables.",
		  (double)t->resolve.file_bytes },
		{ "sonde_files_read_total", METRIC_COUNTER, "Files whose symbols were read.",
		  (double)t->resolve.files },
		{ "sonde_files_failed_total", METRIC_COUNTER,
		  "Files that could not be opened or had changed.",
		  (double)t->resolve.files_failed },
		{ "sonde_files_put_off_total", METRIC_COUNTER,
		  "Files announced while the queues for reading were full; announced again later.",
		  (double)t->resolve.files_put_off },
		{ "sonde_files_queued", METRIC_GAUGE,
		  "Parts of files (unwind table, symbols) that wait to be read.",
		  (double)t->resolve.files_queued },
		{ "sonde_samples_waiting", METRIC_GAUGE, "Samples that wait for files to be read.",
		  (double)t->resolve.samples_waiting },
		{ "sonde_perf_map_bad_lines_total", METRIC_COUNTER,
		  "Lines of perf maps that made no sense and were left out.",
		  (double)t->resolve.perf_map_bad_lines },
		{ "sonde_jitdump_bad_records_total", METRIC_COUNTER,
		  "Records of jitdumps that made no sense and were left out.",
		  (double)t->resolve.jitdump_bad_records },
		{ "sonde_samples_carried_total", METRIC_COUNTER,
		  "Samples put into the next collection since their files were still being read.",
		  (double)t->resolve.carried_out },
	};

	metric_family(out, "sonde_table_entries", METRIC_GAUGE,
		      "Entries of the tables that kernel and user space keep in step.");
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		metric_sample(out, "sonde_table_entries", "table", tables[i].table,
			      (double)tables[i].entries);
	WRITE_SINGLES(out, rows);
}

static void write_usage(const struct daemon *d, struct buf *out, const struct agent_totals *t)
{
	struct usage usage;

	usage_read("/proc", &usage);
	metric_family(out, "sonde_cpu_seconds_total", METRIC_COUNTER,
		      "CPU time of the agent; modes bpf and bpf_sched are extrapolated from one run in 64.");
	metric_sample(out, "sonde_cpu_seconds_total", "mode", "user", seconds(usage.user_ns));
	metric_sample(out, "sonde_cpu_seconds_total", "mode", "system", seconds(usage.system_ns));
	metric_sample(out, "sonde_cpu_seconds_total", "mode", "bpf", seconds(t->collect.bpf_ns));
	metric_sample(out, "sonde_cpu_seconds_total", "mode", "bpf_sched",
		      seconds(d->sched ? daemon_sched_bpf_ns(d->sched) : 0));
	metric_family(out, "sonde_memory_bytes", METRIC_GAUGE, "Memory of the agent.");
	metric_sample(out, "sonde_memory_bytes", "kind", "resident", (double)usage.rss_bytes);
	metric_sample(out, "sonde_memory_bytes", "kind", "bpf_maps",
		      (double)agent_map_bytes(d->agent));
	metric_sample(out, "sonde_memory_bytes", "kind", "bpf_maps_sched",
		      (double)(d->sched ? daemon_sched_map_bytes(d->sched) : 0));
	metric_single(out, "sonde_open_fds", METRIC_GAUGE, "Open file descriptors.",
		      (double)usage.fds);
}

static struct journal_totals sum_journals(const struct daemon *d)
{
	struct journal_totals sum = { 0 };

	for (int i = 0; i < LANE_COUNT; i++) {
		struct journal_totals one;

		journal_totals(d->lanes[i].journal, &one);
		sum.damaged += one.damaged;
		sum.dropped += one.dropped;
		sum.bytes += one.bytes;
	}
	return sum;
}

static void write_storage(const struct daemon *d, struct buf *out)
{
	struct journal_totals journal = sum_journals(d);
	struct store_totals store;

	store_totals(d->store, &store);
	const struct single rows[] = {
		{ "sonde_collections_total", METRIC_COUNTER, "Collections taken.",
		  (double)d->totals.collections },
		{ "sonde_collections_late_total", METRIC_COUNTER,
		  "Collections that came more than an interval late.",
		  (double)d->totals.late_collections },
		{ "sonde_samples_lost_storage_total", METRIC_COUNTER,
		  "Samples given up since the disk refused for too long.",
		  (double)d->lanes[LANE_CPU].lost },
		{ "sonde_sched_lost_storage_seconds_total", METRIC_COUNTER,
		  "Time of threads given up since the disk refused for too long.",
		  seconds(d->lanes[LANE_WALL].lost) },
		{ "sonde_journal_errors_total", METRIC_COUNTER, "Journal writes that failed.",
		  (double)d->totals.journal_errors },
		{ "sonde_journal_damaged_total", METRIC_COUNTER, "Damaged chunks set aside.",
		  (double)journal.damaged },
		{ "sonde_journal_dropped_total", METRIC_COUNTER,
		  "Chunks dropped for the journal's bound.", (double)journal.dropped },
		{ "sonde_journal_bytes", METRIC_GAUGE, "Size of the journal.",
		  (double)journal.bytes },
		{ "sonde_store_errors_total", METRIC_COUNTER, "Windows that could not be stored yet.",
		  (double)d->totals.store_errors },
		{ "sonde_store_bytes", METRIC_GAUGE, "Size of the stored profiles.",
		  (double)store.bytes },
		{ "sonde_store_profiles", METRIC_GAUGE, "Stored profiles.", (double)store.profiles },
	};

	WRITE_SINGLES(out, rows);
	metric_family(out, "sonde_windows_total", METRIC_COUNTER,
		      "Profiles of windows written to the store: CPU time, or wall-clock time.");
	metric_sample(out, "sonde_windows_total", "type", "cpu", (double)d->lanes[LANE_CPU].windows);
	metric_sample(out, "sonde_windows_total", "type", "wall",
		      (double)d->lanes[LANE_WALL].windows);
	metric_family(out, "sonde_store_dropped_total", METRIC_COUNTER,
		      "Profiles removed from the store for its caps.");
	metric_sample(out, "sonde_store_dropped_total", "cap", "size", (double)store.dropped_size);
	metric_sample(out, "sonde_store_dropped_total", "cap", "age", (double)store.dropped_age);
}

static void write_agent(const struct daemon *d, struct buf *out)
{
	const struct single rows[] = {
		{ "sonde_governor_level", METRIC_GAUGE,
		  "Rung of the governor's ladder; 0 is full service.", (double)d->governor.level },
		{ "sonde_frequency_hertz", METRIC_GAUGE, "Sampling frequency in force.",
		  agent_frequency(d->agent) },
		{ "sonde_cpus", METRIC_GAUGE, "CPUs that are sampled.",
		  (double)agent_cpu_count(d->agent) },
		{ "sonde_loop_longest_stall_seconds", METRIC_GAUGE,
		  "Longest time in which the loop did not turn.", seconds(d->totals.longest_stall) },
		{ "sonde_reloads_total", METRIC_COUNTER, "Configurations loaded again.",
		  (double)d->totals.reloads },
		{ "sonde_reload_errors_total", METRIC_COUNTER,
		  "Configurations that were refused; the old one stayed.",
		  (double)d->totals.reload_errors },
	};

	metric_family(out, "sonde_build_info", METRIC_GAUGE, "Always 1; the version is a label.");
	metric_sample(out, "sonde_build_info", "version", SONDE_VERSION, 1);
	WRITE_SINGLES(out, rows);
	metric_family(out, "sonde_governor_steps_total", METRIC_COUNTER, "Steps of the governor.");
	metric_sample(out, "sonde_governor_steps_total", "direction", "down",
		      (double)d->governor.steps_down);
	metric_sample(out, "sonde_governor_steps_total", "direction", "up",
		      (double)d->governor.steps_up);
	metric_single(out, "sonde_governor_symbol_drops_total", METRIC_COUNTER,
		      "Times that symbol tables were dropped for the memory cap.",
		      (double)d->governor.memory_drops);
}

int daemon_metrics_page(void *context, struct buf *body)
{
	const struct daemon *d = context;
	struct agent_totals totals;

	agent_totals(d->agent, &totals);
	write_agent(d, body);
	write_samples(body, &totals);
	write_tables(body, &totals);
	write_usage(d, body, &totals);
	write_storage(d, body);
	daemon_export_metrics(d, body);
	daemon_sched_metrics(d->sched, body);
	return 200;
}

int daemon_health_page(void *context, struct buf *body)
{
	const struct daemon *d = context;
	nsec_t age = clock_monotonic() - d->heartbeat;

	if (age > HEARTBEAT_LIMIT) {
		buf_printf(body, "loop stalled for %.1f s\n", seconds(age));
		return 503;
	}
	buf_put_str(body, "ok\n");
	return 200;
}
