/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of health: the facts that checks judge, and the checks by subject. A check sees only
 * what stands in struct health_world, so tests can give it any machine.
 */
#ifndef AGENT_HEALTH_PRIVATE_H
#define AGENT_HEALTH_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/health.h"
#include "agent/privileges.h"
#include "base/buf.h"

/* Files below the roots, and what the kernel answers: 0 or -errno of the call that was tried. */
struct health_world {
	struct health_roots roots;
	int map_create;    /* a BPF hash map */
	int perf_clock;    /* sampling one CPU by its clock */
	int perf_hardware; /* the same by the cycle counter */
};

typedef void health_fn(const struct health_world *w, struct health_finding *f, int argument);

/* All checks in table order; health_check() is this with the real answers. */
size_t health_examine(const struct health_world *world, struct health_finding *findings,
		      size_t max);

/* ---- what checks are made of (health_read.c) ---- */

void health_ok(struct health_finding *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void health_bad(struct health_finding *f, enum health_status status, const char *lost,
		const char *cure, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* A file below a root, of large ones the head, NUL-terminated; the caller frees it after a 0. */
int health_read_file(const char *root, const char *path, struct buf *text);

/* The first line of a file below a root, cut to size: 0 or -errno. */
int health_read_line(const char *root, const char *path, char *line, size_t size);

/* A file that holds one number: 0, -errno, or -EINVAL for anything else. */
int health_read_number(const char *root, const char *path, int64_t *ret_value);

/* As /proc/self/status says; CAP_SYS_ADMIN stands in where the kernel lets it. */
bool health_has_capability(const struct health_world *w, int number);
bool health_has_privilege(const struct health_world *w, enum privilege p);

/* Whether the kernel's release is older; false if it is not known. */
bool health_kernel_is_before(const struct health_world *w, int major, int minor);

/* ---- checks, by file ---- */

enum { HEALTH_JIT_JAVA, HEALTH_JIT_NODE };

/* health_kernel.c */
health_fn health_kernel, health_btf, health_bpf, health_lockdown, health_user_stacks;
/* health_perf.c */
health_fn health_perf_events, health_paranoid, health_pmu, health_nmi_watchdog, health_sample_rate,
	health_cpu_time;
/* health_access.c; argument of health_capability: enum privilege */
health_fn health_capability, health_kernel_names, health_open_files, health_memlock,
	health_pid_namespace;
/* health_system.c */
health_fn health_tracefs, health_cgroups, health_debug_files;
/* health_jit.c; argument: HEALTH_JIT_... */
health_fn health_jit;

#endif
