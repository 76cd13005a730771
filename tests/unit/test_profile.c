/* SPDX-License-Identifier: Apache-2.0 */
/* The profile model: dense ids, exact merging, saturation (case E-02), bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/text.h"
#include "proto/profile.h"

enum { ROOMY = 64 << 20 };

static struct profile *new_profile(size_t max_bytes)
{
	struct profile *p = NULL;

	assert_int_equal(profile_new(max_bytes, &p), 0);
	assert_int_equal(profile_add_type(p, "samples", "count"), 1);
	assert_int_equal(profile_add_type(p, "cpu", "nanoseconds"), 2);
	return p;
}

static int64_t add_named(struct profile *p, const char *name)
{
	int64_t string = profile_string(p, name), function;
	struct profile_line line = { 0 };

	assert_true(string > 0);
	function = profile_add_function(p, &(struct profile_function){ .name = (uint32_t)string });
	assert_true(function > 0);
	line.function_id = (uint32_t)function;
	return profile_add_location(p, 0, 0, &line, 1);
}

static void strings_are_clean_and_kept_once(void **state)
{
	struct profile *p = new_profile(ROOMY);
	int64_t first = profile_string(p, "a\nb"), again = profile_string_n(p, "a\nbxx", 3);

	assert_int_equal(profile_string(p, ""), 0);
	assert_int_equal(first, again);
	assert_string_equal(profile_text(p, (uint32_t)first), "a\\x0ab");
	/* Text that was escaped before stays the same. */
	assert_int_equal(profile_string(p, "a\\x0ab"), first);
	assert_string_equal(profile_text(p, (uint32_t)profile_string_n(p, "\0\xff\x1b[1m", 6)),
			    "\\x00\\xff\\x1b[1m");
	assert_string_equal(profile_text(p, (uint32_t)profile_string(p, "h\xc3\xa9")), "h\xc3\xa9");
	assert_string_equal(profile_text(p, (uint32_t)profile_string(p, "C:\\dir\\\x01")),
			    "C:\\dir\\\\x01");
	profile_free(p);
}

static void mappings_merge(void **state)
{
	struct profile *p = new_profile(ROOMY);
	uint32_t name = (uint32_t)profile_string(p, "/bin/x"), id = (uint32_t)profile_string(p, "ab");
	struct profile_mapping m = { .filename = name, .build_id = id, .has_functions = true };

	assert_int_equal(profile_add_mapping(p, &m), 1);
	assert_int_equal(profile_add_mapping(p, &m), 1);
	assert_true(p->mappings[0].has_functions);
	m.has_functions = false;
	assert_int_equal(profile_add_mapping(p, &m), 1);
	assert_false(p->mappings[0].has_functions);
	m.build_id = 0;
	assert_int_equal(profile_add_mapping(p, &m), 2);
	m.memory_start = 4096;
	assert_int_equal(profile_add_mapping(p, &m), 3);
	m.filename = 999;
	assert_int_equal(profile_add_mapping(p, &m), -EINVAL);
	assert_int_equal(p->mapping_count, 3);
	profile_free(p);
}

static void locations_merge_exactly(void **state)
{
	struct profile *p = new_profile(ROOMY);
	struct profile_line lines[2] = { { .function_id = 1, .line = 7 }, { .function_id = 2 } };
	int64_t both;

	assert_int_equal(add_named(p, "f"), 1);
	assert_int_equal(add_named(p, "g"), 2);
	assert_int_equal(add_named(p, "f"), 1);
	both = profile_add_location(p, 0, 0, lines, 2);
	assert_int_equal(both, 3);
	assert_int_equal(profile_add_location(p, 0, 0, lines, 2), both);
	assert_int_equal(profile_add_location(p, 0, 1, lines, 2), 4);
	lines[0].line = 8;
	assert_int_equal(profile_add_location(p, 0, 0, lines, 2), 5);
	assert_int_equal(profile_add_location(p, 0, 0, NULL, 0), 6);
	assert_int_equal(profile_add_location(p, 1, 0, NULL, 0), -EINVAL); /* no mapping 1 */
	lines[0].function_id = 3;
	assert_int_equal(profile_add_location(p, 0, 0, lines, 1), -EINVAL);
	lines[0].function_id = 0;
	assert_int_equal(profile_add_location(p, 0, 0, lines, 1), -EINVAL);
	/* The copy is ours. */
	assert_int_equal(p->locations[2].lines[0].line, 7);
	profile_free(p);
}

/* A name that comes later; once. */
static void locations_are_named_later(void **state)
{
	struct profile *p = new_profile(ROOMY);
	int64_t named = add_named(p, "f"), bare = profile_add_location(p, 0, 0x1000, NULL, 0);
	struct profile_line line = { .function_id = 1, .line = 7 };

	assert_int_equal(profile_name_location(p, (uint32_t)bare, &line, 1), 0);
	line.line = 8; /* copied */
	assert_int_equal(p->locations[bare - 1].line_count, 1);
	assert_int_equal(p->locations[bare - 1].lines[0].line, 7);
	assert_int_equal(profile_name_location(p, (uint32_t)bare, &line, 1), -EINVAL);
	assert_int_equal(profile_name_location(p, (uint32_t)named, &line, 1), -EINVAL);
	assert_int_equal(profile_name_location(p, 0, &line, 1), -EINVAL);
	assert_int_equal(profile_name_location(p, 3, &line, 1), -EINVAL);
	profile_free(p);
}

static void samples_merge_and_saturate(void **state)
{
	struct profile *p = new_profile(ROOMY);
	uint32_t stack[2] = { (uint32_t)add_named(p, "f"), (uint32_t)add_named(p, "g") };
	uint32_t key = (uint32_t)profile_string(p, "comm");
	struct profile_label label = { .key = key, .str = (uint32_t)profile_string(p, "x") };

	assert_int_equal(profile_add_sample(p, stack, 2, (int64_t[]){ 1, 10 }, &label, 1), 0);
	assert_int_equal(profile_add_sample(p, stack, 2, (int64_t[]){ 2, 20 }, &label, 1), 0);
	assert_int_equal(p->sample_count, 1);
	assert_int_equal(p->samples[0].values[0], 3);
	assert_int_equal(p->samples[0].values[1], 30);

	assert_int_equal(profile_add_sample(p, stack, 1, (int64_t[]){ 1, 1 }, &label, 1), 0);
	assert_int_equal(profile_add_sample(p, stack, 2, (int64_t[]){ 1, 1 }, NULL, 0), 0);
	label.str = 0;
	label.num = 5;
	assert_int_equal(profile_add_sample(p, stack, 2, (int64_t[]){ 1, 1 }, &label, 1), 0);
	assert_int_equal(profile_add_sample(p, NULL, 0, (int64_t[]){ 1, 1 }, NULL, 0), 0);
	assert_int_equal(p->sample_count, 5);

	assert_int_equal(profile_add_sample(p, stack, 2, (int64_t[]){ 0, INT64_MAX }, NULL, 0), 0);
	assert_int_equal(p->samples[2].values[0], 1);
	assert_true(p->samples[2].values[1] == INT64_MAX);
	/* A row of zeros is nothing. */
	assert_int_equal(profile_add_sample(p, stack, 2, (int64_t[]){ 0, 0 }, &label, 0), 0);
	assert_int_equal(p->sample_count, 5);
	profile_free(p);
}

static void bad_samples_are_refused(void **state)
{
	struct profile *p = new_profile(ROOMY);
	uint32_t stack[2] = { (uint32_t)add_named(p, "f"), 2 };
	struct profile_label label = { .key = 4000 };
	struct profile *empty;

	assert_int_equal(profile_add_sample(p, stack, 2, (int64_t[]){ 1, 1 }, NULL, 0), -EINVAL);
	stack[1] = 0;
	assert_int_equal(profile_add_sample(p, stack, 2, (int64_t[]){ 1, 1 }, NULL, 0), -EINVAL);
	assert_int_equal(profile_add_sample(p, stack, 1, (int64_t[]){ 1, -1 }, NULL, 0), -EINVAL);
	/* What a cast of UINT64_MAX makes. */
	assert_int_equal(profile_add_sample(p, stack, 1, (int64_t[]){ (int64_t)UINT64_MAX, 1 }, NULL,
					    0), -EINVAL);
	assert_int_equal(profile_add_sample(p, stack, 1, (int64_t[]){ 1, 1 }, &label, 1), -EINVAL);
	assert_int_equal(p->sample_count, 0);
	assert_int_equal(profile_add_sample(p, stack, 1, (int64_t[]){ 1, 1 }, NULL, 0), 0);
	assert_int_equal(profile_add_type(p, "late", "count"), -EINVAL);

	assert_int_equal(profile_new(ROOMY, &empty), 0);
	assert_int_equal(profile_add_sample(empty, NULL, 0, (int64_t[]){ 1 }, NULL, 0), -EINVAL);
	for (int i = 0; i < PROFILE_MAX_TYPES; i++)
		assert_int_equal(profile_add_type(empty, "t", "count"), i + 1);
	assert_int_equal(profile_add_type(empty, "t", "count"), -EINVAL);
	profile_free(empty);
	profile_free(p);
}

static void appended_samples_stay_apart(void **state)
{
	struct profile *p = new_profile(ROOMY);

	assert_int_equal(profile_append_sample(p, NULL, 0, (int64_t[]){ 1, 1 }, NULL, 0), 0);
	assert_int_equal(profile_append_sample(p, NULL, 0, (int64_t[]){ 1, 1 }, NULL, 0), 0);
	assert_int_equal(p->sample_count, 2);
	profile_free(p);
}

/* Every kind of addition, until the bound: an error, no crash, and the profile stays usable. */
static void memory_is_bounded(void **state)
{
	enum { BOUND = 256 * 1024 };
	struct profile *p = new_profile(BOUND);
	size_t samples;
	int err = 0;

	for (unsigned i = 0; !err; i++) {
		char name[32];
		int64_t string, function = -1, location = -1;
		struct profile_line line = { 0 };
		uint32_t id;

		assert_true(i < BOUND);
		snprintf(name, sizeof(name), "function_%u", i);
		string = profile_string(p, name);
		if (string > 0)
			function = profile_add_function(
				p, &(struct profile_function){ .name = (uint32_t)string });
		line.function_id = (uint32_t)function;
		if (function > 0)
			location = profile_add_location(p, 0, i, &line, 1);
		id = (uint32_t)location;
		err = location > 0 ? profile_add_sample(p, &id, 1, (int64_t[]){ 1, 1 }, NULL, 0) :
				     -ENOMEM;
	}
	assert_int_equal(err, -ENOMEM);
	assert_true(p->full);
	samples = p->sample_count;
	assert_true(samples > 100);
	/* A known stack still counts. */
	assert_int_equal(profile_add_sample(p, (uint32_t[]){ 1 }, 1, (int64_t[]){ 1, 1 }, NULL, 0), 0);
	assert_int_equal(p->sample_count, samples);
	assert_int_equal(p->samples[0].values[0], 2);
	profile_free(p);
	profile_free(NULL);
}

static void comments_are_escaped(void **state)
{
	struct profile *p = new_profile(ROOMY);

	assert_int_equal(profile_add_comment(p, "lost: %d\n", 3), 0);
	assert_int_equal(profile_add_comment(p, "lost: %d\n", 3), 0);
	assert_int_equal(p->comment_count, 2);
	assert_string_equal(profile_text(p, p->comments[1]), "lost: 3\\x0a");
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_are_clean_and_kept_once),
		cmocka_unit_test(mappings_merge),
		cmocka_unit_test(locations_merge_exactly),
		cmocka_unit_test(locations_are_named_later),
		cmocka_unit_test(samples_merge_and_saturate),
		cmocka_unit_test(bad_samples_are_refused),
		cmocka_unit_test(appended_samples_stay_apart),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(comments_are_escaped),
	};

	return cmocka_run_group_tests_name("profile", tests, NULL, NULL);
}
