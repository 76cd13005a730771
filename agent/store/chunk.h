/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of one journal file: a header of 24 bytes, then the payload, a profile as
 * zstd-compressed pprof, and nothing behind it. Little endian:
 *
 *   0  "sondejnl"
 *   8  u32 version, 1
 *   12 u32 CRC-32 (zlib's) of the whole chunk with zeros in this place
 *   16 u64 length of the payload
 */
#ifndef AGENT_STORE_CHUNK_H
#define AGENT_STORE_CHUNK_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "proto/profile.h"

enum { CHUNK_HEADER_BYTES = 24, CHUNK_VERSION = 1 };

/* Appends the chunk of a profile to `out`: 0, -ENOMEM or -ENOSPC (over out's bound). */
int chunk_encode(const struct profile *p, struct buf *out);

/* Whether the bytes are one whole, undamaged chunk: 0 or -EBADMSG. Looks at the frame only. */
int chunk_check(const void *bytes, size_t len);

/*
 * The profile of a chunk, with at most max_bytes of memory: 0, -EBADMSG for damage of any kind,
 * -ENOMEM, or -EFBIG / -ENOSPC if it does not fit the bound.
 */
int chunk_decode(const void *bytes, size_t len, size_t max_bytes, struct profile **ret_profile);

#endif
