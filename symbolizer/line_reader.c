/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a stream; see line_reader.h. */
#include "symbolizer/line_reader.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct splitter {
	line_fn take;
	void *ctx;
	uint64_t too_long;
	bool is_skipping; /* the rest of a line that was too long */
};

static int take_line(struct splitter *s, const char *line, size_t len)
{
	if (s->is_skipping || len > LINE_MAX_LEN) {
		s->is_skipping = false;
		s->too_long++;
		return 0;
	}
	if (len > 0 && line[len - 1] == '\r')
		len--;
	return s->take(s->ctx, line, len);
}

/* Takes the whole lines at the head of the text and tells how many bytes they were. */
static int split(struct splitter *s, const char *text, size_t len, size_t *ret_used)
{
	const char *p = text, *end = text + len, *newline;

	while (p < end && (newline = memchr(p, '\n', (size_t)(end - p)))) {
		int err = take_line(s, p, (size_t)(newline - p));

		if (err)
			return err;
		p = newline + 1;
	}
	*ret_used = (size_t)(p - text);
	return 0;
}

int lines_of_text(const char *text, size_t len, line_fn take, void *ctx, uint64_t *ret_too_long)
{
	struct splitter s = { .take = take, .ctx = ctx };
	size_t used;
	int err = split(&s, text, len, &used);

	if (!err)
		*ret_too_long = s.too_long;
	return err;
}

static ssize_t read_piece(int fd, char *to, size_t len)
{
	ssize_t n;

	do {
		n = read(fd, to, len);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static int split_file(int fd, uint64_t max_bytes, struct splitter *s, char *piece, size_t size)
{
	uint64_t total = 0;
	size_t held = 0, used;
	ssize_t n;
	int err;

	while ((n = read_piece(fd, piece + held, size - held)) > 0) {
		total += (uint64_t)n;
		if (total > max_bytes)
			return -EFBIG;
		held += (size_t)n;
		err = split(s, piece, held, &used);
		if (err)
			return err;
		held -= used;
		memmove(piece, piece + used, held);
		if (held > LINE_MAX_LEN) {
			held = 0;
			s->is_skipping = true;
		}
	}
	return (int)n;
}

int lines_of_fd(int fd, uint64_t max_bytes, line_fn take, void *ctx, uint64_t *ret_too_long)
{
	struct splitter s = { .take = take, .ctx = ctx };
	size_t size = 2 * LINE_MAX_LEN;
	char *piece = malloc(size);
	int err;

	if (!piece)
		return -ENOMEM;
	err = split_file(fd, max_bytes, &s, piece, size);
	free(piece);
	if (!err)
		*ret_too_long = s.too_long;
	return err;
}
