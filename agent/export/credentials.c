/* SPDX-License-Identifier: Apache-2.0 */
/* See credentials.h. */
#include "agent/export/credentials.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"

enum { FILE_BYTES = 16 * 1024, ALL_BYTES = 4 * FILE_BYTES, MAX_LINES = 64 };

struct reader {
	struct buf lines; /* each with a NUL behind it */
	size_t count;
	char *why;
	size_t why_size;
};

static int fail(struct reader *r, const char *path, const char *what, int err)
{
	snprintf(r->why, r->why_size, "%s: %s", path, what);
	return err;
}

static void put_base64(struct buf *out, const uint8_t *bytes, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < len; i += 3) {
		uint32_t word = (uint32_t)bytes[i] << 16;

		word |= i + 1 < len ? (uint32_t)bytes[i + 1] << 8 : 0;
		word |= i + 2 < len ? bytes[i + 2] : 0;
		buf_put_byte(out, (uint8_t)digits[word >> 18]);
		buf_put_byte(out, (uint8_t)digits[word >> 12 & 63]);
		buf_put_byte(out, i + 1 < len ? (uint8_t)digits[word >> 6 & 63] : '=');
		buf_put_byte(out, i + 2 < len ? (uint8_t)digits[word & 63] : '=');
	}
}

/* No control bytes: a line break would begin another header. */
static bool is_header_text(const uint8_t *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if ((text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
			return false;
	}
	return true;
}

static int end_line(struct reader *r, const char *path)
{
	buf_put_byte(&r->lines, 0);
	if (buf_error(&r->lines) || ++r->count > MAX_LINES)
		return fail(r, path, "too many header lines", -E2BIG);
	return 0;
}

/* The file without blanks at its end. */
static int read_file(struct reader *r, const char *path, struct buf *text)
{
	int err;

	buf_init(text, FILE_BYTES);
	buf_reserve(text, FILE_BYTES); /* it never moves */
	err = file_read_path(path, text);
	if (err)
		return fail(r, path, strerror(-err), err);
	while (text->len && strchr(" \t\r\n", text->data[text->len - 1]))
		text->len--;
	return text->len ? 0 : fail(r, path, "is empty", -EINVAL);
}

static int add_secret(struct reader *r, const char *path, const char *scheme, bool base64)
{
	struct buf text;
	int err;

	if (!path)
		return 0;
	err = read_file(r, path, &text);
	if (!err && !is_header_text(text.data, text.len))
		err = fail(r, path, "has more than one line, or control bytes", -EINVAL);
	if (!err) {
		buf_printf(&r->lines, "Authorization: %s ", scheme);
		if (base64)
			put_base64(&r->lines, text.data, text.len);
		else
			buf_put(&r->lines, text.data, text.len);
		err = end_line(r, path);
	}
	buf_fini_secret(&text);
	return err;
}

static int add_header(struct reader *r, const char *path, const uint8_t *line, size_t len)
{
	const uint8_t *colon;

	while (len && strchr(" \t\r", line[len - 1]))
		len--;
	if (len == 0 || line[0] == '#')
		return 0;
	colon = memchr(line, ':', len);
	if (!colon || colon == line || !is_header_text(line, len))
		return fail(r, path, "has a line that is no 'Name: value'", -EINVAL);
	buf_put(&r->lines, line, len);
	return end_line(r, path);
}

static int add_headers(struct reader *r, const char *path)
{
	struct buf text;
	int err;

	if (!path)
		return 0;
	err = read_file(r, path, &text);
	for (size_t at = 0; !err && at < text.len;) {
		const uint8_t *line = text.data + at;
		const uint8_t *end = memchr(line, '\n', text.len - at);
		size_t len = end ? (size_t)(end - line) : text.len - at;

		err = add_header(r, path, line, len);
		at += len + 1;
	}
	buf_fini_secret(&text);
	return err;
}

static int add_tenant(struct reader *r, const char *tenant)
{
	if (!tenant)
		return 0;
	if (!is_header_text((const uint8_t *)tenant, strlen(tenant)))
		return fail(r, "tenant", "has control bytes", -EINVAL);
	buf_printf(&r->lines, "X-Scope-OrgID: %s", tenant);
	return end_line(r, "tenant");
}

/* Pointers first, then the texts that they point to. */
static int hand_out(struct reader *r, char ***ret_lines)
{
	size_t pointers = (r->count + 1) * sizeof(char *);
	char **lines = malloc(pointers + r->lines.len + 1), *text;

	if (!lines)
		return -ENOMEM;
	text = (char *)lines + pointers;
	if (r->lines.len)
		memcpy(text, r->lines.data, r->lines.len);
	for (size_t i = 0; i < r->count; i++) {
		lines[i] = text;
		text += strlen(text) + 1;
	}
	lines[r->count] = NULL;
	*ret_lines = lines;
	return 0;
}

int credentials_read(const struct credentials *c, char ***ret_lines, char *why, size_t why_size)
{
	struct reader r = { .why = why, .why_size = why_size };
	int err;

	buf_init(&r.lines, ALL_BYTES);
	buf_reserve(&r.lines, ALL_BYTES); /* it never moves */
	err = add_secret(&r, c->bearer_file, "Bearer", false);
	if (!err)
		err = add_secret(&r, c->basic_file, "Basic", true);
	if (!err)
		err = add_headers(&r, c->headers_file);
	if (!err)
		err = add_tenant(&r, c->tenant);
	if (!err)
		err = hand_out(&r, ret_lines);
	buf_fini_secret(&r.lines);
	return err;
}

void credentials_free(char **lines)
{
	for (char **line = lines; line && *line; line++)
		explicit_bzero(*line, strlen(*line));
	free(lines);
}
