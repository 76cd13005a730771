/* SPDX-License-Identifier: Apache-2.0 */
/* A moving window on a part of a file; see unwind_window.h. */
#include "symbolizer/unwind_window.h"

#include <errno.h>
#include <stdlib.h>

enum { STEP = 64 * 1024, JUMP = 4 * 1024 };

void unwind_window_init(struct unwind_window *w, const struct elf_source *source, uint64_t off,
			uint64_t size)
{
	*w = (struct unwind_window){ .source = *source, .off = off, .size = size };
}

void unwind_window_fini(struct unwind_window *w)
{
	free(w->bytes);
	w->bytes = NULL;
	w->cap = w->len = 0;
}

static int make_room(struct unwind_window *w, size_t len)
{
	uint8_t *bytes;

	if (len <= w->cap)
		return 0;
	bytes = realloc(w->bytes, len);
	if (!bytes)
		return -ENOMEM;
	w->bytes = bytes;
	w->cap = len;
	return 0;
}

static int move_to(struct unwind_window *w, uint64_t at, size_t len)
{
	bool in_order = at >= w->at && at - w->at <= w->len + JUMP;
	size_t want = in_order ? STEP : JUMP;
	int err;

	if (want < len)
		want = len;
	if (want > w->size - at)
		want = (size_t)(w->size - at);
	err = make_room(w, want);
	if (err)
		return err;
	w->len = 0;
	err = elf_source_read(&w->source, w->off + at, w->bytes, want);
	if (err)
		return err;
	w->at = at;
	w->len = want;
	return 0;
}

int unwind_window_see(struct unwind_window *w, uint64_t at, size_t len, const uint8_t **ret_bytes)
{
	int err;

	if (at > w->size || len > w->size - at)
		return -EBADMSG;
	if (len > UNWIND_WINDOW_MAX)
		return -EFBIG;
	if (at < w->at || at - w->at > w->len || len > w->len - (at - w->at)) {
		err = move_to(w, at, len);
		if (err)
			return err;
	}
	/* Nothing was asked for, and nothing read yet: no offset may be added to NULL. */
	*ret_bytes = w->bytes ? w->bytes + (at - w->at) : (const uint8_t *)"";
	return 0;
}
