/* SPDX-License-Identifier: Apache-2.0 */
/* See map_each.h. */
#include "agent/collect/map_each.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

enum { MAX_BATCH = 65536 };

/* -ENOENT: that was the last; -ENOSPC: a bucket holds more than a batch. */
static int read_batch(const struct map_each *each, __u32 *token, bool first, void *keys,
		      void *values, __u32 *n)
{
	LIBBPF_OPTS(bpf_map_batch_opts, opts);
	void *from = first ? NULL : token;

	return each->take ? bpf_map_lookup_and_delete_batch(each->fd, from, token, keys, values, n,
							    &opts)
			  : bpf_map_lookup_batch(each->fd, from, token, keys, values, n, &opts);
}

/* All the map, or as far as batches of this size reach: -ENOSPC. */
static int read_on(const struct map_each *each, __u32 batch, __u32 *token, bool *first)
{
	uint8_t *values = reallocarray(NULL, batch, each->value_size);
	uint8_t *keys = reallocarray(NULL, batch, each->key_size);
	int err = keys && values ? 0 : -ENOMEM;

	while (!err) {
		__u32 n = batch;

		err = read_batch(each, token, *first, keys, values, &n);
		if (err && err != -ENOENT)
			break;
		*first = false;
		for (__u32 i = 0; i < n; i++)
			each->handle(each->context, keys + i * each->key_size,
				     values + i * each->value_size);
	}
	free(keys);
	free(values);
	return err;
}

int map_each(const struct map_each *each)
{
	__u32 batch = each->batch, token = 0;
	bool first = true;
	int err;

	while ((err = read_on(each, batch, &token, &first)) == -ENOSPC && batch < MAX_BATCH)
		batch *= 2;
	return err == -ENOENT ? 0 : err;
}
