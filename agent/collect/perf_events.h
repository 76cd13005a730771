/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One perf event for each online CPU, the clock that drives the sampling program. Follows CPUs
 * that come and go. Hardware cycles by frequency; cpu-clock where there is no PMU.
 */
#ifndef AGENT_COLLECT_PERF_EVENTS_H
#define AGENT_COLLECT_PERF_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_events;

/* What the events themselves say has happened, over their whole life. */
struct perf_totals {
	uint64_t value;      /* ns for cpu-clock, cycles for hardware; closed CPUs included */
	uint64_t enabled_ns; /* sum over CPUs */
	uint64_t running_ns; /* less than enabled_ns: the counter was shared (multiplexing) */
};

struct perf_events_options {
	uint32_t frequency_hz;
	bool no_hardware;       /* cpu-clock even where there is a PMU */
	const char *cpu_online; /* usually "/sys/devices/system/cpu/online" */
	const char *max_rate;   /* usually "/proc/sys/kernel/perf_event_max_sample_rate" */
};

/*
 * Opens the events, disabled, with `prog_fd` attached. A frequency over the kernel's limit is
 * cut to it. -EACCES / -EPERM without privilege, other -errno; `reason` says what and why.
 */
int perf_events_open(const struct perf_events_options *options, int prog_fd,
		     struct perf_events **ret_events, char *reason, size_t reason_size);
void perf_events_close(struct perf_events *e);

int perf_events_enable(struct perf_events *e);
void perf_events_disable(struct perf_events *e);

/*
 * Samples at another frequency (cut to the kernel's limit) from now on: opens all events anew.
 * CPUs where that fails are not sampled, and tried again by perf_events_follow.
 */
void perf_events_set_frequency(struct perf_events *e, uint32_t hz);

/* Opens events of CPUs that came online, retires those of CPUs that went. Once a second. */
void perf_events_follow(struct perf_events *e);

void perf_events_totals(struct perf_events *e, struct perf_totals *ret_totals);

/*
 * The running time of each CPU's events in samples, at the frequencies of then, into
 * expected[0..cpu_count-1]: cpu-clock only.
 */
void perf_events_expected(struct perf_events *e, uint64_t *expected, size_t cpu_count);

bool perf_events_is_hardware(const struct perf_events *e);
uint32_t perf_events_frequency(const struct perf_events *e); /* in force, in Hz */
size_t perf_events_cpu_count(const struct perf_events *e);   /* sampled now */
uint64_t perf_events_failed_cpus(const struct perf_events *e); /* came online, not opened */

#endif
