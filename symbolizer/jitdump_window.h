/* SPDX-License-Identifier: Apache-2.0 */
/* A view on a file or a piece of memory that slides along: bytes at an offset, or NULL. */
#ifndef SYMBOLIZER_JITDUMP_WINDOW_H
#define SYMBOLIZER_JITDUMP_WINDOW_H

#include <stddef.h>
#include <stdint.h>

enum { JITDUMP_WINDOW = 64 * 1024 };

struct jitdump_window {
	int fd; /* -1: all of it lies at `image` */
	const uint8_t *image;
	uint64_t size;  /* nothing behind it is looked at */
	uint8_t *bytes; /* owned; JITDUMP_WINDOW of them */
	uint64_t off;
	size_t len;
};

int jitdump_window_init(struct jitdump_window *w, int fd, const void *image, uint64_t size);
void jitdump_window_fini(struct jitdump_window *w);

/*
 * `len` bytes (at most JITDUMP_WINDOW) at `off`, good until the next call; NULL if the file does
 * not reach as far or cannot be read.
 */
const uint8_t *jitdump_window_at(struct jitdump_window *w, uint64_t off, size_t len);

#endif
