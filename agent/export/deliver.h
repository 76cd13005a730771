/* SPDX-License-Identifier: Apache-2.0 */
/* What deliver.c (a window's ranges) and deliver_range.c (the fate of one) share. */
#ifndef AGENT_EXPORT_DELIVER_H
#define AGENT_EXPORT_DELIVER_H

#include "agent/export/exporter_private.h"

struct delivery {
	struct sender *s;
	const struct spool_chunk *chunk;
	struct export_batch batch; /* its range is the one being sent */
};

enum outcome {
	OUTCOME_SENT,
	OUTCOME_SPLIT,   /* too large */
	OUTCOME_REFUSED, /* will never be taken; s->why says why */
	OUTCOME_GONE,    /* the window was dropped for its age or the spool's cap */
	OUTCOME_STOP,
};

/* Encodes and sends until the answer is final. */
enum outcome deliver_range(struct delivery *d);

/*
 * After a failure, whose reason is in s->why: says so if that is news, and waits. False if it is
 * time to stop. `server_wait`: what the server asked for, or 0.
 */
bool deliver_failed(struct sender *s, enum verdict verdict, nsec_t server_wait);

#endif
