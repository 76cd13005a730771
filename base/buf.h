/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable byte buffer with a sticky error: writers append without checking each call,
 * and look at buf_error() once at the end. Used to build files, messages and text.
 *
 * A buffer never grows past `max` bytes; the first append that would do so, or an allocation
 * that fails, sets the error and later appends do nothing.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	uint8_t *data; /* owned; not NUL-terminated */
	size_t len;
	size_t cap; /* one more byte is allocated, for a NUL */
	size_t max; /* bound in bytes */
	int err;    /* 0, -ENOMEM or -ENOSPC */
};

/* An empty buffer that may grow to `max` bytes; allocates nothing yet. */
void buf_init(struct buf *b, size_t max);
void buf_fini(struct buf *b);

/* The same of secrets: the memory is overwritten. Reserve all room first: growing may leave a copy. */
void buf_fini_secret(struct buf *b);

/* Forgets the content and the error, keeps the memory. */
void buf_reset(struct buf *b);

void buf_put(struct buf *b, const void *bytes, size_t len);
void buf_put_byte(struct buf *b, uint8_t byte);
void buf_put_str(struct buf *b, const char *text);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Room for `len` more bytes that the caller fills, then adds to b->len; NULL on error. */
uint8_t *buf_reserve(struct buf *b, size_t len);

/* The content as a NUL-terminated string, valid until the next append; NULL on error. */
const char *buf_cstr(struct buf *b);

static inline int buf_error(const struct buf *b)
{
	return b->err;
}

#endif
