/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a batch that belongs to one series, as one or more profiles in pprof form: what
 * stores that take labelled profiles want. A profile over a limit is halved.
 */
#ifndef AGENT_EXPORT_PIECES_H
#define AGENT_EXPORT_PIECES_H

#include "agent/export/sink.h"

/* A piece: gzip-compressed pprof of some samples of a series, without labels. */
struct export_piece {
	const struct export_batch *batch;
	const struct series *series;
	const struct profile *p; /* the piece */
	const void *pprof;
	size_t len;
	size_t first; /* element of the order that it begins with */
};

typedef int (*export_piece_fn)(void *context, const struct export_piece *piece);

/*
 * Calls `fn` for each piece in order; stops at what it returns if that is not 0. With `say_labels`
 * each piece has its series' labels as comments, where nothing else tells them.
 */
int export_pieces(const struct export_batch *batch, bool say_labels, export_piece_fn fn,
		  void *context);

/*
 * The name of a profile in Pyroscope and Parca, by its last sample type: "process_cpu" for cpu
 * time and so on; a type that is not known is its own name.
 */
const char *export_profile_name(const struct profile *p);

/* Labels of a series: __name__ first, then service_name, node, its own, and the user's. */
enum { EXPORT_MAX_LABELS = 28, EXPORT_MAX_USER_LABELS = 16 };
_Static_assert(3 + SERIES_LABEL_COUNT + EXPORT_MAX_USER_LABELS <= EXPORT_MAX_LABELS,
	       "all find room; Pyroscope takes 30");
size_t export_labels(const struct export_piece *piece, char service[SERIES_SERVICE_BYTES],
		     struct push_label labels[EXPORT_MAX_LABELS]);

/* One push request with all of the batch. */
int export_push(const struct export_batch *batch, enum push_dialect dialect, struct buf *body);

#endif
