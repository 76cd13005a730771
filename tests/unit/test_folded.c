/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "proto/folded.h"

enum { ROOMY = 16 << 20 };

static int to_buf(void *context, const void *bytes, size_t len)
{
	buf_put(context, bytes, len);
	return buf_error(context);
}

static int refuse(void *context, const void *bytes, size_t len)
{
	return -EPIPE;
}

static struct profile *new_profile(void)
{
	struct profile *p = NULL;

	assert_int_equal(profile_new(ROOMY, &p), 0);
	profile_add_type(p, "samples", "count");
	profile_add_type(p, "cpu", "nanoseconds");
	return p;
}

static uint32_t add_function(struct profile *p, const char *name)
{
	struct profile_function f = { .name = (uint32_t)profile_string(p, name) };

	return (uint32_t)profile_add_function(p, &f);
}

static uint32_t add_frame(struct profile *p, const char *name)
{
	struct profile_line line = { .function_id = add_function(p, name) };

	return (uint32_t)profile_add_location(p, 0, 0, &line, 1);
}

static uint32_t add_address(struct profile *p, const char *file, uint64_t address)
{
	struct profile_mapping m = { .filename = (uint32_t)profile_string(p, file ? file : "") };
	uint32_t id = file ? (uint32_t)profile_add_mapping(p, &m) : 0;

	return (uint32_t)profile_add_location(p, id, address, NULL, 0);
}

static void add(struct profile *p, const uint32_t *stack, size_t len, int64_t n, const char *comm)
{
	struct profile_label label = { .key = (uint32_t)profile_string(p, "comm") };

	if (comm)
		label.str = (uint32_t)profile_string(p, comm);
	assert_int_equal(profile_append_sample(p, stack, len, (int64_t[]){ n, n * 10 }, &label,
					       comm ? 1 : 0),
			 0);
}

static void expect(const struct profile *p, size_t type, const char *text)
{
	struct buf out;

	buf_init(&out, ROOMY);
	assert_int_equal(folded_write(p, type, (struct byte_sink){ to_buf, &out }), 0);
	assert_string_equal(buf_cstr(&out), text);
	buf_fini(&out);
}

static void lines_are_sorted_and_summed(void **state)
{
	struct profile *p = new_profile();
	uint32_t leaf = add_frame(p, "leaf"), root = add_frame(p, "main"), mid = add_frame(p, "a mid");

	add(p, (uint32_t[]){ leaf, root }, 2, 3, "web");
	add(p, (uint32_t[]){ leaf, mid, root }, 3, 5, "web");
	add(p, (uint32_t[]){ leaf, root }, 2, 4, "web");
	add(p, (uint32_t[]){ root }, 1, 1, "app server");
	expect(p, 0, "app server;main 1\nweb;main;a mid;leaf 5\nweb;main;leaf 7\n");
	expect(p, 1, "app server;main 10\nweb;main;a mid;leaf 50\nweb;main;leaf 70\n");
	profile_free(p);
}

static void separators_in_names_are_replaced(void **state)
{
	struct profile *p = new_profile();
	uint32_t leaf = add_frame(p, "f;g\n");

	add(p, &leaf, 1, 1, "x;y");
	expect(p, 0, "x:y;f:g\\x0a 1\n");
	profile_free(p);
}

static void frames_without_names(void **state)
{
	struct profile *p = new_profile();
	uint32_t stack[] = { add_address(p, "/usr/lib/libc.so.6", 0x1234), add_address(p, NULL, 0x99),
			     add_address(p, "[jit]", 0xabc), add_frame(p, "[truncated]") };

	add(p, stack, 4, 1, NULL);
	expect(p, 0, "[truncated];[jit]+0xabc;[unknown];libc.so.6+0x1234 1\n");
	profile_free(p);
}

static void inlined_functions_are_frames(void **state)
{
	struct profile *p = new_profile();
	struct profile_line lines[] = { { .function_id = add_function(p, "inner") },
					{ .function_id = add_function(p, "outer") } };
	uint32_t both = (uint32_t)profile_add_location(p, 0, 0, lines, 2), root = add_frame(p, "main");
	struct buf text;

	add(p, (uint32_t[]){ both, root }, 2, 1, NULL);
	expect(p, 0, "main;outer;inner 1\n");
	buf_init(&text, 100);
	folded_frame_text(p, &p->locations[both - 1], 1, &text);
	assert_string_equal(buf_cstr(&text), "outer");
	buf_fini(&text);
	profile_free(p);
}

static void empty_stacks_and_zero_values(void **state)
{
	struct profile *p = new_profile();
	uint32_t leaf = add_frame(p, "leaf");

	expect(p, 0, "");
	add(p, NULL, 0, 2, "web");
	add(p, NULL, 0, 3, NULL);
	assert_int_equal(profile_append_sample(p, &leaf, 1, (int64_t[]){ 0, 5 }, NULL, 0), 0);
	expect(p, 0, "[unknown] 3\nweb 2\n");
	profile_free(p);
}

static void sums_saturate(void **state)
{
	struct profile *p = new_profile();

	for (int i = 0; i < 2; i++)
		assert_int_equal(profile_append_sample(p, NULL, 0, (int64_t[]){ INT64_MAX, 1 }, NULL, 0),
				 0);
	expect(p, 0, "[unknown] 9223372036854775807\n");
	profile_free(p);
}

static void the_sinks_error_comes_back(void **state)
{
	struct profile *p = new_profile();

	add(p, NULL, 0, 1, NULL);
	assert_int_equal(folded_write(p, 0, (struct byte_sink){ refuse, NULL }), -EPIPE);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_sorted_and_summed),
		cmocka_unit_test(separators_in_names_are_replaced),
		cmocka_unit_test(frames_without_names),
		cmocka_unit_test(inlined_functions_are_frames),
		cmocka_unit_test(empty_stacks_and_zero_values),
		cmocka_unit_test(sums_saturate),
		cmocka_unit_test(the_sinks_error_comes_back),
	};

	return cmocka_run_group_tests_name("folded", tests, NULL, NULL);
}
