/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which lock, which caller: waits for locks in a profile of time off the CPU, by the place in the
 * program that asked for the lock. A table of text, the longest time first.
 */
#ifndef CLI_LOCK_VIEW_H
#define CLI_LOCK_VIEW_H

#include <stdbool.h>

#include "base/buf.h"
#include "proto/profile.h"

struct lock_view {
	uint64_t rows; /* at most; 0: all */
	bool idle;     /* also long waits at condition variables */
	const char *comm, *pid; /* NULL, or lists as in sonde report */
};

/*
 * Appends the table. -EINVAL: the profile has no time off the CPU by stack; -ENOMEM.
 */
int lock_view_print(const struct profile *p, const struct lock_view *view, struct buf *out);

#endif
