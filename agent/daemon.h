/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The always-on agent: the engine, a journal, a store, a budget and a metrics page, in one loop
 * that runs until SIGTERM. Each collection is journalled before the next begins; each
 * window of collections becomes one profile in the store.
 */
#ifndef AGENT_DAEMON_H
#define AGENT_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/export/exporter.h"

struct daemon_options {
	const char *dir;        /* the store */
	const char *listen;     /* address of the metrics page; "off": none */
	const char *log_level;
	const char *debug_dir;
	const char *symfs;
	uint64_t frequency_hz;
	uint64_t collect_ns;    /* length of a collection */
	uint64_t window_ns;     /* length of a window */
	uint64_t max_size_mib;  /* cap of the store */
	uint64_t max_age_ns;    /* cap of the store */
	double cpu_budget;      /* percent of all CPUs; 0: no limit */
	uint64_t unwind_mib;    /* for unwind tables in the kernel */
	uint64_t memory_mib;    /* cap of the agent with its BPF maps; 0: no limit */
	bool cpu_clock;
	bool idle;
	bool thread_names;
	bool no_demangle;
	bool no_symbols;
	bool no_sched;          /* no scheduler accounting */
	uint64_t sched_threads; /* with books of their own; 0: by how many there are */
	uint64_t sched_groups;  /* of its series */
	struct exporter_options export; /* delivery to stores */
};

/* Reads the configuration again: 0 and all options, or -errno and one line in `reason`. */
typedef int (*daemon_reload_fn)(void *context, struct daemon_options *ret_options, char *reason,
				size_t reason_size);

/* Runs until SIGTERM or SIGINT. Returns the exit status: 0, or 1 after an error in the log. */
int daemon_run(const struct daemon_options *options, daemon_reload_fn reload, void *context);

#endif
