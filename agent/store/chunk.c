/* SPDX-License-Identifier: Apache-2.0 */
/* See chunk.h. */
#include "agent/store/chunk.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include <zlib.h>

#include "proto/compress.h"
#include "proto/pprof.h"

static const char MAGIC[8] = { 's', 'o', 'n', 'd', 'e', 'j', 'n', 'l' };

struct chunk_header {
	char magic[8];
	uint32_t version;
	uint32_t crc;
	uint64_t length;
};

_Static_assert(sizeof(struct chunk_header) == CHUNK_HEADER_BYTES, "as chunk.h says");

static uint32_t checksum(struct chunk_header header, const uint8_t *payload, size_t len)
{
	header.crc = 0;
	/* crc32_z counts in size_t, so long payloads are no special case. */
	return (uint32_t)crc32_z(crc32_z(0, (const Bytef *)&header, sizeof(header)), payload, len);
}

int chunk_encode(const struct profile *p, struct buf *out)
{
	struct chunk_header header = { .version = htole32(CHUNK_VERSION) };
	size_t start = out->len;
	const uint8_t *payload;
	int err;

	memcpy(header.magic, MAGIC, sizeof(header.magic));
	buf_put(out, &header, sizeof(header));
	err = pprof_put_compressed(p, COMPRESS_ZSTD, out);
	if (!err)
		err = buf_error(out);
	if (err)
		return err;
	payload = out->data + start + sizeof(header);
	header.length = htole64(out->len - start - sizeof(header));
	header.crc = htole32(checksum(header, payload, le64toh(header.length)));
	memcpy(out->data + start, &header, sizeof(header));
	return 0;
}

int chunk_check(const void *bytes, size_t len)
{
	struct chunk_header header;
	const uint8_t *payload = (const uint8_t *)bytes + sizeof(header);

	if (len < sizeof(header))
		return -EBADMSG;
	memcpy(&header, bytes, sizeof(header));
	if (memcmp(header.magic, MAGIC, sizeof(MAGIC)) != 0 ||
	    le32toh(header.version) != CHUNK_VERSION ||
	    le64toh(header.length) != len - sizeof(header))
		return -EBADMSG;
	return checksum(header, payload, len - sizeof(header)) == le32toh(header.crc) ? 0
										      : -EBADMSG;
}

int chunk_decode(const void *bytes, size_t len, size_t max_bytes, struct profile **ret_profile)
{
	const uint8_t *payload = (const uint8_t *)bytes + CHUNK_HEADER_BYTES;
	struct buf plain;
	char why[128];
	int err = chunk_check(bytes, len);

	if (err)
		return err;
	len -= CHUNK_HEADER_BYTES;
	if (compress_detect(payload, len) != COMPRESS_ZSTD)
		return -EBADMSG;
	buf_init(&plain, max_bytes);
	err = decompress(COMPRESS_ZSTD, payload, len, &plain);
	if (!err)
		err = pprof_read(plain.data, plain.len, max_bytes, ret_profile, why, sizeof(why));
	buf_fini(&plain);
	return err;
}
