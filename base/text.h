/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making foreign bytes safe to show and to store: names of processes, files and symbols may
 * hold anything, while pprof wants UTF-8 and a terminal wants no control bytes.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/*
 * Appends `bytes` as clean UTF-8: valid sequences pass; control bytes (also newline, tab and
 * DEL), a backslash that would look like an escape, and bytes that are not UTF-8 become \xNN.
 * One input byte grows to at most four.
 */
void text_escape(struct buf *out, const char *bytes, size_t len);

/* Whether text_escape would change nothing. */
bool text_is_clean(const char *bytes, size_t len);

#endif
