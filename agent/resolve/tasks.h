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
#include "agent/resolve/reader.h"
#include "base/clock.h"
#include "symbolizer/symbolizer.h"

struct known_process {
	uint32_t tgid, tid, ns_tgid, euid;
	uint64_t start_ticks;
	char *comm; /* clean text */
	struct sym_jit *jit;          /* the reader's while jit_is_away */
	bool jit_is_away;
	bool jit_wants_look;          /* the reader had no room for it */
	nsec_t jit_reading;           /* away, or without room there, since then; 0: neither */
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
	struct reader *reader;
	size_t jits_away;
	struct sym_jit_bad jit_bad; /* of all files that the reader has looked at */
};

/* The reader outlives the tables' last use. */
void task_tables_init(struct task_tables *t, const char *proc_root, bool no_demangle,
		      struct reader *reader);
void task_tables_fini(struct task_tables *t);

/* Takes in a process, thread name or cgroup event: 0 or -errno when it finds no room. */
int task_tables_event(struct task_tables *t, const struct event *event, uint32_t now);

/*
 * Has the reader look at the files of the process's JIT code, at most once a drain, and again if it
 * had no room. They are never those of another process: not after PID reuse, nor after an
 * exec that has been seen. from_ns: no sample of this drain was taken earlier (CLOCK_MONOTONIC).
 */
void process_look_at_jit(struct task_tables *t, uint64_t id, struct known_process *process,
			 uint32_t now, uint64_t from_ns);

/* Whether the look has not ended, and is worth waiting for: at most half a minute. */
bool process_jit_is_read(const struct known_process *process);

/*
 * The process's JIT code as of the last look; NULL before its end, without one, and if all processes'
 * names together would be over 128 MiB.
 */
struct sym_jit *process_jit(const struct known_process *process);

/* Takes in, and takes over, the JIT code that the reader has looked at. */
void task_tables_take_jit(struct task_tables *t, const struct read_result *result, uint32_t now);

#endif
