/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: chunks of the journal, and merging. Nearly no bytes have a good checksum, so the
 * input is tried as a profile, as a chunk, and as the payload of a chunk made for it. What
 * is read as good must be good: it is merged, goes into a chunk, and comes back with the same sums.
 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "agent/store/chunk.h"
#include "proto/merge.h"
#include "proto/pprof.h"

enum { MAX_PROFILE = 16 << 20, MAX_MERGED = 64 << 20, MAX_FILE = 64 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t sum(const struct profile *p)
{
	uint64_t total = 0;

	for (size_t i = 0; i < p->sample_count; i++)
		for (size_t type = 0; type < p->type_count; type++)
			total += (uint64_t)p->samples[i].values[type];
	return total;
}

static bool saturates(const struct profile *p)
{
	for (size_t i = 0; i < p->sample_count; i++)
		for (size_t type = 0; type < p->type_count; type++)
			if (p->samples[i].values[type] > INT64_MAX / 65536)
				return true;
	return false;
}

/* As the journal does: merged into an empty profile, then written and read. */
static void use(const struct profile *p)
{
	struct profile *merged = NULL, *again = NULL;
	struct buf chunk;
	int err = profile_new(MAX_MERGED, &merged);

	assert(!err);
	err = profile_merge(merged, p);
	assert(!err || (err == -ENOMEM && merged->full));
	if (!err) {
		assert(merged->sample_count <= p->sample_count);
		assert(saturates(p) || sum(merged) == sum(p));
		buf_init(&chunk, MAX_FILE);
		assert(chunk_encode(merged, &chunk) == 0);
		assert(chunk_check(chunk.data, chunk.len) == 0);
		err = chunk_decode(chunk.data, chunk.len, MAX_MERGED, &again);
		assert(!err || err == -EFBIG || err == -ENOSPC);
		assert(err ||
		       (again->sample_count == merged->sample_count && sum(again) == sum(merged)));
		buf_fini(&chunk);
	}
	profile_free(again);
	profile_free(merged);
}

static void decode(const void *bytes, size_t size)
{
	struct profile *p = NULL;
	int check = chunk_check(bytes, size), err = chunk_decode(bytes, size, MAX_PROFILE, &p);

	assert(check == 0 || check == -EBADMSG);
	assert(!err == !!p);
	assert(check == 0 || err == -EBADMSG);
	if (p)
		use(p);
	profile_free(p);
}

static void decode_payload(const uint8_t *data, size_t size)
{
	uint8_t *chunk = calloc(1, CHUNK_HEADER_BYTES + size);
	uint32_t version = htole32(CHUNK_VERSION), crc;
	uint64_t length = htole64(size);

	assert(chunk);
	memcpy(chunk, "sondejnl", 8);
	memcpy(chunk + 8, &version, sizeof(version));
	memcpy(chunk + 16, &length, sizeof(length));
	if (size)
		memcpy(chunk + CHUNK_HEADER_BYTES, data, size);
	crc = htole32((uint32_t)crc32_z(0, chunk, CHUNK_HEADER_BYTES + size));
	memcpy(chunk + 12, &crc, sizeof(crc));
	assert(chunk_check(chunk, CHUNK_HEADER_BYTES + size) == 0);
	decode(chunk, CHUNK_HEADER_BYTES + size);
	free(chunk);
}

static void merge_plain(const uint8_t *data, size_t size)
{
	struct profile *p = NULL;
	char reason[200];

	if (!pprof_read(data, size, MAX_PROFILE, &p, reason, sizeof(reason)))
		use(p);
	profile_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	merge_plain(data, size);
	decode(data, size);
	decode_payload(data, size);
	return 0;
}
