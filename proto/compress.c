/* SPDX-License-Identifier: Apache-2.0 */
/* gzip (zlib) and zstd; see compress.h. No time stamp is written: equal input, equal output. */
#include "proto/compress.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>
#include <zstd.h>

enum {
	STEP = 64 * 1024,
	GZIP_WINDOW = 15 + 16, /* the largest window, with a gzip frame */
	GZIP_MEMORY = 8,       /* zlib's default */
	ZSTD_WINDOW_LOG = 27,  /* 128 MiB: what zstd's own tools accept without asking */
};

struct compressor {
	enum compress_kind kind;
	struct byte_sink out;
	z_stream gzip;
	bool gzip_open;
	ZSTD_CCtx *zstd;
	uint8_t block[STEP];
};

static int open_gzip(struct compressor *c, int level)
{
	if (deflateInit2(&c->gzip, level ? level : Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW,
			 GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		return -EINVAL;
	c->gzip_open = true;
	return 0;
}

static int open_zstd(struct compressor *c, int level)
{
	c->zstd = ZSTD_createCCtx();
	if (!c->zstd)
		return -ENOMEM;
	if (ZSTD_isError(ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_compressionLevel,
						level ? level : ZSTD_CLEVEL_DEFAULT)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_checksumFlag, 1)))
		return -EINVAL;
	return 0;
}

int compressor_open(enum compress_kind kind, int level, struct byte_sink out,
		    struct compressor **ret_compressor)
{
	struct compressor *c = calloc(1, sizeof(*c));
	int err = 0;

	if (!c)
		return -ENOMEM;
	c->kind = kind;
	c->out = out;
	if (kind == COMPRESS_GZIP)
		err = open_gzip(c, level);
	else if (kind == COMPRESS_ZSTD)
		err = open_zstd(c, level);
	if (err) {
		compressor_close(c);
		return err;
	}
	*ret_compressor = c;
	return 0;
}

void compressor_close(struct compressor *c)
{
	if (!c)
		return;
	if (c->gzip_open)
		deflateEnd(&c->gzip);
	ZSTD_freeCCtx(c->zstd);
	free(c);
}

static int emit(struct compressor *c, size_t len)
{
	return len ? c->out.write(c->out.context, c->block, len) : 0;
}

static int gzip_step(struct compressor *c, const void *bytes, size_t len, bool finish)
{
	int status, err;

	c->gzip.next_in = (Bytef *)bytes;
	c->gzip.avail_in = (uInt)len;
	do {
		c->gzip.next_out = c->block;
		c->gzip.avail_out = STEP;
		status = deflate(&c->gzip, finish ? Z_FINISH : Z_NO_FLUSH);
		if (status == Z_STREAM_ERROR)
			return -EINVAL;
		err = emit(c, STEP - c->gzip.avail_out);
		if (err)
			return err;
	} while (c->gzip.avail_out == 0);
	return 0;
}

static int gzip_write(struct compressor *c, const uint8_t *bytes, size_t len)
{
	/* zlib counts in 32 bits. */
	while (len > 0) {
		size_t part = len < INT_MAX ? len : INT_MAX;
		int err = gzip_step(c, bytes, part, false);

		if (err)
			return err;
		bytes += part;
		len -= part;
	}
	return 0;
}

static int zstd_step(struct compressor *c, const void *bytes, size_t len, bool finish)
{
	ZSTD_inBuffer in = { .src = bytes, .size = len };
	size_t left;

	do {
		ZSTD_outBuffer out = { .dst = c->block, .size = STEP };
		int err;

		left = ZSTD_compressStream2(c->zstd, &out, &in,
					    finish ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left))
			return -ENOMEM;
		err = emit(c, out.pos);
		if (err)
			return err;
	} while (finish ? left > 0 : in.pos < in.size);
	return 0;
}

static int sink_write(void *context, const void *bytes, size_t len)
{
	struct compressor *c = context;

	if (len == 0)
		return 0;
	if (c->kind == COMPRESS_GZIP)
		return gzip_write(c, bytes, len);
	if (c->kind == COMPRESS_ZSTD)
		return zstd_step(c, bytes, len, false);
	return c->out.write(c->out.context, bytes, len);
}

struct byte_sink compressor_sink(struct compressor *c)
{
	return (struct byte_sink){ .write = sink_write, .context = c };
}

int compressor_finish(struct compressor *c)
{
	if (c->kind == COMPRESS_GZIP)
		return gzip_step(c, NULL, 0, true);
	if (c->kind == COMPRESS_ZSTD)
		return zstd_step(c, NULL, 0, true);
	return 0;
}

enum compress_kind compress_detect(const void *bytes, size_t len)
{
	static const uint8_t gzip[] = { 0x1f, 0x8b }, zstd[] = { 0x28, 0xb5, 0x2f, 0xfd };

	if (len >= sizeof(gzip) && memcmp(bytes, gzip, sizeof(gzip)) == 0)
		return COMPRESS_GZIP;
	if (len >= sizeof(zstd) && memcmp(bytes, zstd, sizeof(zstd)) == 0)
		return COMPRESS_ZSTD;
	return COMPRESS_NONE;
}

/*
 * Where the next decompressed bytes go. At the bound it is one spare byte, which tells
 * "exactly full" (nothing more comes) from "too large".
 */
struct room {
	uint8_t *to;
	size_t len;
	bool spare;
	uint8_t byte;
};

static int find_room(struct buf *out, struct room *room)
{
	size_t left = out->max - out->len;

	room->spare = left == 0;
	room->len = left < STEP ? left : STEP;
	if (room->spare) {
		room->to = &room->byte;
		room->len = 1;
		return 0;
	}
	room->to = buf_reserve(out, room->len);
	return room->to ? 0 : buf_error(out);
}

static int use_room(struct buf *out, const struct room *room, size_t used)
{
	if (room->spare)
		return used ? -ENOSPC : 0;
	out->len += used;
	return 0;
}

/*
 * All members of the input: gzip's own tools write them one behind the other when files are
 * joined, and some parallel compressors make several for one file. Whether their content makes
 * sense together is for the reader to say.
 */
static int gunzip(z_stream *z, struct buf *out)
{
	struct room room;

	for (;;) {
		int err = find_room(out, &room), status;

		if (err)
			return err;
		z->next_out = room.to;
		z->avail_out = (uInt)room.len;
		status = inflate(z, Z_NO_FLUSH);
		if (status == Z_MEM_ERROR)
			return -ENOMEM;
		if (status != Z_OK && status != Z_STREAM_END)
			return -EBADMSG;
		err = use_room(out, &room, room.len - z->avail_out);
		if (err)
			return err;
		if (status != Z_STREAM_END)
			continue;
		if (z->avail_in == 0)
			return 0;
		if (inflateReset(z) != Z_OK)
			return -EBADMSG;
	}
}

static int decompress_gzip(const void *bytes, size_t len, struct buf *out)
{
	z_stream z = { .next_in = (Bytef *)bytes, .avail_in = (uInt)len };
	int err;

	if (len > UINT_MAX)
		return -ENOSPC;
	if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
		return -ENOMEM;
	err = gunzip(&z, out);
	inflateEnd(&z);
	return err;
}

static int unzstd(ZSTD_DCtx *zstd, ZSTD_inBuffer *in, struct buf *out)
{
	struct room room;
	size_t left = 1;

	while (in->pos < in->size || left > 0) {
		size_t pos = in->pos;
		ZSTD_outBuffer part;
		int err = find_room(out, &room);

		if (err)
			return err;
		part = (ZSTD_outBuffer){ .dst = room.to, .size = room.len };
		left = ZSTD_decompressStream(zstd, &part, in);
		if (ZSTD_isError(left))
			return -EBADMSG;
		err = use_room(out, &room, part.pos);
		if (err)
			return err;
		/* Wants more, gets no more: the input is cut. */
		if (left > 0 && in->pos == pos && part.pos == 0)
			return -EBADMSG;
	}
	return 0;
}

static int decompress_zstd(const void *bytes, size_t len, struct buf *out)
{
	ZSTD_inBuffer in = { .src = bytes, .size = len };
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	int err = -ENOMEM;

	if (zstd && !ZSTD_isError(ZSTD_DCtx_setParameter(zstd, ZSTD_d_windowLogMax,
							 ZSTD_WINDOW_LOG)))
		err = unzstd(zstd, &in, out);
	ZSTD_freeDCtx(zstd);
	return err;
}

int decompress(enum compress_kind kind, const void *bytes, size_t len, struct buf *out)
{
	size_t before = out->len;
	int err;

	if (kind == COMPRESS_GZIP)
		err = decompress_gzip(bytes, len, out);
	else if (kind == COMPRESS_ZSTD)
		err = decompress_zstd(bytes, len, out);
	else {
		buf_put(out, bytes, len);
		err = buf_error(out);
	}
	if (err)
		out->len = before;
	return err;
}

int pprof_write_compressed(const struct profile *p, enum compress_kind kind, struct byte_sink out)
{
	struct compressor *compressor;
	int err = compressor_open(kind, 0, out, &compressor);

	if (err)
		return err;
	err = pprof_write(p, compressor_sink(compressor));
	if (!err)
		err = compressor_finish(compressor);
	compressor_close(compressor);
	return err;
}

static int put_to_buf(void *context, const void *bytes, size_t len)
{
	buf_put(context, bytes, len);
	return buf_error(context);
}

struct byte_sink buf_sink(struct buf *out)
{
	return (struct byte_sink){ put_to_buf, out };
}

int compress_put(enum compress_kind kind, const void *bytes, size_t len, struct buf *out)
{
	struct compressor *c;
	int err = compressor_open(kind, 0, buf_sink(out), &c);

	if (err)
		return err;
	err = sink_write(c, bytes, len);
	if (!err)
		err = compressor_finish(c);
	compressor_close(c);
	return err;
}

int pprof_put_compressed(const struct profile *p, enum compress_kind kind, struct buf *out)
{
	return pprof_write_compressed(p, kind, buf_sink(out));
}
