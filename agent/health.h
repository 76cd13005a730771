/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this kernel and these privileges allow: one row per check in a table, each with a
 * finding and, where something is missing, what to do. `sonde doctor` shows them, the agent
 * logs those that are not ok. Checks only look: they change nothing, and take < 1 s in all.
 */
#ifndef AGENT_HEALTH_H
#define AGENT_HEALTH_H

#include <stddef.h>

enum health_status {
	HEALTH_OK,
	HEALTH_NOTE, /* works, good to know */
	HEALTH_WARN, /* something is degraded: `lost` says what */
	HEALTH_FAIL, /* sonde cannot record at all */
};

struct health_finding {
	const char *id; /* stable, for machines: "btf", "cap_bpf", "nmi_watchdog" ... */
	const char *title;
	enum health_status status;
	char found[256]; /* what is the case */
	char lost[256];  /* what does not work for it; "" if ok */
	char cure[256];  /* what to do; "" if ok */
};

/* Where to look: tests replace the roots. */
struct health_roots {
	const char *proc; /* "/proc" */
	const char *sys;  /* "/sys" */
	const char *debug_dir;
};

/* Runs all checks in table order. Returns how many findings were written (<= max). */
size_t health_check(const struct health_roots *roots, struct health_finding *findings, size_t max);

/* Whose numbers of processes are ours, and those of /proc: the kernel records the first's. */
enum pid_namespace {
	PID_NAMESPACE_FIRST,
	PID_NAMESPACE_FIRST_PROC, /* ours is another, but /proc shows the first */
	PID_NAMESPACE_OTHER,
	PID_NAMESPACE_UNKNOWN,
};

enum pid_namespace health_find_pid_namespace(const char *proc_root);

const char *health_status_name(enum health_status status);

#endif
