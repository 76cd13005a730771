/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Push requests of the stores that take labelled pprof profiles: Pyroscope's push.v1.PushRequest
 * and Parca's WriteRawRequest (proto/schema/push.proto). A request is a plain sequence of series,
 * so a buffer that series were appended to is one.
 */
#ifndef PROTO_PUSH_H
#define PROTO_PUSH_H

#include <stddef.h>

#include "base/buf.h"

enum push_dialect { PUSH_PYROSCOPE, PUSH_PARCA };

struct push_label {
	const char *name, *text;
};

/* Appends one series with one profile in pprof form, compressed with gzip or not. */
void push_put_series(struct buf *out, enum push_dialect dialect, const struct push_label *labels,
		     size_t label_count, const void *pprof, size_t len);

#endif
