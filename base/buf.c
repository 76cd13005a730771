/* SPDX-License-Identifier: Apache-2.0 */
/* Growable byte buffer; see buf.h. */
#include "base/buf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_CAP = 64 };

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){ .max = max };
}

void buf_fini(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ .max = b->max };
}

void buf_fini_secret(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->cap + 1);
	buf_fini(b);
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->err = 0;
}

uint8_t *buf_reserve(struct buf *b, size_t len)
{
	size_t want, cap;
	uint8_t *data;

	if (b->err)
		return NULL;
	if (len > b->max - b->len) {
		b->err = -ENOSPC;
		return NULL;
	}
	want = b->len + len;
	if (want <= b->cap && b->data)
		return b->data + b->len;
	cap = b->cap < b->max / 2 ? b->cap * 2 : b->max;
	if (cap < want)
		cap = want;
	if (cap < MIN_CAP)
		cap = MIN_CAP;
	data = cap < SIZE_MAX ? realloc(b->data, cap + 1) : NULL;
	if (!data) {
		b->err = -ENOMEM;
		return NULL;
	}
	b->data = data;
	b->cap = cap;
	return b->data + b->len;
}

void buf_put(struct buf *b, const void *bytes, size_t len)
{
	uint8_t *to = buf_reserve(b, len);

	if (!to || len == 0)
		return;
	memcpy(to, bytes, len);
	b->len += len;
}

void buf_put_byte(struct buf *b, uint8_t byte)
{
	buf_put(b, &byte, 1);
}

void buf_put_str(struct buf *b, const char *text)
{
	buf_put(b, text, strlen(text));
}

void buf_printf(struct buf *b, const char *format, ...)
{
	va_list args;
	uint8_t *to;
	int len;

	va_start(args, format);
	len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (len < 0)
		return;
	to = buf_reserve(b, (size_t)len);
	if (!to)
		return;
	/* Its NUL goes to the byte that is always there behind `cap`. */
	va_start(args, format);
	vsnprintf((char *)to, (size_t)len + 1, format, args);
	va_end(args);
	b->len += (size_t)len;
}

const char *buf_cstr(struct buf *b)
{
	uint8_t *end = buf_reserve(b, 0);

	if (!end)
		return NULL;
	*end = 0;
	return (const char *)b->data;
}
