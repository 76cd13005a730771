/* SPDX-License-Identifier: Apache-2.0 */
/* gzip and zstd, streaming out and whole in, with bounds against compression bombs. */
#ifndef PROTO_COMPRESS_H
#define PROTO_COMPRESS_H

#include "base/buf.h"
#include "proto/pprof.h"

enum compress_kind { COMPRESS_NONE, COMPRESS_GZIP, COMPRESS_ZSTD };

struct compressor;

/* Bytes put in come out compressed at `out`. level 0: the kind's default. */
int compressor_open(enum compress_kind kind, int level, struct byte_sink out,
		    struct compressor **ret_compressor);
struct byte_sink compressor_sink(struct compressor *c);

/* Writes the trailer; needed before close for a whole file. 0 or -errno. */
int compressor_finish(struct compressor *c);
void compressor_close(struct compressor *c);

/* Output that is appended to a buffer whose bound applies. */
struct byte_sink buf_sink(struct buf *out);

/* Bytes compressed whole and appended to `out`, whose bound applies (-ENOSPC). */
int compress_put(enum compress_kind kind, const void *bytes, size_t len, struct buf *out);

/* A whole profile as compressed pprof. 0, or what the writer or the sink returned. */
int pprof_write_compressed(const struct profile *p, enum compress_kind kind, struct byte_sink out);

/* The same, appended to a buffer whose bound applies. */
int pprof_put_compressed(const struct profile *p, enum compress_kind kind, struct buf *out);

/* The kind by the first bytes: 1f 8b, 28 b5 2f fd, else none. */
enum compress_kind compress_detect(const void *bytes, size_t len);

/*
 * Appends the decompressed bytes to `out`, whose bound applies (-ENOSPC over it). -EBADMSG for
 * damaged or cut input.
 */
int decompress(enum compress_kind kind, const void *bytes, size_t len, struct buf *out);

#endif
