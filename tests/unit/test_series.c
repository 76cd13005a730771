/* SPDX-License-Identifier: Apache-2.0 */
/* Samples by what they belong to; each is in one series, also when there are too many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/export/series.h"

enum { ROOMY = 16 << 20, PROGRAMS = 30 };

static uint32_t text(struct profile *p, const char *s)
{
	int64_t number = profile_string(p, s);

	assert_true(number >= 0);
	return (uint32_t)number;
}

static struct profile *new_profile(void)
{
	struct profile *p;

	assert_int_equal(profile_new(ROOMY, &p), 0);
	assert_true(profile_add_type(p, "samples", "count") > 0);
	return p;
}

/* keys and texts by turns, NULL-ended. */
static void add(struct profile *p, int64_t value, ...)
{
	struct profile_label labels[12];
	size_t n = 0;
	const char *key;
	va_list args;

	va_start(args, value);
	while ((key = va_arg(args, const char *)) != NULL) {
		labels[n] = (struct profile_label){ .key = text(p, key) };
		labels[n++].str = text(p, va_arg(args, const char *));
	}
	va_end(args);
	labels[n++] = (struct profile_label){ .key = text(p, "pid"),
					      .num = (int64_t)p->sample_count + 1 };
	assert_int_equal(profile_add_sample(p, NULL, 0, &value, labels, n), 0);
}

static void check_whole(const struct profile *p, const struct series_list *list)
{
	unsigned char seen[4096] = { 0 };
	size_t at = 0;

	assert_int_equal(list->sample_count, p->sample_count);
	for (size_t i = 0; i < list->count; i++) {
		int64_t weight = 0;

		assert_int_equal(list->series[i].first, at);
		assert_true(list->series[i].count > 0);
		for (size_t n = 0; n < list->series[i].count; n++, at++) {
			assert_int_equal(series_at(list, at), i);
			assert_int_equal(seen[list->order[at]]++, 0);
			weight += p->samples[list->order[at]].values[0];
		}
		assert_int_equal(list->series[i].weight, weight);
	}
	assert_int_equal(at, p->sample_count);
}

static void test_identity(void **state)
{
	struct profile *p = new_profile();
	struct series_list list;

	add(p, 1, "comm", "a", "container_id", "c1", "cgroup", "/x/1", NULL);
	add(p, 2, "comm", "a", "container_id", "c1", "cgroup", "/x/2", NULL); /* same container */
	add(p, 3, "comm", "a", "container_id", "c2", NULL);
	add(p, 4, "comm", "b", "container_id", "c1", NULL);
	add(p, 5, "comm", "a", "cgroup", "/y", NULL);
	add(p, 6, "comm", "a", "thread", "t", "cgroup", "/y", NULL);
	add(p, 7, NULL);
	assert_int_equal(series_split(p, 100, &list), 0);
	assert_int_equal(list.count, 5);
	assert_int_equal(list.folded, 0);
	check_whole(p, &list);
	series_list_fini(&list);
	profile_free(p);
}

static void test_too_many(void **state)
{
	struct profile *p = new_profile();
	char program[16], container[16];

	for (int c = 0; c < 4; c++) {
		for (int i = 0; i < PROGRAMS; i++) {
			snprintf(program, sizeof(program), "p%d", i);
			snprintf(container, sizeof(container), "c%d", c);
			add(p, 1 + i, "comm", program, "container_id", container, NULL);
		}
	}
	for (size_t max = 1; max < 140; max++) {
		struct series_list list;

		assert_int_equal(series_split(p, max, &list), 0);
		assert_true(list.count <= max && list.count >= 1);
		assert_true(max >= 4 * PROGRAMS ? list.folded == 0 : list.folded > 0);
		check_whole(p, &list);
		series_list_fini(&list);
	}
	profile_free(p);
}

/* The heaviest keep their name; the rest keeps at least the container. */
static void test_heaviest_stay(void **state)
{
	struct profile *p = new_profile();
	struct series_list list;
	char program[16];
	bool found = false;

	for (int i = 0; i < PROGRAMS; i++) {
		snprintf(program, sizeof(program), "p%d", i);
		add(p, 1 + i, "comm", program, "container_id", "c", NULL);
	}
	assert_int_equal(series_split(p, 10, &list), 0);
	assert_int_equal(list.count, 6);
	for (size_t i = 0; i < list.count; i++) {
		const uint32_t *labels = list.series[i].labels;

		assert_string_equal(profile_text(p, labels[SERIES_CONTAINER_ID]), "c");
		found |= strcmp(profile_text(p, labels[SERIES_PROGRAM]), "p29") == 0;
	}
	assert_true(found);
	series_list_fini(&list);
	profile_free(p);
}

static void test_service(void **state)
{
	struct profile *p = new_profile();
	char buffer[SERIES_SERVICE_BYTES];
	const char *const want[] = { "shop/web", "web", "nginx", "cron", "other" };
	struct series_list list;

	add(p, 1, "namespace", "shop", "container", "web", "comm", "a", NULL);
	add(p, 1, "container", "web", "comm", "b", NULL);
	add(p, 1, "systemd_unit", "x.service", "comm", "nginx", NULL);
	add(p, 1, "systemd_unit", "cron.service", NULL);
	add(p, 1, NULL);
	assert_int_equal(series_split(p, 100, &list), 0);
	for (size_t i = 0; i < list.count; i++)
		assert_string_equal(series_service(p, &list.series[i], buffer), want[i]);
	series_list_fini(&list);
	profile_free(p);
}

static void test_nothing(void **state)
{
	struct profile *p = new_profile();
	struct series_list list;

	assert_int_equal(series_split(p, 1, &list), 0);
	assert_int_equal(list.count, 0);
	series_list_fini(&list);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_identity),      cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_heaviest_stay), cmocka_unit_test(test_service),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
