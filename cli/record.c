/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde record`: command line, set-up, the profile's file. */
#include "cli/record.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "agent/health.h"
#include "base/thread.h"
#include "cli/commands.h"
#include "cli/kernel_copy.h"
#include "cli/output.h"

enum {
	UNWIND_BYTES = 12 << 20,
	PROFILE_BYTES = 512 << 20,
	REASON_BYTES = 2048,
};

/* At the end, for names out of files that are still being read. */
static const nsec_t LAST_WAIT = 10 * NSEC_PER_SEC;

#define FIELD(name) offsetof(struct record_options, name)

const struct option_row record_rows[] = {
	{ "freq", 'F', OPTION_NUMBER, "HZ", "99", 1, 1000000, FIELD(frequency_hz),
	  "samples per second and CPU" },
	{ "all-cpus", 'a', OPTION_FLAG, NULL, NULL, 0, 0, FIELD(all_cpus),
	  "the whole machine (the default without another target)" },
	{ "pid", 'p', OPTION_TEXT, "PID,...", NULL, 0, 0, FIELD(pids),
	  "these processes, and the children they make" },
	{ "cgroup", 0, OPTION_TEXT, "PATH", NULL, 0, 0, FIELD(cgroup),
	  "a cgroup's directory and all below it" },
	{ "container", 0, OPTION_TEXT, "ID,...", NULL, 0, 0, FIELD(container),
	  "these containers, also those that come later; the first digits of an id, or a name" },
	{ "pod-uid", 0, OPTION_TEXT, "UID,...", NULL, 0, 0, FIELD(pod_uid),
	  "all containers of these pods" },
	{ "duration", 'd', OPTION_DURATION, "TIME", NULL, 0, 0, FIELD(duration_ns),
	  "how long: 30, 1.5m, 200ms" },
	{ "output", 'o', OPTION_TEXT, "FILE", "sonde.pb.gz", 0, 0, FIELD(output),
	  "ends in .pb.gz, .pb.zst, .pb or .folded; - for standard output" },
	{ "cpu-clock", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(cpu_clock),
	  "sample by time even where there is a hardware cycle counter" },
	{ "off-cpu", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(off_cpu),
	  "where threads wait, in place of where they run: exact times, by stack and reason" },
	{ "wall", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(wall),
	  "both as one: where time goes by the clock on the wall" },
	{ "min-wait", 0, OPTION_DURATION, "TIME", NULL, 0, 0, FIELD(min_wait_ns),
	  "off-CPU: leave out shorter waits" },
	{ "reason", 0, OPTION_TEXT, "REASONS", NULL, 0, 0, FIELD(reasons),
	  "off-CPU: only waits for these (lock, disk, poll, ..., woken and preempted for a CPU)" },
	{ "idle", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(idle), "keep samples of idle CPUs" },
	{ "no-demangle", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(no_demangle),
	  "names as they stand in the symbol tables" },
	{ "no-symbols", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(no_symbols),
	  "no names: build-ids and addresses only, for sonde symbolize" },
	{ "debug-dir", 0, OPTION_TEXT, "DIR", "/usr/lib/debug", 0, 0, FIELD(debug_dir),
	  "where separate debug files are" },
	{ "symfs", 0, OPTION_TEXT, "DIR", "", 0, 0, FIELD(symfs),
	  "a folder with unstripped copies of files at their paths, for names (\"\": none)" },
	{ "quiet", 'q', OPTION_FLAG, NULL, NULL, 0, 0, FIELD(quiet), "no progress and no summary" },
	{ 0 },
};

static int fail(const char *reason)
{
	fprintf(stderr, "sonde record: %s\n", reason);
	return 1;
}

static bool has_empty_item(const char *list)
{
	return list && (*list == 0 || *list == ',' || strstr(list, ",,") ||
			list[strlen(list) - 1] == ',');
}

static int check_options(struct record_options *o, char *reason, size_t size)
{
	int targets = (o->pids != NULL) + (o->cgroup != NULL) + (o->container != NULL) +
		      (o->pod_uid != NULL);

	if (targets > 1 || (targets && (o->all_cpus || o->command))) {
		snprintf(reason, size, "choose one target: --all-cpus, --pid, --cgroup, --container, "
				       "--pod-uid or a command");
		return -EINVAL;
	}
	if (has_empty_item(o->container) || has_empty_item(o->pod_uid)) {
		snprintf(reason, size, "%s: an id is empty, and would fit everything",
			 o->container ? "--container" : "--pod-uid");
		return -EINVAL;
	}
	if (o->off_cpu && o->wall) {
		snprintf(reason, size, "--wall has what --off-cpu has, too: choose one");
		return -EINVAL;
	}
	if ((o->min_wait_ns || o->reasons) && !o->off_cpu && !o->wall) {
		snprintf(reason, size, "--min-wait and --reason choose waits: with --off-cpu or --wall");
		return -EINVAL;
	}
	if (!output_knows(o->output)) {
		snprintf(reason, size, "--output: '%s' ends in none of .pb.gz, .pb.zst, .pb, .folded",
			 o->output);
		return -EINVAL;
	}
	return 0;
}

/*
 * The kernel side sees process numbers of the first pid namespace: those of another would pick
 * the wrong process, or none.
 */
static int check_namespace(const struct record_options *o, char *reason, size_t size)
{
	enum pid_namespace kind = health_find_pid_namespace("/proc");

	if (kind == PID_NAMESPACE_FIRST || kind == PID_NAMESPACE_UNKNOWN)
		return 0;
	if (o->pids || (o->command && !o->all_cpus)) {
		snprintf(reason, size,
			 "this is not the host's pid namespace, so processes cannot be chosen by "
			 "number; use --all-cpus or --cgroup, or run with the host's (docker "
			 "--pid=host, Kubernetes hostPID: true)");
		return -EINVAL;
	}
	if (kind == PID_NAMESPACE_OTHER)
		fprintf(stderr, "sonde record: this is not the host's pid namespace, and /proc has "
				"other process numbers than the kernel tells: no names from JIT "
				"maps, deleted files and files in containers; run with the host's "
				"(docker --pid=host, Kubernetes hostPID: true)\n");
	return 0;
}

static int find_target(const struct record_options *o, struct record_target *target,
		       struct agent_options *agent, char *reason, size_t size)
{
	if (o->pids) {
		agent->collect.target = SONDE_TARGET_PROCESSES;
		return target_parse_pids(o->pids, target, reason, size);
	}
	if (o->cgroup) {
		int err = target_find_cgroup(o->cgroup, target, reason, size);

		agent->collect.target = SONDE_TARGET_CGROUP;
		agent->collect.cgroup_id = target->cgroup_id;
		agent->collect.cgroup_v1 = target->cgroup_v1;
		return err;
	}
	if (o->container || o->pod_uid) {
		agent->collect.target = SONDE_TARGET_CGROUPS;
		agent->filter = (struct cgroup_filter){ o->container, o->pod_uid };
	}
	if (o->command && !o->all_cpus)
		agent->collect.target = SONDE_TARGET_PROCESSES;
	return 0;
}

static int add_targets(struct agent *agent, const struct record_target *target,
		       const struct launch *launch, char *reason, size_t size)
{
	for (size_t i = 0; i < target->pid_count; i++) {
		int err = agent_add_target(agent, target->pids[i]);

		if (err) {
			snprintf(reason, size, "--pid %d: %s", target->pids[i],
				 err == -ESRCH	  ? "no such process"
				 : err == -ECHILD ? "is a thread; give its process (Tgid in its "
						    "/proc status)"
						  : strerror(-err));
			return err;
		}
	}
	return launch->pid ? agent_add_target(agent, launch->pid) : 0;
}

static int write_profile(struct agent *agent, const struct record_options *o,
			 struct output *output, char *reason, size_t size)
{
	struct agent_totals totals;
	struct profile *profile;
	uint64_t bytes = 0, duration;
	int err = agent_take(agent, true, &profile);

	if (err) {
		snprintf(reason, size, "the profile could not be finished: %s", strerror(-err));
		return err;
	}
	duration = (uint64_t)profile->duration_ns;
	err = output_write(output, profile, &bytes);
	if (err)
		snprintf(reason, size, "%s: %s; the profile is lost", o->output, strerror(-err));
	profile_free(profile);
	agent_totals(agent, &totals);
	if (!err && !o->quiet && (o->off_cpu || o->wall))
		record_off_summary(&totals, o->output, bytes);
	else if (!err && !o->quiet)
		record_summary(&totals, agent, o->output, bytes, duration);
	if (!err && (o->container || o->pod_uid) && totals.resolve.samples == 0) {
		snprintf(reason, size, "%s %s: nothing like it ran on a CPU; the profile is empty",
			 o->container ? "--container" : "--pod-uid",
			 o->container ? o->container : o->pod_uid);
		return -ESRCH;
	}
	return err;
}

/* From an opened agent to the written file. */
static int run(struct agent *agent, const struct record_options *o,
	       const struct record_target *target, struct launch *launch, struct output *output,
	       char *reason, size_t size)
{
	int err = add_targets(agent, target, launch, reason, size);

	if (err)
		return err;
	if (!agent_has_user_stacks(agent))
		fprintf(stderr, "sonde record: reading user memory from an interrupt may hang this "
				"kernel (fixed in 6.1.36, 6.3.10, 6.4): no user stacks\n");
	if (agent_frequency(agent) < o->frequency_hz)
		fprintf(stderr, "sonde record: sampling at %u Hz, the limit in "
				"kernel.perf_event_max_sample_rate; not at %llu\n",
			agent_frequency(agent), (unsigned long long)o->frequency_hz);
	err = record_loop(agent, o, target, launch, reason, size);
	return err ? err : write_profile(agent, o, output, reason, size);
}

/* Names will be wanted later: what takes longest of that is done meanwhile, once for a kernel. */
static void *prepare_names(void *unused)
{
	char dir[PATH_MAX];

	kernel_copy_default_dir(dir, sizeof(dir));
	if (dir[0])
		kernel_copy_prepare(dir);
	return NULL;
}

static int run_and_prepare(struct agent *agent, struct record_options *o,
			   const struct record_target *target, struct launch *launch,
			   struct output *output, char *reason, size_t size)
{
	pthread_t thread;
	bool is_started = o->no_symbols && thread_start(&thread, prepare_names, NULL) == 0;
	int err = run(agent, o, target, launch, output, reason, size);

	if (is_started)
		pthread_join(thread, NULL);
	return err;
}

static int record(struct record_options *o)
{
	struct agent_options options = {
		.collect = {
			.frequency_hz = (uint32_t)o->frequency_hz,
			.no_hardware = o->cpu_clock,
			.keep_idle = o->idle,
			.thread_names = true,
			.unwind_bytes = UNWIND_BYTES,
		},
		.debug_dir = o->debug_dir,
		.symfs = o->symfs,
		.no_demangle = o->no_demangle,
		.no_symbols = o->no_symbols,
		.symbol_bytes = AGENT_SYMBOL_BYTES,
		.profile_bytes = PROFILE_BYTES,
		.last_wait_ns = LAST_WAIT,
	};
	struct launch launch = { .go_fd = -1, .error_fd = -1 };
	struct record_target target = { 0 };
	struct output output = { .fd = -1 };
	struct agent *agent = NULL;
	char reason[REASON_BYTES] = "";
	int status = 0, err = check_namespace(o, reason, sizeof(reason));

	if (!err)
		err = record_off_options(o, &options, reason, sizeof(reason));
	if (!err)
		err = find_target(o, &target, &options, reason, sizeof(reason));
	/* Before anything is recorded that could not be written. */
	if (!err) {
		err = output_open(o->output, &output);
		if (err)
			snprintf(reason, sizeof(reason), "--output: %s: %s", o->output,
				 strerror(-err));
	}
	if (!err)
		err = agent_open(&options, &agent, reason, sizeof(reason));
	if (!err && o->command) {
		err = launch_prepare(o->command, &launch);
		if (err)
			snprintf(reason, sizeof(reason), "%s: %s", o->command[0], strerror(-err));
	}
	/* On an overloaded machine a profiler is needed most; without privilege it stays as it is. */
	setpriority(PRIO_PROCESS, 0, AGENT_NICE);
	if (!err)
		err = run_and_prepare(agent, o, &target, &launch, &output, reason, sizeof(reason));
	agent_close(agent);
	output_close(&output);
	if (err)
		fail(reason[0] ? reason : strerror(-err));
	launch_close(&launch);
	if (launch.pid)
		status = launch_wait(&launch);
	return err && status == 0 ? 1 : status;
}

int record_main(int argc, char **argv)
{
	struct record_options options = { 0 };
	char reason[REASON_BYTES];
	int rest, err;

	signal(SIGPIPE, SIG_IGN); /* a pipe that nobody reads is an error to be told */
	err = command_options("record", argc, argv, &options, &rest);
	if (err)
		return err == 1 ? 0 : 2;
	if (rest < argc)
		options.command = argv + rest;
	if (check_options(&options, reason, sizeof(reason))) {
		fail(reason);
		return 2;
	}
	return record(&options);
}
