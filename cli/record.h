/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of `sonde record`: settings, target, loop, summary. */
#ifndef CLI_RECORD_H
#define CLI_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/agent.h"

enum { RECORD_MAX_PIDS = 1024 };

struct record_options {
	uint64_t frequency_hz;
	uint64_t duration_ns; /* 0: until the command or the targets end, or Ctrl-C */
	bool all_cpus;
	const char *pids;
	const char *cgroup;
	const char *container, *pod_uid;
	const char *output;
	bool cpu_clock;
	bool idle;
	bool no_demangle;
	bool no_symbols;
	const char *debug_dir;
	const char *symfs;
	bool quiet;
	bool off_cpu, wall;
	uint64_t min_wait_ns;
	const char *reasons; /* NULL: all */
	char **command; /* NULL: none */
};

/* What is sampled. */
struct record_target {
	pid_t pids[RECORD_MAX_PIDS];
	size_t pid_count;
	uint64_t cgroup_id;
	bool cgroup_v1;
};

/* "1,2,3" into target->pids: 0, or -EINVAL with one line in `reason`. */
int target_parse_pids(const char *list, struct record_target *target, char *reason, size_t size);

/*
 * A cgroup's directory, absolute or below the cgroup v2 mount, into target->cgroup_id. -errno
 * with one line in `reason`.
 */
int target_find_cgroup(const char *path, struct record_target *target, char *reason, size_t size);

/* Options for time off the CPU into those of the agent: 0, or -EINVAL with one line in `reason`. */
int record_off_options(const struct record_options *options, struct agent_options *agent,
		       char *reason, size_t size);

/* A command that has been forked but waits for launch_go before it runs. */
struct launch {
	pid_t pid; /* 0: none */
	int go_fd;
	int error_fd; /* tells why exec failed */
};

int launch_prepare(char **command, struct launch *ret_launch);

/* Lets it run: 0, or -errno of exec. */
int launch_go(struct launch *launch);
void launch_close(struct launch *launch);

/* Whether there is one and it has ended; its status is kept for launch_wait. */
bool launch_has_ended(const struct launch *launch);

/* Waits for its end: exit status as a shell gives it. */
int launch_wait(struct launch *launch);

/*
 * Samples until the duration is over, the command or all of the target processes have ended, or
 * a signal came. Progress goes to standard error if that is a terminal and not quiet.
 */
int record_loop(struct agent *agent, const struct record_options *options,
		const struct record_target *target, struct launch *launch, char *reason,
		size_t size);

/* The books of the run, on standard error; of time off the CPU if that is in it. */
void record_off_summary(const struct agent_totals *totals, const char *output, uint64_t bytes);

void record_summary(const struct agent_totals *totals, struct agent *agent, const char *output,
		    uint64_t bytes, uint64_t duration_ns);

#endif
