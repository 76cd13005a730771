/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the quick look at a stored profile for the catalogue, which does without the
 * profile reader. Whatever that reader takes, the look must take too, with the same times.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/store/store_files.h"
#include "base/file.h"
#include "proto/compress.h"
#include "proto/pprof.h"

enum { MAX_PLAIN = 1 << 20, MAX_PROFILE = 64 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compare(const uint8_t *data, size_t size, int err, const struct store_facts *facts)
{
	struct profile *p = NULL;
	struct store_facts want;
	struct buf plain;
	char reason[200];

	buf_init(&plain, MAX_PLAIN);
	if (!decompress(compress_detect(data, size), data, size, &plain) && plain.len)
		pprof_read(plain.data, plain.len, MAX_PROFILE, &p, reason, sizeof(reason));
	buf_fini(&plain);
	if (!p)
		return;
	assert(!err);
	store_facts_of(p, &want);
	/* A header may say anything, if it is there. */
	if (!(data[0] == 0x1f && data[3] & 4))
		assert(facts->start_ns == want.start_ns && facts->end_ns == want.end_ns);
	profile_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("profile", MFD_CLOEXEC), err;
	struct store_facts facts = { 0 };
	char path[64];

	assert(fd >= 0 && file_write_all(fd, data, size) == 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = store_facts_read(path, &facts);
	if (!err) {
		assert(facts.bytes == size);
		assert(memchr(facts.host, 0, sizeof(facts.host)));
		assert(memchr(facts.labels, 0, sizeof(facts.labels)));
		assert(facts.end_ns >= facts.start_ns);
	}
	compare(data, size, err, &facts);
	close(fd);
	return 0;
}
