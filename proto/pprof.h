/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof's protobuf form of a profile (field numbers: profile.proto of google/pprof). The writer
 * streams: it builds one message at a time and hands bytes to a sink, so its memory is the order
 * of what it writes (pprof_order.h; 4 bytes a sample, 8 a location and a function). The reader takes
 * any valid pprof file, whoever wrote it, and refuses the rest with a reason.
 */
#ifndef PROTO_PPROF_H
#define PROTO_PPROF_H

#include <stddef.h>

#include "proto/profile.h"

/* Takes the next bytes of an output; returns 0 or -errno, which ends the writing. */
struct byte_sink {
	int (*write)(void *context, const void *bytes, size_t len);
	void *context;
};

/* Returns 0, -ENOMEM or what the sink returned. Uncompressed protobuf. */
int pprof_write(const struct profile *p, struct byte_sink sink);

/*
 * Parses uncompressed protobuf. Unknown fields are skipped, sparse ids are renumbered, memory is
 * bounded by max_bytes. On failure returns -EBADMSG, -ENOMEM or -EFBIG and writes one line
 * that says what is wrong (never empty) to `reason`.
 */
int pprof_read(const void *bytes, size_t len, size_t max_bytes, struct profile **ret_profile,
	       char *reason, size_t reason_size);

#endif
