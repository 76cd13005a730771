/* SPDX-License-Identifier: Apache-2.0 */
/* A sliding view; see jitdump_window.h. */
#include "symbolizer/jitdump_window.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"

int jitdump_window_init(struct jitdump_window *w, int fd, const void *image, uint64_t size)
{
	*w = (struct jitdump_window){ .fd = fd, .image = image, .size = size };
	if (fd < 0)
		return 0;
	w->bytes = malloc(JITDUMP_WINDOW);
	return w->bytes ? 0 : -ENOMEM;
}

void jitdump_window_fini(struct jitdump_window *w)
{
	free(w->bytes);
	w->bytes = NULL;
}

const uint8_t *jitdump_window_at(struct jitdump_window *w, uint64_t off, size_t len)
{
	if (off > w->size || len > w->size - off || len > JITDUMP_WINDOW)
		return NULL;
	if (w->fd < 0)
		return w->image + off;
	if (off < w->off || off - w->off > w->len || len > w->len - (off - w->off)) {
		uint64_t rest = w->size - off;
		size_t want = rest < JITDUMP_WINDOW ? (size_t)rest : JITDUMP_WINDOW;

		w->len = 0;
		if (file_read_at(w->fd, w->bytes, want, (off_t)off))
			return NULL;
		w->off = off;
		w->len = want;
	}
	return w->bytes + (off - w->off);
}
