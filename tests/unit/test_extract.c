/* SPDX-License-Identifier: Apache-2.0 */
/* Some samples of a profile as a profile of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/compress.h"
#include "proto/merge.h"
#include "proto/pprof.h"
#include "tests/unit/pprof_check.h"
#include "tests/unit/profile_text.h"

enum { ROOMY = 16 << 20 };

#define NODE "tests/golden/report/node.profile"

static int64_t sum(const struct profile *p, size_t type)
{
	int64_t total = 0;

	for (size_t i = 0; i < p->sample_count; i++)
		total += p->samples[i].values[type];
	return total;
}

static void test_parts_are_the_whole(void **state)
{
	struct profile *whole = profile_from_text(NODE);
	int64_t total = 0;

	for (uint32_t i = 0; i < whole->sample_count; i++) {
		struct profile *p;
		struct buf file;

		assert_int_equal(profile_extract(whole, &i, 1, "", ROOMY, &p), 0);
		assert_int_equal(p->time_ns, whole->time_ns);
		assert_int_equal(p->duration_ns, whole->duration_ns);
		assert_int_equal(p->period, whole->period);
		assert_int_equal(p->comment_count, 0);
		assert_int_equal(p->samples[0].label_count, 0);
		assert_true(p->function_count <= whole->samples[i].location_count + 1);
		total += sum(p, 0);
		buf_init(&file, ROOMY);
		assert_int_equal(pprof_write(p, buf_sink(&file)), 0);
		check_strictly(&file, p);
		buf_fini(&file);
		profile_free(p);
	}
	assert_int_equal(total, sum(whole, 0));
	profile_free(whole);
}

/* Two threads with one stack are one sample once their names are gone. */
static void test_labels(void **state)
{
	struct profile *whole = profile_from_text(NODE), *p;
	uint32_t picks[] = { 0, 0, 1 };

	assert_int_equal(profile_extract(whole, picks, 3, "", ROOMY, &p), 0);
	assert_int_equal(p->sample_count, 2);
	assert_int_equal(sum(p, 0), 60 + 60 + 30);
	profile_free(p);
	assert_int_equal(profile_extract(whole, picks, 3, "thread", ROOMY, &p), 0);
	assert_int_equal(p->samples[0].label_count, 1);
	assert_string_equal(profile_text(p, p->samples[0].labels[0].str), "worker-1");
	profile_free(p);
	assert_int_equal(profile_extract(whole, picks, 3, PROFILE_ALL_LABELS, ROOMY, &p), 0);
	assert_int_equal(p->samples[0].label_count, whole->samples[0].label_count);
	profile_free(p);
	profile_free(whole);
}

static void test_bound(void **state)
{
	struct profile *whole = profile_from_text(NODE), *p = NULL;
	uint32_t pick = 0;

	assert_int_equal(profile_extract(whole, &pick, 1, "", 16 << 10, &p), 0);
	profile_free(p);
	p = NULL;
	assert_int_equal(profile_extract(whole, &pick, 1, "", 1500, &p), -EFBIG);
	assert_null(p);
	profile_free(whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_are_the_whole),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
