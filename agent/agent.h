/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: collect and resolve joined, from the first sample to a finished profile. Commands
 * own the loop: they wait for agent_fd, call agent_poll when it is readable and
 * agent_drain about once a second.
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include "agent/collect/collect.h"
#include "agent/collect/sched.h"
#include "agent/resolve/resolve.h"
#include "base/clock.h"
#include "proto/profile.h"

/* How far it goes before others, needed most where the machine is overloaded; room for symbol tables. */
enum { AGENT_NICE = -10, AGENT_SYMBOL_BYTES = 64 << 20 };

/* Comment of a profile without names: in hex, where the kernel's code begins. */
#define AGENT_KERNEL_TEXT "kernel text: "

struct agent;

/* Time off the CPU in the profile, by stack. */
struct agent_off_options {
	bool enabled;
	bool wall;       /* beside the samples on a CPU, as one time; else nothing is sampled */
	uint64_t min_ns; /* no shorter waits */
	uint32_t states; /* bits of enum sonde_sched_state */
	uint32_t max_threads;
};

struct agent_options {
	struct collect_options collect;
	struct agent_off_options off;
	const char *debug_dir;
	const char *symfs;
	bool no_demangle;
	struct cgroup_filter filter; /* with SONDE_TARGET_CGROUPS; its texts outlive the agent */
	bool no_symbols;
	size_t symbol_bytes;  /* budget for symbol tables */
	size_t profile_bytes; /* bound of one profile in memory */
	nsec_t last_wait_ns;  /* for files that are still being read, at the last profile */
};

/* Of time off the CPU. */
struct agent_off_totals {
	struct off_totals kernel;
	uint64_t duration_ns; /* of the intervals that were accounted for */
	uint64_t states_ns[SONDE_SCHED_STATE_COUNT]; /* what the books say of those states, all rows */
	uint64_t unstacked_ns; /* of it without a stack */
	uint64_t refused, errors; /* strata or stacks without room here; intervals that could not be read */
};

/* The books of a run: what should have come, what came, what became of it. */
struct agent_totals {
	struct collect_totals collect;
	struct resolver_totals resolve;
	struct agent_off_totals off;
};

/* On failure `reason` holds one line: what, why, and what to do. */
int agent_open(const struct agent_options *options, struct agent **ret_agent, char *reason,
	       size_t reason_size);
void agent_close(struct agent *a);

/* See collect_add_target. */
int agent_add_target(struct agent *a, pid_t pid);

/* Starts the thread that reads files, then the sampling. */
int agent_start(struct agent *a);

/*
 * Runs `fn` in that thread and returns its result: for what belongs to a thread, such as
 * capabilities. Before the loop runs.
 */
int agent_call_in_reader(struct agent *a, int (*fn)(void));

/*
 * Samples for a while and throws the samples away, so that the files of what runs already are
 * opened and their unwind tables are loaded: until none was new for a tenth of a second, half a
 * second at most; on a machine so loaded that tables are still being read then, five. Blocks. For
 * recordings, right after agent_start.
 */
int agent_warm_up(struct agent *a);

/* The profile in the making ends at this moment (monotonic), however late it is taken. */
void agent_set_end(struct agent *a, nsec_t end);
int agent_fd(const struct agent *a);
int agent_poll(struct agent *a);
int agent_drain(struct agent *a);

/*
 * Drains and closes the books of an interval: the profile holds all samples since the last one
 * was taken (or agent_start), and comments with the totals of that time: counters as
 * "sonde.<name>=<number>", facts as "name: text". The caller frees it. With `last`
 * sampling stops first, and files that samples need are waited for; else it goes on, into the
 * next profile, as do samples whose files are still being read (comments carried_out, carried_in).
 */
int agent_take(struct agent *a, bool last, struct profile **ret_profile);

/* Since agent_start, or the end of the warm-up. */
void agent_totals(struct agent *a, struct agent_totals *ret_totals);

/* Another sampling frequency, from the next profile on: call it right after agent_take. */
void agent_set_frequency(struct agent *a, uint32_t hz);

/* See resolver_set_reading and resolver_drop_symbols. */
void agent_set_reading(struct agent *a, bool read_files);
void agent_drop_symbols(struct agent *a);

/* Bytes that the BPF maps occupy in the kernel. */
uint64_t agent_map_bytes(const struct agent *a);

/* One more comment for the profile in the making, such as a step of the governor. */
int agent_comment(struct agent *a, const char *text);
bool agent_is_hardware(const struct agent *a);
bool agent_has_user_stacks(const struct agent *a);
uint32_t agent_frequency(const struct agent *a);
size_t agent_cpu_count(const struct agent *a);

/* Name and text of a counter of collect_totals, for summaries. */
const char *counter_name(enum sonde_counter counter);
const char *counter_text(enum sonde_counter counter);

#endif
