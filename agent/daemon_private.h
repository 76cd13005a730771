/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the daemon share: life (daemon.c), windows, metrics. */
#ifndef AGENT_DAEMON_PRIVATE_H
#define AGENT_DAEMON_PRIVATE_H

#include "agent/agent.h"
#include "agent/daemon.h"
#include "agent/daemon_sched.h"
#include "agent/governor.h"
#include "agent/http.h"
#include "agent/log.h"
#include "agent/loop.h"
#include "agent/store/journal.h"
#include "agent/store/store.h"
#include "agent/usage.h"
#include "base/buf.h"

/* A kind of profile on its way: collections in the journal, windows in the store. */
struct lane {
	const char *dir; /* of its journal */
	struct journal *journal;
	uint64_t window;         /* number of the window in the making; 0: none yet */
	struct profile *pending; /* collections that could not be journalled yet */
	uint64_t windows;        /* that are in the store */
	uint64_t lost;           /* sum of what was given up: samples, or nanoseconds of threads */
};

enum { LANE_CPU, LANE_WALL, LANE_COUNT };

struct daemon {
	struct daemon_options options;
	daemon_reload_fn reload;
	void *reload_context;
	char *dir, *listen, *debug_dir, *symfs; /* the options' texts that outlive a reload */
	char *wall_dir;

	struct loop *loop;
	struct agent *agent;
	struct store *store;
	struct lane lanes[LANE_COUNT];
	struct daemon_sched *sched; /* NULL: no scheduler accounting */
	struct exporter *exporter; /* NULL: no sinks */
	struct http_server *http; /* NULL: no metrics page */
	struct governor governor;
	struct log_site level_sites[GOVERNOR_LEVELS];

	nsec_t heartbeat;        /* monotonic; when the loop last turned */

	/* The last interval, for the governor. */
	struct usage usage;
	uint64_t bpf_ns;
	nsec_t measured;

	struct {
		uint64_t collections, reloads, reload_errors;
		uint64_t journal_errors, store_errors; /* tries that failed */
		uint64_t late_collections;             /* by more than an interval */
		nsec_t longest_stall;
	} totals;
};

/*
 * Options loaded again: all of `fresh` counts from now on but what parts of the agent took over at the
 * start. Names of those that would have changed are put into `kept`, with commas; "" if there are none.
 */
void daemon_options_renew(struct daemon_options *options, const struct daemon_options *fresh,
			  char *kept, size_t size);

/* One collection of each kind: into the journal; closes the window when time has gone on. */
void windows_collect(struct daemon *d, bool last);

/* All windows in the journal become profiles of the store. */
void windows_flush(struct daemon *d);

/* What the interval since the last call used, as the governor wants it. */
struct governor_usage daemon_measure(struct daemon *d);

/* The rung of the governor's ladder, put in force; said in the log and in the next profile. */
void daemon_apply_level(struct daemon *d, const char *why);

/* After a collection. */
void daemon_govern(struct daemon *d);

/* Delivery: open it, say what it has to say, its metrics, end it. */
int daemon_export_open(struct daemon *d, char *reason, size_t size);
void daemon_export_start(struct daemon *d);
void daemon_export_notices(struct daemon *d);
void daemon_export_metrics(const struct daemon *d, struct buf *out);
void daemon_export_close(struct daemon *d);

/* The pages. Return an HTTP status. */
int daemon_metrics_page(void *context, struct buf *body);
int daemon_health_page(void *context, struct buf *body);

#endif
