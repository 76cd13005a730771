/* SPDX-License-Identifier: Apache-2.0 */
/* Life of the always-on agent: set-up, loop, budget, reload, end; see daemon.h. */
#include "agent/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "agent/daemon_private.h"
#include "agent/health.h"
#include "agent/log.h"
#include "agent/notify.h"
#include "agent/privileges.h"
#include "agent/version.h"

enum {
	PROFILE_BYTES = 64 << 20,
	MAX_FINDINGS = 64,
	REASON_BYTES = 2048,
};

static const nsec_t HEARTBEAT = NSEC_PER_SEC;
static const nsec_t LAST_WAIT = 2 * NSEC_PER_SEC; /* at the end; all of it may take 5 s */

/* ---- what the loop calls ---- */

static void on_ring(void *context)
{
	struct daemon *d = context;
	int err = agent_poll(d->agent);

	if (err)
		log_warn("ring buffer: %s; tried again", strerror(-err));
}

static void on_http(void *context)
{
	struct daemon *d = context;

	http_run(d->http);
}

static void on_heartbeat(void *context)
{
	struct daemon *d = context;
	nsec_t now = clock_monotonic(), stall = now - d->heartbeat;

	if (stall > HEARTBEAT && stall - HEARTBEAT > d->totals.longest_stall)
		d->totals.longest_stall = stall - HEARTBEAT;
	d->heartbeat = now;
	if (d->http)
		http_run(d->http);
	daemon_export_notices(d);
	if (notify_watchdog_interval())
		notify_send("WATCHDOG=1");
}

static void on_collect(void *context)
{
	struct daemon *d = context;

	nsec_t since = clock_monotonic() - d->measured;

	if (d->measured && since > 2 * d->options.collect_ns) {
		d->totals.late_collections++;
		log_info("collection: %.1f s after the last one: overloaded, or suspended",
			 (double)since / (double)NSEC_PER_SEC);
	}
	windows_collect(d, false);
	daemon_govern(d);
}

static void use_options(struct daemon *d)
{
	enum log_level level = LOG_INFO;

	log_parse_level(d->options.log_level, &level);
	log_set_level(level);
	d->governor.cpu_budget = d->options.cpu_budget / 100;
	d->governor.memory_cap = d->options.memory_mib << 20;
}

/* Only what can change without a restart is taken over. */
static void reload(struct daemon *d)
{
	struct daemon_options fresh = { 0 };
	char reason[REASON_BYTES], kept[256];

	if (d->reload(d->reload_context, &fresh, reason, sizeof(reason))) {
		d->totals.reload_errors++;
		log_warn("configuration refused, the old one stays: %s", reason);
		return;
	}
	windows_collect(d, false); /* a profile has one frequency */
	daemon_options_renew(&d->options, &fresh, kept, sizeof(kept));
	if (kept[0])
		log_warn("configuration: %s: change with a restart only", kept);
	if (!fresh.no_sched && !d->sched)
		log_warn("configuration: scheduler accounting that was off, or refused, at the start "
			 "comes with a restart only");
	if (exporter_differs(d->exporter, &fresh.export))
		log_warn("configuration: sinks change with a restart only");
	use_options(d);
	store_set_caps(d->store, fresh.max_size_mib << 20, fresh.max_age_ns);
	daemon_apply_level(d, "configuration");
	d->totals.reloads++;
	log_info("configuration loaded");
}

static void on_signal(void *context, int signal)
{
	struct daemon *d = context;

	if (signal == SIGHUP)
		reload(d);
	else
		loop_stop(d->loop, 0);
}

/* ---- set-up and end ---- */

static void log_findings(const struct daemon *d)
{
	const struct health_roots roots = { "/proc", "/sys", d->options.debug_dir };
	struct health_finding *findings = calloc(MAX_FINDINGS, sizeof(*findings));
	size_t count = findings ? health_check(&roots, findings, MAX_FINDINGS) : 0;

	for (size_t i = 0; i < count; i++) {
		const struct health_finding *f = &findings[i];
		struct log_site site = { 0 };

		if (f->status == HEALTH_WARN || f->status == HEALTH_FAIL)
			log_write(&site, LOG_WARN, "%s: %s; %s; %s", f->title, f->found, f->lost,
				  f->cure);
	}
	free(findings);
}

static int open_storage(struct daemon *d, char *reason, size_t size)
{
	struct store_options options = {
		.dir = d->options.dir,
		.max_bytes = d->options.max_size_mib << 20,
		.max_age_ns = d->options.max_age_ns,
	};
	int err = store_open(&options, &d->store, reason, size);

	d->lanes[LANE_CPU].dir = d->options.dir;
	d->lanes[LANE_WALL].dir = d->wall_dir;
	for (int i = 0; !err && i < LANE_COUNT; i++) {
		err = journal_open(d->lanes[i].dir, &d->lanes[i].journal);
		if (err)
			snprintf(reason, size, "%s/journal: %s", d->lanes[i].dir, strerror(-err));
	}
	return err ? err : daemon_export_open(d, reason, size);
}

static int open_agent(struct daemon *d, char *reason, size_t size)
{
	struct agent_options options = {
		.collect = {
			.frequency_hz = (uint32_t)d->options.frequency_hz,
			.no_hardware = d->options.cpu_clock,
			.keep_idle = d->options.idle,
			.thread_names = d->options.thread_names,
			.unwind_bytes = d->options.unwind_mib << 20,
		},
		.debug_dir = d->options.debug_dir,
		.symfs = d->options.symfs,
		.no_demangle = d->options.no_demangle,
		.no_symbols = d->options.no_symbols,
		.symbol_bytes = AGENT_SYMBOL_BYTES,
		.profile_bytes = PROFILE_BYTES,
		.last_wait_ns = LAST_WAIT,
	};

	return agent_open(&options, &d->agent, reason, size);
}

/* Sampling goes on without it. */
static void open_sched(struct daemon *d)
{
	struct daemon_sched_options options = { d->options.sched_threads, d->options.sched_groups };
	char reason[REASON_BYTES];

	if (d->options.no_sched)
		return;
	if (daemon_sched_open(&options, d->loop, &d->sched, reason, sizeof(reason)))
		log_warn("scheduler accounting is off: %s", reason);
	d->governor.has_sched = d->sched;
}

static int open_http(struct daemon *d, char *reason, size_t size)
{
	static const struct http_route routes[] = {
		{ "/metrics", "text/plain; version=0.0.4; charset=utf-8", daemon_metrics_page },
		{ "/healthz", "text/plain; charset=utf-8", daemon_health_page },
		{ 0 },
	};

	if (strcmp(d->options.listen, "off") == 0)
		return 0;
	return http_open(d->options.listen, routes, d, &d->http, reason, size);
}

static int fill_loop(struct daemon *d)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, 0 };
	int err = loop_new(&d->loop);

	if (!err)
		err = loop_add_signals(d->loop, signals, on_signal, d);
	if (!err)
		err = loop_add_fd(d->loop, agent_fd(d->agent), on_ring, d);
	if (!err && d->http)
		err = loop_add_fd(d->loop, http_fd(d->http), on_http, d);
	if (!err)
		err = loop_add_timer(d->loop, HEARTBEAT, HEARTBEAT, on_heartbeat, d);
	if (!err)
		err = loop_add_timer(d->loop, d->options.collect_ns, d->options.collect_ns,
				     on_collect, d);
	return err;
}

/*
 * What is not needed any more goes; that it could not is no reason to stop. Capabilities belong to
 * a thread, the filter goes to all.
 */
static void drop_privileges(struct daemon *d)
{
	int err = agent_call_in_reader(d->agent, privileges_drop);

	if (!err)
		err = privileges_drop();

	if (err)
		log_warn("privileges: not dropped: %s", strerror(-err));
	err = privileges_seccomp();
	if (err)
		log_warn("seccomp: no filter: %s", strerror(-err));
}

static int prepare(struct daemon *d, char *reason, size_t size)
{
	int err = open_storage(d, reason, size);

	if (!err)
		err = open_agent(d, reason, size);
	if (!err)
		err = open_http(d, reason, size);
	if (err)
		return err;
	log_findings(d);
	windows_flush(d); /* what a crash left */
	err = fill_loop(d);
	/* Loading its programs takes time, in which no file of the sampled processes would be opened. */
	if (!err)
		open_sched(d);
	if (!err)
		err = agent_start(d->agent);
	if (err)
		snprintf(reason, size, "cannot start: %s", strerror(-err));
	return err;
}

static void finish(struct daemon *d)
{
	notify_send("STOPPING=1");
	windows_collect(d, true);
	for (int i = 0; i < LANE_COUNT; i++) {
		if (d->lanes[i].pending)
			log_error("journal: %s: the last collections are lost", d->lanes[i].dir);
	}
	log_info("stopped");
}

static void release(struct daemon *d)
{
	daemon_export_close(d);
	loop_free(d->loop);
	http_close(d->http);
	daemon_sched_close(d->sched);
	agent_close(d->agent);
	for (int i = 0; i < LANE_COUNT; i++) {
		journal_close(d->lanes[i].journal);
		profile_free(d->lanes[i].pending);
	}
	store_close(d->store);
	free(d->dir);
	free(d->wall_dir);
	free(d->listen);
	free(d->debug_dir);
	free(d->symfs);
	free(d);
}

/* What parts of the agent hold on to outlives a reload; the texts of a configuration file do not. */
static int own_texts(struct daemon *d, const struct daemon_options *options)
{
	d->options = *options;
	d->options.dir = d->dir = strdup(options->dir);
	d->options.listen = d->listen = strdup(options->listen);
	d->options.debug_dir = d->debug_dir = strdup(options->debug_dir);
	d->options.symfs = d->symfs = strdup(options->symfs);
	if (asprintf(&d->wall_dir, "%s/wall", options->dir) < 0)
		d->wall_dir = NULL;
	return d->dir && d->listen && d->debug_dir && d->symfs && d->wall_dir ? 0 : -ENOMEM;
}

int daemon_run(const struct daemon_options *options, daemon_reload_fn reload_fn, void *context)
{
	struct daemon *d = calloc(1, sizeof(*d));
	char reason[REASON_BYTES] = "";
	int err;

	if (!d)
		return 1;
	err = own_texts(d, options);
	d->reload = reload_fn;
	d->reload_context = context;
	d->heartbeat = clock_monotonic();
	use_options(d);
	setpriority(PRIO_PROCESS, 0, AGENT_NICE); /* needed most where the machine is overloaded */
	umask(0077); /* profiles tell about all users' processes */
	if (!err)
		err = prepare(d, reason, sizeof(reason));
	if (err) {
		log_error("%s", reason[0] ? reason : strerror(-err));
		release(d);
		return 1;
	}
	drop_privileges(d);
	daemon_export_start(d);
	daemon_measure(d);
	log_info("sonde %s: %s at %u Hz on %zu CPUs, into %s", SONDE_VERSION,
		 agent_is_hardware(d->agent) ? "cycles" : "cpu-clock", agent_frequency(d->agent),
		 agent_cpu_count(d->agent), d->options.dir);
	notify_send("READY=1");
	d->heartbeat = clock_monotonic(); /* getting ready is no stall */
	err = loop_run(d->loop);
	if (err)
		log_error("loop: %s", strerror(-err));
	finish(d);
	release(d);
	return err ? 1 : 0;
}
