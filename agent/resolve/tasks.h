/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes, thread names and cgroups that counts refer to, the JIT code of processes, and which
 * cgroups are wanted.
 */
#ifndef AGENT_RESOLVE_TASKS_H
#define AGENT_RESOLVE_TASKS_H

#include <stdbool.h>

#include "agent/collect/events.h"
#include "agent/resolve/container.h"
#include "agent/resolve/known.h"
#include "symbolizer/symbolizer.h"

struct known_process {
	uint32_t tgid, tid, ns_tgid, euid;
	uint64_t start_ticks;
	char *comm; /* clean text */
	struct sym_jit *jit;
	uint32_t jit_looked;          /* drain of the last look; 0: never */
	size_t jit_bytes, *jit_total; /* of these names, and of those of all processes */
};

/* All clean text. Of the two hierarchies of a hybrid host, the one that tells more. */
struct known_cgroup {
	char *path;
	char *container_id, *pod_uid, *unit; /* see container.h; NULL: none */
	bool refused;                        /* the filter does not want it */
};

struct task_tables {
	struct known_table processes;
	struct known_table threads; /* objects: char *, clean text */
	struct known_table cgroups; /* objects: struct known_cgroup * */
	struct cgroup_filter filter;
	struct forget_list refused; /* cgroups to be refused by the kernel side too */
	struct map current; /* tgid -> id of the process record that came last: the newest exec */
	const char *proc_root;
	bool no_demangle;
	size_t jit_bytes; /* of all processes */
};

void task_tables_init(struct task_tables *t, const char *proc_root, bool no_demangle);
void task_tables_fini(struct task_tables *t);

/* Takes in a process, thread name or cgroup event: 0 or -errno when it finds no room. */
int task_tables_event(struct task_tables *t, const struct event *event, uint32_t now);

/*
 * The process's JIT code, NULL if all processes' names together would be over 128 MiB. Its files
 * are looked at once a drain, at most.
 * They are never those of another process: not after PID reuse, nor after an exec that has been
 * seen. from_ns: no sample of this drain was taken earlier (CLOCK_MONOTONIC).
 */
struct sym_jit *process_jit(struct task_tables *t, uint64_t id, struct known_process *process,
			    uint32_t now, uint64_t from_ns);

#endif
