/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks: one line per distinct stack, "comm;outermost;...;leaf value\n", the input of
 * flame graph tools. Semicolons and newlines inside names are replaced. Sorted, so that
 * equal profiles give equal text.
 */
#ifndef PROTO_FOLDED_H
#define PROTO_FOLDED_H

#include "base/buf.h"
#include "proto/pprof.h"

/* The value is that of sample type number `type`. Returns 0, -ENOMEM or the sink's error. */
int folded_write(const struct profile *p, size_t type, struct byte_sink sink);

/*
 * The text of one line of a location: the function's name, or "module+0xaddress" for an
 * address without a name, or "[unknown]". line < line_count, or 0 if there are no lines.
 */
void folded_frame_text(const struct profile *p, const struct profile_location *location,
		       size_t line, struct buf *out);

#endif
