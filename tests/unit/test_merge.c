/* SPDX-License-Identifier: Apache-2.0 */
/* Merging: nothing is lost or made up, and the result is a good profile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/merge.h"
#include "proto/pprof.h"
#include "tests/unit/pprof_check.h"
#include "tests/unit/profile_text.h"

enum { ROOMY = 256 << 20 };

#define NODE "tests/golden/report/node.profile"

static struct profile *empty(void)
{
	struct profile *p;

	assert_int_equal(profile_new(ROOMY, &p), 0);
	return p;
}

static int to_buf(void *context, const void *bytes, size_t len)
{
	buf_put(context, bytes, len);
	return buf_error(context);
}

static void check_good(const struct profile *p)
{
	struct buf file;

	buf_init(&file, ROOMY);
	assert_int_equal(pprof_write(p, (struct byte_sink){ to_buf, &file }), 0);
	check_strictly(&file, p);
	buf_fini(&file);
}

static int64_t sum(const struct profile *p, size_t type)
{
	int64_t total = 0;

	for (size_t i = 0; i < p->sample_count; i++)
		total += p->samples[i].values[type];
	return total;
}

/* A sample as text, so that profiles with other numbers can be compared. */
static char *sample_text(const struct profile *p, const struct profile_sample *s)
{
	struct buf text;
	char *copy;

	buf_init(&text, 1 << 20);
	for (size_t i = 0; i < s->location_count; i++) {
		const struct profile_location *l = &p->locations[s->locations[i] - 1];

		buf_printf(&text, "%llx", (unsigned long long)l->address);
		if (l->mapping_id)
			buf_printf(&text, "@%s",
				   profile_text(p, p->mappings[l->mapping_id - 1].filename));
		for (size_t j = 0; j < l->line_count; j++) {
			const struct profile_function *f =
				&p->functions[l->lines[j].function_id - 1];

			buf_printf(&text, "+%s(%s):%lld", profile_text(p, f->name),
				   profile_text(p, f->filename), (long long)l->lines[j].line);
		}
		buf_put_byte(&text, ';');
	}
	for (size_t i = 0; i < s->label_count; i++)
		buf_printf(&text, " %s=%s,%lld%s", profile_text(p, s->labels[i].key),
			   profile_text(p, s->labels[i].str), (long long)s->labels[i].num,
			   profile_text(p, s->labels[i].unit));
	copy = strdup(buf_cstr(&text));
	buf_fini(&text);
	return copy;
}

static int64_t value_of(const struct profile *p, const char *wanted, size_t type)
{
	int64_t value = -1;

	for (size_t i = 0; i < p->sample_count; i++) {
		char *text = sample_text(p, &p->samples[i]);

		if (strcmp(text, wanted) == 0) {
			assert_int_equal(value, -1);
			value = p->samples[i].values[type];
		}
		free(text);
	}
	return value;
}

/* Each sample of `a`, times `factor`, is in `b`, and nothing else is. */
static void check_times(const struct profile *a, const struct profile *b, int64_t factor)
{
	assert_int_equal(a->sample_count, b->sample_count);
	for (size_t i = 0; i < a->sample_count; i++) {
		char *text = sample_text(a, &a->samples[i]);

		for (size_t type = 0; type < a->type_count; type++)
			assert_int_equal(value_of(b, text, type),
					 a->samples[i].values[type] * factor);
		free(text);
	}
}

static void merging_into_empty_copies(void **state)
{
	struct profile *src = profile_from_text(NODE), *dst = empty();

	assert_int_equal(profile_merge(dst, src), 0);
	check_times(src, dst, 1);
	assert_int_equal(dst->type_count, src->type_count);
	assert_int_equal(dst->period, src->period);
	assert_int_equal(dst->time_ns, src->time_ns);
	assert_int_equal(dst->duration_ns, src->duration_ns);
	assert_string_equal(profile_text(dst, dst->period_type.type),
			    profile_text(src, src->period_type.type));
	assert_string_equal(profile_text(dst, dst->default_type),
			    profile_text(src, src->default_type));
	assert_int_equal(dst->comment_count, src->comment_count);
	check_good(dst);
	profile_free(src);
	profile_free(dst);
}

static void merging_twice_doubles(void **state)
{
	struct profile *src = profile_from_text(NODE), *dst = empty();
	size_t mappings, functions, locations;

	assert_int_equal(profile_merge(dst, src), 0);
	mappings = dst->mapping_count;
	functions = dst->function_count;
	locations = dst->location_count;
	assert_int_equal(profile_merge(dst, src), 0);
	check_times(src, dst, 2);
	assert_int_equal(dst->mapping_count, mappings);
	assert_int_equal(dst->function_count, functions);
	assert_int_equal(dst->location_count, locations);
	check_good(dst);
	profile_free(src);
	profile_free(dst);
}

/* 40 profiles of random stacks and labels: the sums of all values are those of the parts. */
static void values_are_conserved(void **state)
{
	struct profile *dst = empty();
	int64_t want[2] = { 0 };
	uint32_t x = 7;

	for (int round = 0; round < 40; round++) {
		struct profile *src = empty();

		profile_add_type(src, "samples", "count");
		profile_add_type(src, "cpu", "nanoseconds");
		for (int i = 0; i < 300; i++) {
			struct profile_function f = { 0 };
			struct profile_line line = { .line = i % 3 };
			struct profile_label label = { .num = i % 5 };
			uint32_t stack[3];
			char name[32];

			for (int j = 0; j < 3; j++) {
				x = x * 1664525 + 1013904223;
				snprintf(name, sizeof(name), "f%u", (x >> 8) % 50);
				f.name = (uint32_t)profile_string(src, name);
				line.function_id = (uint32_t)profile_add_function(src, &f);
				stack[j] = (uint32_t)profile_add_location(src, 0, x % 2, &line, 1);
			}
			label.key = (uint32_t)profile_string(src, "tid");
			assert_int_equal(profile_add_sample(src, stack, x % 4,
							    (int64_t[]){ 1, x % 100 }, &label,
							    x >> 31),
					 0);
		}
		want[0] += sum(src, 0);
		want[1] += sum(src, 1);
		assert_int_equal(profile_merge(dst, src), 0);
		profile_free(src);
	}
	assert_int_equal(want[0], 40 * 300);
	assert_int_equal(sum(dst, 0), want[0]);
	assert_int_equal(sum(dst, 1), want[1]);
	check_good(dst);
	profile_free(dst);
}

static struct profile *with(const char *type, const char *period, int64_t start, int64_t duration)
{
	struct profile *p = empty();

	profile_add_type(p, type, "count");
	p->period_type.type = (uint32_t)profile_string(p, period);
	p->time_ns = start;
	p->duration_ns = duration;
	profile_add_sample(p, NULL, 0, (int64_t[]){ 5 }, NULL, 0);
	return p;
}

static void other_measurements_are_refused(void **state)
{
	struct profile *dst = with("samples", "cpu", 100, 10);
	struct profile *others[] = { with("objects", "cpu", 1, 1), with("samples", "cycles", 1, 1),
				     empty() };
	size_t strings = dst->strings.count;

	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(profile_merge(dst, others[i]), -EINVAL);
		assert_int_equal(dst->time_ns, 100);
		assert_int_equal(dst->strings.count, strings);
		assert_int_equal(sum(dst, 0), 5);
		profile_free(others[i]);
	}
	profile_free(dst);
}

static void check_times_join(int64_t start, int64_t duration, int64_t want_start, int64_t want_end)
{
	struct profile *dst = with("samples", "cpu", 100, 10);
	struct profile *src = with("samples", "cpu", start, duration);

	assert_int_equal(profile_merge(dst, src), 0);
	assert_int_equal(dst->time_ns, want_start);
	assert_int_equal(dst->time_ns + dst->duration_ns, want_end);
	assert_int_equal(sum(dst, 0), 10);
	profile_free(src);
	profile_free(dst);
}

static void the_time_becomes_that_of_both(void **state)
{
	check_times_join(110, 10, 100, 120);
	check_times_join(50, 10, 50, 110);
	check_times_join(102, 3, 100, 110);
	check_times_join(90, 40, 90, 130);
	check_times_join(0, 0, 100, 110);
	check_times_join(INT64_MAX, INT64_MAX, 100, INT64_MAX);
}

static void counters_are_added_up(void **state)
{
	static const char *const left[] = { "sonde: 0.1.0",  "host: a",
					    "sonde.lost=1",  "sonde.frames[no = symbol]=7",
					    "sonde.zero=0",  "sonde.x=18446744073709551610",
					    "sonde.text=abc" };
	static const char *const right[] = {
		"sonde: 0.1.0", "host: b",     "sonde.lost=41", "sonde.frames[no = symbol]=3",
		"sonde.zero=0", "sonde.x=10",  "sonde.new=4",   "sonde.lost=8",
		"lost=3",       "sonde.text=", "sonde.=5",
	};
	static const char *const want[] = {
		"sonde: 0.1.0",   "host: a",
		"sonde.lost=50",  "sonde.frames[no = symbol]=10",
		"sonde.zero=0",   "sonde.x=18446744073709551615",
		"sonde.text=abc", "host: b",
		"sonde.new=4",    "lost=3",
		"sonde.text=",    "sonde.=5",
	};
	struct profile *a = with("samples", "cpu", 1, 1), *b = with("samples", "cpu", 1, 1);
	struct profile *dst = empty();

	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
		profile_add_comment(a, "%s", left[i]);
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
		profile_add_comment(b, "%s", right[i]);
	assert_int_equal(profile_merge(dst, a), 0);
	assert_int_equal(profile_merge(dst, b), 0);
	assert_int_equal(dst->comment_count, sizeof(want) / sizeof(want[0]));
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_string_equal(profile_text(dst, dst->comments[i]), want[i]);
	check_good(dst);
	profile_free(a);
	profile_free(b);
	profile_free(dst);
}

static struct profile *with_mapping(bool has_functions, const char *file)
{
	struct profile *p = with("samples", "cpu", 1, 1);
	struct profile_mapping m = { .has_functions = has_functions };
	uint32_t location;

	m.filename = (uint32_t)profile_string(p, file);
	location = (uint32_t)profile_add_location(p, (uint32_t)profile_add_mapping(p, &m), 0x10,
						  NULL, 0);
	profile_add_sample(p, &location, 1, (int64_t[]){ 1 }, NULL, 0);
	return p;
}

static void has_functions_needs_both(void **state)
{
	for (int left = 0; left < 2; left++) {
		for (int right = 0; right < 2; right++) {
			struct profile *a = with_mapping(left, "/bin/a"),
				       *b = with_mapping(right, "/bin/a");

			assert_int_equal(profile_merge(a, b), 0);
			assert_int_equal(a->mapping_count, 1);
			assert_int_equal(a->mappings[0].has_functions, left && right);
			profile_free(a);
			profile_free(b);
		}
	}
}

static void the_bound_is_kept(void **state)
{
	struct profile *src = profile_from_text(NODE), *dst;

	assert_int_equal(profile_new(4096, &dst), 0);
	assert_int_equal(profile_merge(dst, src), -ENOMEM);
	assert_true(dst->full);
	profile_free(src);
	profile_free(dst);
}

static void folded_locations_stay_folded(void **state)
{
	struct profile *src = with_mapping(false, "/bin/a"), *dst = empty();

	src->locations[0].is_folded = true;
	assert_int_equal(profile_merge(dst, src), 0);
	assert_true(dst->locations[0].is_folded);
	profile_free(src);
	profile_free(dst);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(merging_into_empty_copies),
		cmocka_unit_test(merging_twice_doubles),
		cmocka_unit_test(values_are_conserved),
		cmocka_unit_test(other_measurements_are_refused),
		cmocka_unit_test(the_time_becomes_that_of_both),
		cmocka_unit_test(counters_are_added_up),
		cmocka_unit_test(has_functions_needs_both),
		cmocka_unit_test(the_bound_is_kept),
		cmocka_unit_test(folded_locations_stay_folded),
	};

	return cmocka_run_group_tests_name("merge", tests, NULL, NULL);
}
