/* SPDX-License-Identifier: Apache-2.0 */
/* xz within bounds; see elf_minidebug.h. */
#include "symbolizer/elf_minidebug.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>

enum { PIECE = 64 * 1024, FIRST_SIZE = 256 * 1024 };

struct unpacking {
	lzma_stream lzma;
	uint8_t *out;
	size_t cap;
	size_t max;
};

/* Makes room behind what was written. */
static int grow(struct unpacking *u)
{
	size_t done = u->cap - u->lzma.avail_out, cap = u->cap ? 2 * u->cap : FIRST_SIZE;
	uint8_t *bigger;

	if (u->lzma.avail_out > 0)
		return 0;
	if (u->cap >= u->max)
		return -EFBIG;
	cap = cap < u->max ? cap : u->max;
	bigger = realloc(u->out, cap);
	if (!bigger)
		return -ENOMEM;
	u->out = bigger;
	u->cap = cap;
	u->lzma.next_out = bigger + done;
	u->lzma.avail_out = cap - done;
	return 0;
}

/* Takes one piece; *ret_end: the stream is at its end. */
static int take(struct unpacking *u, const uint8_t *piece, size_t len, bool *ret_end)
{
	u->lzma.next_in = piece;
	u->lzma.avail_in = len;
	while (u->lzma.avail_in > 0 && !*ret_end) {
		int err = grow(u);
		lzma_ret status;

		if (err)
			return err;
		status = lzma_code(&u->lzma, LZMA_RUN);
		if (status == LZMA_MEM_ERROR)
			return -ENOMEM;
		if (status == LZMA_MEMLIMIT_ERROR)
			return -EFBIG;
		*ret_end = status == LZMA_STREAM_END;
		if (status != LZMA_OK && !*ret_end)
			return -EBADMSG;
	}
	return 0;
}

static int take_all(struct unpacking *u, const struct elf_source *source, uint64_t off,
		    uint64_t left)
{
	uint8_t *piece = malloc(PIECE);
	bool at_end = false;
	int err = piece ? 0 : -ENOMEM;

	while (!err && left > 0 && !at_end) {
		size_t len = left < PIECE ? (size_t)left : PIECE;

		err = elf_source_read(source, off, piece, len);
		if (!err)
			err = take(u, piece, len, &at_end);
		off += len;
		left -= len;
	}
	free(piece);
	return !err && !at_end ? -EBADMSG : err;
}

int elf_minidebug_unpack(const struct elf_source *source, uint64_t off, uint64_t size, size_t max,
			 uint8_t **ret_bytes, size_t *ret_size)
{
	struct unpacking u = { .lzma = LZMA_STREAM_INIT, .max = max };
	int err;

	if (size > ELF_MINIDEBUG_MAX)
		return -EFBIG;
	if (lzma_stream_decoder(&u.lzma, ELF_MINIDEBUG_MAX, 0) != LZMA_OK)
		return -ENOMEM;
	err = take_all(&u, source, off, size);
	if (!err) {
		*ret_bytes = u.out;
		*ret_size = u.cap - u.lzma.avail_out;
		u.out = NULL;
	}
	lzma_end(&u.lzma);
	free(u.out);
	return err;
}

int elf_minidebug_open(const struct elf_file *elf, struct elf_file *ret_elf, uint8_t **ret_image)
{
	const Elf64_Shdr *s = elf_section_by_name(elf, ".gnu_debugdata");
	struct elf_source source;
	uint8_t *image;
	size_t size;
	int err;

	if (!s || s->sh_type == SHT_NOBITS)
		return -ENOENT;
	if (!elf_section_is_readable(elf, s))
		return -EBADMSG;
	err = elf_minidebug_unpack(&elf->source, s->sh_offset, s->sh_size, ELF_MINIDEBUG_MAX,
				   &image, &size);
	if (err)
		return err;
	source = elf_source_image(image, size);
	err = elf_file_open(&source, ret_elf);
	if (err) {
		free(image);
		return err == -ENOEXEC ? -EBADMSG : err;
	}
	*ret_image = image;
	return 0;
}
