/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delivery: windows go into a spool on disk, and from there to each sink by a thread of its own, so
 * that a dead one holds up neither the loop nor the others. At least once: a window leaves
 * the spool when every sink has taken it (or has refused it for good, which is set aside and
 * counted), or when the spool's cap drops it. Nothing here logs: what there is to say is
 * fetched with exporter_next_notice.
 */
#ifndef AGENT_EXPORT_EXPORTER_H
#define AGENT_EXPORT_EXPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/export/credentials.h"
#include "agent/export/sink.h"
#include "agent/export/spool.h"
#include "agent/export/transport.h"
#include "base/clock.h"

struct sink_options {
	const char *target; /* URL or folder; NULL: not in use */
	const char *path;   /* in place of the sink's own, or NULL */
	struct credentials credentials;
};

struct exporter_options {
	const char *node;   /* NULL: the host name */
	const char *labels; /* "name=text,name=text" for all series, or NULL */
	const char *version;
	uint64_t spool_mib;
	uint64_t spread_ns;    /* windows wait up to this long, each node for a time of its own */
	uint64_t gather_ns;    /* light windows wait up to this long for others; 0: none does */
	uint64_t retry_max_ns; /* longest pause between two tries */
	uint64_t rate_kib;     /* bytes per second and sink, in KiB; 0: no limit */
	uint64_t max_series;   /* of a window */
	uint64_t request_kib;  /* largest body, uncompressed */
	uint64_t max_age_ns;   /* for Pyroscope: the ingestion window */
	struct http_settings http;
	struct sink_options sinks[SINK_COUNT];
};

struct exporter;

/* Whether any sink is in use. */
bool exporter_is_wanted(const struct exporter_options *options);

/* Checks what a person wrote: 0 or -EINVAL with one line in `reason`. Touches nothing. */
int exporter_check(const struct exporter_options *options, char *reason, size_t reason_size);

/*
 * Opens the spool in `dir`, whose lock the caller holds. Texts of the options are copied. 0 or
 * -errno with one line in `reason`.
 */
int exporter_open(const char *dir, const struct exporter_options *options,
		  struct exporter **ret_exporter, char *reason, size_t reason_size);

/* Starts the threads, which have the caller's privileges: after they were dropped. */
int exporter_start(struct exporter *x);

/* Hands over a window; it is on disk on return. 0, or -errno: the caller still has it. */
int exporter_add(struct exporter *x, const struct profile *p);

/*
 * Ends the threads and frees all. Sinks that work get up to `grace` to send what is there; the
 * rest stays in the spool.
 */
void exporter_close(struct exporter *x, nsec_t grace);

/* Whether other sinks, credentials or TLS files are asked for than those in use. x: or NULL. */
bool exporter_differs(const struct exporter *x, const struct exporter_options *options);

enum notice_level { NOTICE_INFO, NOTICE_WARN };

/* The next thing to say, one line: true and the text. */
bool exporter_next_notice(struct exporter *x, enum notice_level *ret_level, char *text,
			  size_t text_size);

struct sink_totals {
	const char *name;
	uint64_t requests, bytes; /* that went out, bodies as sent */
	uint64_t windows;         /* delivered in full */
	uint64_t samples;         /* delivered, of profiles that count them */
	uint64_t wall_ns;         /* delivered, of wall-clock profiles: time of threads */
	uint64_t retries, splits;
	uint64_t refused;                  /* set aside as dead letters */
	uint64_t dropped_cap, dropped_age; /* windows */
	uint64_t dropped_disk; /* refused, and not set aside since the disk refused, too */
	uint64_t damaged;      /* windows that could not be read */
	uint64_t folded_series;
	uint64_t waiting;      /* windows */
	uint64_t failures;     /* in a row; 0: it works */
	double last_success_s; /* since the epoch; 0: never */
};

/* The n-th sink in use; false past the last. */
bool exporter_totals(struct exporter *x, size_t n, struct sink_totals *ret_totals);
void exporter_spool_totals(struct exporter *x, struct spool_totals *ret_totals);

#endif
