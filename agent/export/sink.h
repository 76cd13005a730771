/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sinks: where profiles go. Each is one const struct in a table: how samples become the body of a
 * request, and what an answer means. Sending, waiting and splitting are the sender's (sender.h)
 * and the same for all. A new sink is a file with such a struct, a row in sinks.c and its
 * options.
 */
#ifndef AGENT_EXPORT_SINK_H
#define AGENT_EXPORT_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/export/series.h"
#include "agent/export/transport.h"
#include "base/buf.h"
#include "proto/profile.h"
#include "proto/push.h"

enum verdict {
	VERDICT_SENT,
	VERDICT_RETRY,  /* may be taken later */
	VERDICT_HOLD,   /* set-up is wrong (credentials, address): later, with long pauses */
	VERDICT_DOUBT,  /* a fault of the store or of the profile: a few times, then REJECT */
	VERDICT_SPLIT,  /* too large */
	VERDICT_REJECT, /* will never be taken */
	VERDICT_PLAIN,  /* not compressed, please */
	VERDICT_COUNT,
};

/* What all requests of this agent say about themselves. */
struct export_identity {
	const char *node;
	const char *version;
	const struct push_label *labels; /* set by the user; names valid everywhere */
	size_t label_count;
};

struct export_limits {
	size_t request_bytes; /* uncompressed body */
	size_t profile_bytes; /* uncompressed pprof of one profile */
	size_t profile_samples;
};

/* Elements [first, end) of the list's order: what one request is to hold. */
struct export_batch {
	const struct profile *p;
	const struct series_list *series;
	size_t first, end;
	const struct export_identity *identity;
	struct export_limits limits;
};

struct sink_type {
	const char *name;
	const char *path;           /* behind the address; NULL: no HTTP but `store` */
	const char *const *headers; /* NULL-ended, content type among them */
	bool gzip;                  /* the body goes out as Content-Encoding: gzip */
	uint64_t max_age_ns;        /* a window that began before is never taken; 0: no limit */
	size_t max_samples;         /* of one profile; 0: no limit */

	/* 0, -EFBIG when it passes the limits, or -errno. */
	int (*encode)(const struct export_batch *batch, struct buf *body);
	/* Of an answer (status > 0); `why` gets one line when it is not VERDICT_SENT. */
	enum verdict (*judge)(const struct http_response *r, char *why, size_t why_size);

	/* In place of both: all of the batch to a directory. 0 or -errno. */
	int (*store)(const struct export_batch *batch, const char *dir);
};

enum { SINK_OTLP, SINK_PARCA, SINK_PYROSCOPE, SINK_DIRECTORY, SINK_COUNT };

/* By the numbers above. */
extern const struct sink_type *const sink_types[SINK_COUNT];
extern const struct sink_type sink_otlp, sink_parca, sink_pyroscope, sink_directory;

#endif
