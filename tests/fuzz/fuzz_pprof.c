/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: decompression and the pprof reader. What is read must come out of the writer in
 * a form that reads back with the same counts and totals, and folds to some text.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/compress.h"
#include "proto/folded.h"
#include "proto/pprof.h"

enum { MAX_PLAIN = 1 << 20, MAX_PROFILE = 64 << 20, MAX_OUTPUT = 64 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int to_buf(void *context, const void *bytes, size_t len)
{
	buf_put(context, bytes, len);
	return buf_error(context);
}

static struct profile *read_back(const void *bytes, size_t len)
{
	struct profile *p = NULL;
	char reason[200];
	int err = pprof_read(bytes, len, MAX_PROFILE, &p, reason, sizeof(reason));

	assert(!err == !!p);
	assert(!err || (reason[0] && !strchr(reason, '\n')));
	return p;
}

static void check_same(const struct profile *a, const struct profile *b)
{
	assert(a->type_count == b->type_count);
	assert(a->mapping_count == b->mapping_count);
	assert(a->function_count == b->function_count);
	assert(a->location_count == b->location_count);
	assert(a->sample_count == b->sample_count);
	assert(a->comment_count == b->comment_count);
	assert(a->period == b->period && a->time_ns == b->time_ns);
	for (size_t i = 0; i < a->sample_count; i++) {
		assert(a->samples[i].location_count == b->samples[i].location_count);
		assert(a->samples[i].label_count == b->samples[i].label_count);
		assert(!memcmp(a->samples[i].values, b->samples[i].values,
			       a->type_count * sizeof(int64_t)));
	}
}

static void round_trip(const struct profile *p)
{
	struct profile *again;
	struct buf out;

	buf_init(&out, MAX_OUTPUT);
	assert(pprof_write(p, (struct byte_sink){ to_buf, &out }) == 0);
	again = read_back(out.data, out.len);
	assert(again);
	check_same(p, again);
	profile_free(again);
	buf_fini(&out);
}

static void fold(const struct profile *p)
{
	struct buf out;
	int err;

	if (!p->type_count)
		return;
	/* Stacks times names may outgrow the bound; that is an answer too. */
	buf_init(&out, MAX_OUTPUT);
	err = folded_write(p, 0, (struct byte_sink){ to_buf, &out });
	assert(!err || err == -ENOSPC || err == -ENOMEM);
	assert(err || !out.len || out.data[out.len - 1] == '\n');
	buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile *p = NULL;
	struct buf plain;

	buf_init(&plain, MAX_PLAIN);
	if (!decompress(compress_detect(data, size), data, size, &plain))
		p = read_back(plain.data, plain.len);
	if (p) {
		round_trip(p);
		fold(p);
	}
	profile_free(p);
	buf_fini(&plain);
	return 0;
}
