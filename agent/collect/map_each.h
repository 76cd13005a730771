/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every entry of a BPF hash map, in batches: one system call for hundreds of entries.
 *
 * A batch has to hold the fullest bucket of the map. It begins small and doubles as often as the
 * kernel says that one did not fit; what was handed on before is not handed on again. Entries that
 * are written meanwhile may be seen or not. Kernels since 5.6.
 */
#ifndef AGENT_COLLECT_MAP_EACH_H
#define AGENT_COLLECT_MAP_EACH_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* key and value are the caller's to change, and gone after the call. */
typedef void (*map_entry_fn)(void *context, const void *key, void *value);

struct map_each {
	int fd;
	size_t key_size, value_size;
	__u32 batch; /* to begin with, > 0 */
	bool take;   /* also deletes them */
	map_entry_fn handle;
	void *context;
};

/* 0 or -errno; entries may have been handled then. */
int map_each(const struct map_each *each);

#endif
