/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a stream; see line_reader.h. */
#include "symbolizer/line_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_SIZE = 2 * LINE_MAX_LEN };

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

static ssize_t read_piece(int fd, char *to, size_t len, uint64_t off)
{
	ssize_t n;

	if (off > INT64_MAX)
		return 0;
	do {
		n = pread(fd, to, len, (off_t)off);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static int split_file(int fd, struct line_cursor *c, uint64_t end, struct splitter *s, char *piece)
{
	size_t held = 0, used, want;
	ssize_t n;
	int err;

	for (;;) {
		want = PIECE_SIZE - held;
		if (c->off + held >= end)
			return 0;
		if (want > end - c->off - held)
			want = (size_t)(end - c->off - held);
		n = read_piece(fd, piece + held, want, c->off + held);
		if (n <= 0)
			return (int)n;
		held += (size_t)n;
		err = split(s, piece, held, &used);
		if (err)
			return err;
		held -= used;
		if (held > LINE_MAX_LEN) {
			used += held;
			held = 0;
			s->is_skipping = true;
		}
		memmove(piece, piece + used, held);
		c->off += used;
		c->is_skipping = s->is_skipping;
	}
}

int lines_from(int fd, struct line_cursor *cursor, uint64_t end, line_fn take, void *ctx)
{
	struct splitter s = { .take = take, .ctx = ctx, .is_skipping = cursor->is_skipping };
	char *piece = malloc(PIECE_SIZE);
	int err;

	if (!piece)
		return -ENOMEM;
	err = split_file(fd, cursor, end, &s, piece);
	free(piece);
	cursor->too_long += s.too_long;
	return err;
}
