/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What exporter.c (life, spool, totals), sender.c (one sink's thread) and deliver.c (one window)
 * share. All fields of the exporter and the totals, cursor and notices of senders are under
 * `lock`; all else of a sender is its thread's.
 */
#ifndef AGENT_EXPORT_EXPORTER_PRIVATE_H
#define AGENT_EXPORT_EXPORTER_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "agent/export/backoff.h"
#include "agent/export/exporter.h"
#include "agent/export/pieces.h"

enum { NOTICE_BYTES = 640 };

struct notice {
	bool there;
	enum notice_level level;
	char text[NOTICE_BYTES];
};

struct sender {
	struct exporter *x;
	const struct sink_type *type;
	struct sink_options options;
	char *url;

	/* Under the exporter's lock. */
	uint64_t cursor; /* the window to send next */
	struct sink_totals totals;
	struct notice state, refusal;
	bool running;
	bool started; /* the opener's: there is a thread to join */

	/* The thread's own. */
	pthread_t thread;
	struct http_client *client;
	struct backoff backoff;
	bool plain;              /* the store wants no compression */
	nsec_t spread;           /* this node's */
	uint64_t gather_number;  /* the first window that waits for others, and since when */
	nsec_t gather_since;
	nsec_t not_before;       /* the rate allows no request before this */
	nsec_t failing_since;    /* 0: it works */
	enum verdict failing;    /* as was said last */
	bool all_refused;        /* by the last window that had an answer */
	uint64_t cursor_written; /* on disk, and when */
	nsec_t cursor_time;
	char why[HTTP_ERROR_BYTES]; /* of the last answer that was no success */
};

struct exporter {
	struct exporter_options options; /* constant from here to the lock */
	struct exporter_texts *texts;    /* of the options */
	struct export_identity identity;
	struct push_label labels[EXPORT_MAX_USER_LABELS];
	char *label_text, *node;

	pthread_mutex_t lock;
	pthread_cond_t changed; /* a window was added, or it is time to stop */
	struct spool *spool;
	char *spool_dir; /* constant */
	nsec_t added;    /* when the newest window came */
	uint64_t added_number;
	uint64_t heavy_end; /* windows below do not wait for others: there is one that is not light */
	uint64_t at_once_below; /* constant: windows of an earlier life, and the first of this */
	bool draining, stopping;
	atomic_bool abort; /* for transfers: end at once */

	struct sender senders[SINK_COUNT];
	size_t sender_count;
};

/* A sender's thread; `context` is the sender. */
void *sender_run(void *context);

/*
 * Sends one window, or several that go together (gather.h), however long it takes: true when they
 * are done with (delivered, set aside, too old, dropped), and the number to go on with; false
 * when it is time to stop.
 */
bool sender_deliver(struct sender *s, const struct spool_chunk *chunk, uint64_t *ret_next);

/*
 * Waits until `deadline` (monotonic): false if it is time to stop, or before the end, when
 * nobody waits any more. Takes the lock.
 */
bool sender_wait(struct sender *s, nsec_t deadline);

/* Says something, in place of what was not fetched yet. Takes the lock. */
void sender_say(struct sender *s, struct notice *slot, enum notice_level level, const char *format,
		...) __attribute__((format(printf, 4, 5)));

uint64_t export_random(void);

#endif
