/* SPDX-License-Identifier: Apache-2.0 */
/* Inflates sections piece by piece; see elf_inflate.h. */
#include "symbolizer/elf_inflate.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

enum { PIECE = 64 * 1024, ZSTD_WINDOW_LOG_MAX = 25 };

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

struct inflation {
	uint8_t *out;
	size_t size;
	size_t done;
	z_stream zlib;
	ZSTD_DStream *zstd;
};

/* Each takes one piece: 0 or -EBADMSG. */
static int take_zlib(struct inflation *f, const uint8_t *piece, size_t len)
{
	int status;

	f->zlib.next_in = (uint8_t *)piece;
	f->zlib.avail_in = (uInt)len;
	f->zlib.next_out = f->out + f->done;
	f->zlib.avail_out = (uInt)(f->size - f->done);
	status = inflate(&f->zlib, Z_NO_FLUSH);
	f->done = f->size - f->zlib.avail_out;
	return status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR ? 0 : -EBADMSG;
}

static int take_zstd(struct inflation *f, const uint8_t *piece, size_t len)
{
	ZSTD_inBuffer in = { .src = piece, .size = len };
	ZSTD_outBuffer out = { .dst = f->out, .size = f->size, .pos = f->done };
	size_t status, before;

	do {
		before = in.pos + out.pos;
		status = ZSTD_decompressStream(f->zstd, &out, &in);
		if (ZSTD_isError(status))
			return -EBADMSG;
	} while (in.pos < in.size && in.pos + out.pos != before);
	f->done = out.pos;
	return 0;
}

static size_t head_size(const struct elf_file *elf)
{
	return elf->is_32 ? sizeof(Elf32_Chdr) : sizeof(Elf64_Chdr);
}

static int read_head(const struct elf_file *elf, uint64_t off, Elf64_Chdr *ret_head)
{
	Elf32_Chdr narrow;
	int err;

	if (!elf->is_32)
		return elf_source_read(&elf->source, off, ret_head, sizeof(*ret_head));
	err = elf_source_read(&elf->source, off, &narrow, sizeof(narrow));
	if (!err)
		*ret_head = (Elf64_Chdr){ .ch_type = narrow.ch_type, .ch_size = narrow.ch_size };
	return err;
}

static int take_section(struct inflation *f, const struct elf_file *elf, const Elf64_Shdr *section)
{
	uint64_t off = section->sh_offset + head_size(elf);
	uint64_t left = section->sh_size - head_size(elf);
	uint8_t *piece = malloc(PIECE);
	int err = piece ? 0 : -ENOMEM;

	while (!err && left > 0 && f->done < f->size) {
		size_t len = left < PIECE ? (size_t)left : PIECE;

		err = elf_source_read(&elf->source, off, piece, len);
		if (!err)
			err = f->zstd ? take_zstd(f, piece, len) : take_zlib(f, piece, len);
		off += len;
		left -= len;
	}
	free(piece);
	return !err && f->done != f->size ? -EBADMSG : err;
}

static int inflate_zlib(struct inflation *f, const struct elf_file *elf, const Elf64_Shdr *section)
{
	int err;

	if (inflateInit(&f->zlib) != Z_OK)
		return -ENOMEM;
	err = take_section(f, elf, section);
	inflateEnd(&f->zlib);
	return err;
}

static int inflate_zstd(struct inflation *f, const struct elf_file *elf, const Elf64_Shdr *section)
{
	int err;

	f->zstd = ZSTD_createDStream();
	if (!f->zstd)
		return -ENOMEM;
	ZSTD_DCtx_setParameter(f->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX);
	err = take_section(f, elf, section);
	ZSTD_freeDStream(f->zstd);
	return err;
}

int elf_inflate(const struct elf_file *elf, const Elf64_Shdr *section, size_t max,
		uint8_t **ret_bytes, size_t *ret_size)
{
	struct inflation f = { 0 };
	Elf64_Chdr head;
	int err;

	if (!elf_in_file(elf, section->sh_offset, section->sh_size) ||
	    section->sh_size < head_size(elf))
		return -EBADMSG;
	err = read_head(elf, section->sh_offset, &head);
	if (err)
		return err;
	if (head.ch_type != ELFCOMPRESS_ZLIB && head.ch_type != ELFCOMPRESS_ZSTD)
		return -EBADMSG;
	if (head.ch_size > max || head.ch_size > UINT32_MAX)
		return -EFBIG;
	f.size = (size_t)head.ch_size;
	f.out = malloc(f.size ? f.size : 1);
	if (!f.out)
		return -ENOMEM;
	err = head.ch_type == ELFCOMPRESS_ZSTD ? inflate_zstd(&f, elf, section)
					       : inflate_zlib(&f, elf, section);
	if (err) {
		free(f.out);
		return err;
	}
	*ret_bytes = f.out;
	*ret_size = f.size;
	return 0;
}
