/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP requests: equal to the golden file, which test_otlp.py reads; bounds; what is implied. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "proto/compress.h"
#include "proto/merge.h"
#include "proto/otlp.h"
#include "tests/unit/profile_text.h"

#define NODE   "tests/golden/report/node.profile"
#define GOLDEN "tests/golden/otlp/node.bin"

enum { ROOMY = 16 << 20 };

static const struct otlp_attribute attributes[] = {
	{ "service.name", "app" },
	{ "host.name", "node-1" },
};

static const struct otlp_resource resource = {
	.attributes = attributes,
	.attribute_count = 2,
	.scope_name = "sonde",
	.scope_version = "1.0",
	.profile_id = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 },
};

/* All samples, of the labels only the thread's. */
static struct profile *node(void)
{
	struct profile *whole = profile_from_text(NODE), *p;
	uint32_t *all = calloc(whole->sample_count, sizeof(*all));

	for (uint32_t i = 0; i < whole->sample_count; i++)
		all[i] = i;
	assert_int_equal(profile_extract(whole, all, whole->sample_count, "thread", ROOMY, &p), 0);
	profile_free(whole);
	free(all);
	return p;
}

static int encode(const struct profile *p, size_t times, size_t max, struct buf *out)
{
	struct otlp_request *r;
	int err;

	assert_int_equal(otlp_request_new(max, &r), 0);
	err = 0;
	for (size_t i = 0; !err && i < times; i++)
		err = otlp_request_add(r, &resource, p);
	if (!err)
		err = otlp_request_write(r, buf_sink(out));
	if (!err)
		assert_int_equal(otlp_request_profiles(r), times);
	otlp_request_free(r);
	return err;
}

static void test_golden(void **state)
{
	struct profile *p = node();
	struct buf got, want;

	buf_init(&got, ROOMY);
	buf_init(&want, ROOMY);
	assert_int_equal(encode(p, 1, ROOMY, &got), 0);
	if (getenv("UPDATE")) {
		FILE *f = fopen(GOLDEN, "wb");

		assert_int_equal(fwrite(got.data, 1, got.len, f), got.len);
		fclose(f);
	}
	assert_int_equal(file_read_path(GOLDEN, &want), 0);
	assert_int_equal(got.len, want.len);
	assert_memory_equal(got.data, want.data, want.len);
	buf_fini(&got);
	buf_fini(&want);
	profile_free(p);
}

/* A second profile with the same stacks adds no dictionary of its own. */
static void test_dictionary_is_shared(void **state)
{
	struct profile *p = node();
	struct buf one, two;

	buf_init(&one, ROOMY);
	buf_init(&two, ROOMY);
	assert_int_equal(encode(p, 1, ROOMY, &one), 0);
	assert_int_equal(encode(p, 2, ROOMY, &two), 0);
	assert_true(two.len < one.len + one.len / 2);
	buf_fini(&one);
	buf_fini(&two);
	profile_free(p);
}

/* Whatever the bound: a whole request, or -EFBIG; never memory in plenty. */
static void test_bounds(void **state)
{
	struct profile *p = node();
	struct buf whole, out;

	buf_init(&whole, ROOMY);
	assert_int_equal(encode(p, 1, ROOMY, &whole), 0);
	for (size_t max = 0; max < whole.len + 64; max += 7) {
		int err;

		buf_init(&out, ROOMY);
		err = encode(p, 1, max, &out);
		if (err)
			assert_int_equal(err, -EFBIG);
		else
			assert_int_equal(out.len, whole.len);
		buf_fini(&out);
	}
	buf_fini(&whole);
	profile_free(p);
}

static void test_nothing_from_nothing(void **state)
{
	struct otlp_request *r;
	struct profile *p;

	assert_int_equal(profile_new(ROOMY, &p), 0);
	assert_true(profile_add_type(p, "samples", "count") > 0);
	assert_int_equal(otlp_request_new(ROOMY, &r), 0);
	assert_int_equal(otlp_request_add(r, &resource, p), 0);
	assert_int_equal(otlp_request_profiles(r), 0);
	otlp_request_free(r);
	otlp_request_free(NULL);
	profile_free(p);
}

/* Samples and cycles are two profiles; only cpu time follows from samples and the period. */
static void test_types(void **state)
{
	const char *const types[][2] = { { "cpu", "nanoseconds" }, { "cycles", "count" } };

	for (size_t i = 0; i < 2; i++) {
		int64_t values[] = { 3, 30 };
		struct otlp_request *r;
		struct profile *p;

		assert_int_equal(profile_new(ROOMY, &p), 0);
		assert_true(profile_add_type(p, "samples", "count") > 0);
		assert_true(profile_add_type(p, types[i][0], types[i][1]) > 0);
		p->period_type = p->types[1];
		p->period = 10;
		assert_int_equal(profile_add_sample(p, NULL, 0, values, NULL, 0), 0);
		assert_int_equal(otlp_request_new(ROOMY, &r), 0);
		assert_int_equal(otlp_request_add(r, &resource, p), 0);
		assert_int_equal(otlp_request_profiles(r), i + 1);
		otlp_request_free(r);
		profile_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden), cmocka_unit_test(test_dictionary_is_shared),
		cmocka_unit_test(test_bounds), cmocka_unit_test(test_nothing_from_nothing),
		cmocka_unit_test(test_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
