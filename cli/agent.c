/* SPDX-License-Identifier: Apache-2.0 */
/* Command line and configuration of `sonde agent`. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "agent/config.h"
#include "agent/daemon.h"
#include "agent/log.h"
#include "base/arena.h"
#include "cli/agent_sinks.h"
#include "cli/commands.h"

enum { CONFIG_BYTES = 1 << 20, REASON_BYTES = 1024 };

/* The daemon's options, and where they come from. */
struct agent_arguments {
	struct daemon_options daemon;
	const char *config;
	bool example;
};

#define FIELD(name) offsetof(struct agent_arguments, daemon.name)

const struct option_row agent_rows[] = {
	{ "config", 'c', OPTION_TEXT, "FILE", NULL, 0, 0, offsetof(struct agent_arguments, config),
	  "YAML file with any of these options; arguments and environment win over it",
	  .argv_only = true },
	{ "dir", 0, OPTION_TEXT, "DIR", "/var/lib/sonde", 0, 0, FIELD(dir),
	  "where profiles go; one agent per directory" },
	{ "freq", 'F', OPTION_NUMBER, "HZ", "19", 1, 10000, FIELD(frequency_hz),
	  "samples per second and CPU; 99 for more detail" },
	{ "collect", 0, OPTION_DURATION, "TIME", "10s", 1e8, 6e11, FIELD(collect_ns),
	  "length of a collection: what a crash may lose" },
	{ "window", 0, OPTION_DURATION, "TIME", "60s", 1e9, 864e11, FIELD(window_ns),
	  "length of a window: one profile each" },
	{ "max-size", 0, OPTION_NUMBER, "MIB", "1024", 1, 1e9, FIELD(max_size_mib),
	  "cap of all profiles; the oldest go first" },
	{ "max-age", 0, OPTION_DURATION, "TIME", "30d", 0, 0, FIELD(max_age_ns),
	  "profiles older than this go; a time without any counts an hour at most" },
	{ "listen", 0, OPTION_TEXT, "ADDRESS", "127.0.0.1:9464", 0, 0, FIELD(listen),
	  "address of /metrics and /healthz; off for none" },
	{ "cpu-budget", 0, OPTION_REAL, "PERCENT", "1", 0, 100, FIELD(cpu_budget),
	  "of all CPUs that sonde may use, BPF programs included; 0: no limit" },
	{ "memory", 0, OPTION_NUMBER, "MIB", "256", 0, 1e6, FIELD(memory_mib),
	  "that sonde may use, BPF maps included; 0: no limit" },
	{ "unwind-tables", 0, OPTION_NUMBER, "MIB", "32", 4, 4096, FIELD(unwind_mib),
	  "for unwind tables in the kernel, part of --memory" },
	{ "log-level", 0, OPTION_TEXT, "LEVEL", "info", 0, 0, FIELD(log_level),
	  "error, warn, info or debug" },
	{ "thread-names", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(thread_names),
	  "tell threads apart by their names" },
	{ "cpu-clock", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(cpu_clock),
	  "sample by time even where there is a hardware cycle counter" },
	{ "idle", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(idle), "keep samples of idle CPUs" },
	{ "no-demangle", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(no_demangle),
	  "names as they stand in the symbol tables" },
	{ "no-symbols", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(no_symbols),
	  "no names: build-ids and addresses only, for sonde symbolize" },
	{ "debug-dir", 0, OPTION_TEXT, "DIR", "/usr/lib/debug", 0, 0, FIELD(debug_dir),
	  "where separate debug files are" },
	{ "symfs", 0, OPTION_TEXT, "DIR", "", 0, 0, FIELD(symfs),
	  "a folder with unstripped copies of files at their paths, for names (\"\": none)" },
	{ "no-sched", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(no_sched),
	  "no scheduler accounting: no series and no wall-clock profiles of all threads" },
	{ "sched-threads", 0, OPTION_NUMBER, "COUNT", "0", 0, 4194304, FIELD(sched_threads),
	  "threads with books of their own, 0.7 kB each; 0: twice as many as there are" },
	{ "sched-groups", 0, OPTION_NUMBER, "COUNT", "64", 1, 10000, FIELD(sched_groups),
	  "containers and units with series of their own on /metrics" },
	SINK_ROWS,
	{ "example-config", 0, OPTION_FLAG, NULL, NULL, 0, 0,
	  offsetof(struct agent_arguments, example), "print a configuration file with all defaults",
	  .argv_only = true },
	{ 0 },
};

/* What is needed to read everything again at SIGHUP. */
struct sources {
	int argc;
	char **argv;
	struct arena memory[2]; /* texts of the file: of the options in force, and of the next */
	int in_use;
};

static int check(const struct agent_arguments *a, char *reason, size_t size)
{
	enum log_level level;

	if (log_parse_level(a->daemon.log_level, &level)) {
		snprintf(reason, size, "log-level: '%s' is none of error, warn, info, debug",
			 a->daemon.log_level);
		return -EINVAL;
	}
	if (a->daemon.window_ns < a->daemon.collect_ns) {
		snprintf(reason, size, "window: must not be shorter than collect");
		return -EINVAL;
	}
	return exporter_check(&a->daemon.export, reason, size);
}

/* Defaults, then the file, then the environment and the arguments again on top of it. */
static int load(struct sources *s, struct agent_arguments *ret, int *ret_rest, char *reason,
		size_t size)
{
	struct agent_arguments a = { 0 };
	struct arena *memory = &s->memory[!s->in_use];
	int err = options_parse(agent_rows, s->argc, s->argv, &a, ret_rest, reason, size);

	if (!err && a.config) {
		arena_fini(memory);
		arena_init(memory, CONFIG_BYTES);
		err = config_load(a.config, agent_rows, &a, memory, reason, size);
		if (!err)
			err = options_override(agent_rows, s->argc, s->argv, &a, reason, size);
	}
	if (!err)
		err = check(&a, reason, size);
	if (!err) {
		s->in_use = !s->in_use;
		*ret = a;
	}
	return err;
}

static int reload(void *context, struct daemon_options *ret_options, char *reason, size_t size)
{
	struct agent_arguments fresh;
	int rest, err = load(context, &fresh, &rest, reason, size);

	if (!err)
		*ret_options = fresh.daemon;
	return err;
}

int agent_main(int argc, char **argv)
{
	struct sources sources = { .argc = argc, .argv = argv };
	struct agent_arguments arguments = { 0 };
	char reason[REASON_BYTES];
	int rest, err = command_options("agent", argc, argv, &arguments, &rest);

	signal(SIGPIPE, SIG_IGN); /* a log that nobody reads any more is no reason to end */
	if (err)
		return err == 1 ? 0 : 2;
	if (arguments.example) {
		config_example(agent_rows, stdout);
		return 0;
	}
	if (rest < argc) {
		fprintf(stderr, "sonde agent: '%s' is no option; see --help\n", argv[rest]);
		return 2;
	}
	err = load(&sources, &arguments, &rest, reason, sizeof(reason));
	if (err) {
		fprintf(stderr, "sonde agent: %s\n", reason);
		return 2;
	}
	err = daemon_run(&arguments.daemon, reload, &sources);
	for (int i = 0; i < 2; i++)
		arena_fini(&sources.memory[i]);
	return err;
}
