/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the writer makes must please everybody: a strict checker of our own (ids 1..n in order,
 * no dangling reference, no repeated string, one value per type...), `go tool pprof -raw` where
 * there is a Go, and our reader. Cases E-01 (a)-(f) and E-02.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>

#include "proto/compress.h"
#include "proto/pprof.h"
#include "tests/unit/pprof_check.h"

enum { ROOMY = 64 << 20 };

static int to_buf(void *context, const void *bytes, size_t len)
{
	buf_put(context, bytes, len);
	return buf_error(context);
}

/* --- Go's pprof --------------------------------------------------------------------------- */

static bool have_go(void)
{
	static int have = -1;

	if (have < 0)
		have = system("go tool pprof -h >/dev/null 2>&1") != 127 * 256 &&
		       system("go version >/dev/null 2>&1") == 0;
	return have == 1;
}

/* Runs pprof on the gzipped file; its output goes to `ret_text`. */
static void run_pprof(const struct buf *file, const char *mode, char *ret_text, size_t size)
{
	char path[] = "/tmp/test_pprof_XXXXXX", command[128];
	int fd = mkstemp(path);
	struct buf packed;
	struct compressor *c;
	struct byte_sink sink;
	size_t len;
	FILE *pipe;

	assert_true(fd >= 0);
	buf_init(&packed, ROOMY);
	assert_int_equal(compressor_open(COMPRESS_GZIP, 0, (struct byte_sink){ to_buf, &packed }, &c),
			 0);
	sink = compressor_sink(c);
	assert_int_equal(sink.write(sink.context, file->data, file->len), 0);
	assert_int_equal(compressor_finish(c), 0);
	compressor_close(c);
	assert_int_equal(write(fd, packed.data, packed.len), packed.len);
	close(fd);
	buf_fini(&packed);

	snprintf(command, sizeof(command), "go tool pprof -symbolize=none %s %s 2>&1", mode, path);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	len = fread(ret_text, 1, size - 1, pipe);
	ret_text[len] = 0;
	if (pclose(pipe) != 0)
		fail_msg("%s: %s", command, ret_text);
	unlink(path);
}

/* --- the checks of one profile ------------------------------------------------------------ */

static void check(const struct profile *p)
{
	char reason[256], text[65536];
	struct profile *back = NULL;
	struct buf file;

	buf_init(&file, ROOMY);
	assert_int_equal(pprof_write(p, (struct byte_sink){ to_buf, &file }), 0);
	check_strictly(&file, p);
	if (pprof_read(file.data, file.len, ROOMY, &back, reason, sizeof(reason)))
		fail_msg("%s", reason);
	assert_int_equal(back->sample_count, p->sample_count);
	assert_int_equal(back->location_count, p->location_count);
	assert_int_equal(back->period, p->period);
	profile_free(back);
	if (have_go()) {
		run_pprof(&file, "-raw", text, sizeof(text));
		assert_non_null(strstr(text, "cpu/nanoseconds\n"));
	}
	buf_fini(&file);
}

static struct profile *new_profile(void)
{
	struct profile *p = NULL;

	assert_int_equal(profile_new(ROOMY, &p), 0);
	profile_add_type(p, "samples", "count");
	profile_add_type(p, "cpu", "nanoseconds");
	p->period_type = p->types[1];
	p->period = 10101010;
	p->time_ns = 1700000000000000000;
	p->duration_ns = 60000000000;
	return p;
}

static uint32_t add_mapping(struct profile *p, const char *file, bool named)
{
	struct profile_mapping m = { .filename = (uint32_t)profile_string(p, file),
				     .build_id = (uint32_t)profile_string(p, "00ff"),
				     .has_functions = named };

	return (uint32_t)profile_add_mapping(p, &m);
}

static uint32_t add_frame(struct profile *p, uint32_t mapping, uint64_t address, const char *name)
{
	struct profile_function f = { .name = name ? (uint32_t)profile_string(p, name) : 0 };
	struct profile_line line = { 0 };

	if (!name)
		return (uint32_t)profile_add_location(p, mapping, address, NULL, 0);
	line.function_id = (uint32_t)profile_add_function(p, &f);
	return (uint32_t)profile_add_location(p, mapping, address, &line, 1);
}

static void add_stack(struct profile *p, const uint32_t *stack, size_t len, int64_t n)
{
	struct profile_label labels[] = {
		{ .key = (uint32_t)profile_string(p, "comm"), .str = (uint32_t)profile_string(p, "app") },
		{ .key = (uint32_t)profile_string(p, "pid"), .num = 42 },
	};
	int64_t values[] = { n, n * p->period };

	assert_int_equal(profile_add_sample(p, stack, len, values, labels, 2), 0);
}

static void a_nothing_symbolized(void **state)
{
	struct profile *p = new_profile();
	uint32_t m = add_mapping(p, "/bin/app", false);
	uint32_t stack[] = { add_frame(p, m, 0x1000, NULL), add_frame(p, m, 0x2000, NULL) };

	add_stack(p, stack, 2, 3);
	check(p);
	profile_free(p);
}

static void b_only_kernel(void **state)
{
	struct profile *p = new_profile();
	uint32_t m = add_mapping(p, "[kernel.kallsyms]", true), ext4 = add_mapping(p, "[ext4]", true);
	uint32_t stack[] = { add_frame(p, ext4, 0xffffffffc0001000, "ext4_read"),
			     add_frame(p, m, 0xffffffff81000000, "do_syscall_64") };

	add_stack(p, stack, 2, 3);
	check(p);
	profile_free(p);
}

static void c_jit_only(void **state)
{
	struct profile *p = new_profile();
	uint32_t m = add_mapping(p, "[jit]", true);
	uint32_t stack[] = { add_frame(p, m, 0x7f0000001000, "LazyCompile:~f"),
			     add_frame(p, 0, 0x7f0000002000, NULL) };

	add_stack(p, stack, 2, 3);
	check(p);
	profile_free(p);
}

static void d_empty_interval(void **state)
{
	struct profile *p = new_profile();

	check(p);
	profile_free(p);
}

static void e_no_mappings(void **state)
{
	struct profile *p = new_profile();
	uint32_t stack[] = { add_frame(p, 0, 0x1000, NULL), add_frame(p, 0, 0, "[truncated]") };

	add_stack(p, stack, 2, 3);
	add_stack(p, NULL, 0, 1);
	check(p);
	profile_free(p);
}

static void f_unknown_module(void **state)
{
	struct profile *p = new_profile();
	uint32_t nameless = add_mapping(p, "", false), m = add_mapping(p, "/bin/app", false);
	uint32_t stack[] = { add_frame(p, nameless, 0x1000, NULL), add_frame(p, m, 0x1000, "main") };

	add_stack(p, stack, 2, 3);
	check(p);
	profile_free(p);
}

static void saturated_values_and_odd_names(void **state)
{
	struct profile *p = new_profile();
	uint32_t m = add_mapping(p, "/tmp/a \"b\" \xff\n", false);
	uint32_t frame = add_frame(p, m, UINT64_MAX, "f(\xfe;\t)");

	for (int i = 0; i < 3; i++)
		assert_int_equal(profile_add_sample(p, &frame, 1,
						    (int64_t[]){ INT64_MAX, INT64_MAX - 1 }, NULL, 0),
				 0);
	assert_true(p->samples[0].values[1] == INT64_MAX);
	profile_add_comment(p, "kernel: %s", "x\ny");
	profile_add_comment(p, "%s", "");
	p->default_type = p->types[0].type;
	check(p);
	profile_free(p);
}

/* No period and no types: period_type is there all the same. */
static void an_empty_profile_is_framed_right(void **state)
{
	struct profile *p = NULL;
	struct buf file;

	assert_int_equal(profile_new(ROOMY, &p), 0);
	buf_init(&file, 64);
	assert_int_equal(pprof_write(p, (struct byte_sink){ to_buf, &file }), 0);
	assert_int_equal(file.len, 4);
	assert_memory_equal(file.data, "\x32\x00\x5a\x00", 4);
	check_strictly(&file, p);
	buf_fini(&file);
	profile_free(p);
}

static void go_adds_up_the_same(void **state)
{
	struct profile *p = new_profile();
	uint32_t m = add_mapping(p, "/bin/app", true);
	uint32_t hot = add_frame(p, m, 0x1000, "hot"), main_frame = add_frame(p, m, 0x2000, "main");
	char text[65536];
	struct buf file;

	if (!have_go()) {
		print_message("# skip: no `go` here to run its pprof\n");
		profile_free(p);
		skip();
	}
	add_stack(p, (uint32_t[]){ hot, main_frame }, 2, 90);
	add_stack(p, (uint32_t[]){ main_frame }, 1, 10);
	buf_init(&file, ROOMY);
	assert_int_equal(pprof_write(p, (struct byte_sink){ to_buf, &file }), 0);
	run_pprof(&file, "-top -sample_index=samples", text, sizeof(text));
	assert_non_null(strstr(text, "90 90.00% 90.00%         90 90.00%  hot"));
	assert_non_null(strstr(text, "10 10.00%   100%        100   100%  main"));
	run_pprof(&file, "-tags", text, sizeof(text));
	assert_non_null(strstr(text, "app"));
	buf_fini(&file);
	profile_free(p);
}

static const char *name_of(const struct profile *p, uint32_t location)
{
	const struct profile_line *line = p->locations[location - 1].lines;

	return profile_text(p, p->functions[line->function_id - 1].name);
}

/* However it came: by mapping and address, by first use, and by stack from the root on. */
static void what_is_alike_stands_together(void **state)
{
	static const char *const leaves[] = { "main", "low", "high", "other" };
	struct profile *p = new_profile(), *back = NULL;
	uint32_t first = add_mapping(p, "/bin/app", true), second = add_mapping(p, "libc.so", true);
	uint32_t other = add_frame(p, second, 0x10, "other");
	uint32_t high = add_frame(p, first, 0x900, "high"), low = add_frame(p, first, 0x200, "low");
	uint32_t main_frame = add_frame(p, first, 0x100, "main");
	struct buf file;

	add_stack(p, (uint32_t[]){ other, main_frame }, 2, 4);
	add_stack(p, (uint32_t[]){ high, main_frame }, 2, 3);
	add_stack(p, (uint32_t[]){ main_frame }, 1, 1);
	add_stack(p, (uint32_t[]){ low, main_frame }, 2, 2);
	check(p);
	buf_init(&file, ROOMY);
	assert_int_equal(pprof_write(p, (struct byte_sink){ to_buf, &file }), 0);
	assert_int_equal(pprof_read(file.data, file.len, ROOMY, &back, NULL, 0), 0);
	for (uint32_t i = 0; i < 4; i++) {
		const struct profile_sample *sample = &back->samples[i];

		assert_string_equal(name_of(back, i + 1), leaves[i]);
		assert_string_equal(profile_text(back, back->functions[i].name), leaves[i]);
		assert_string_equal(name_of(back, sample->locations[0]), leaves[i]);
		assert_int_equal(sample->values[0], i + 1);
	}
	profile_free(back);
	profile_free(p);
	buf_fini(&file);
}

static int refuse(void *context, const void *bytes, size_t len)
{
	size_t *calls = context;

	++*calls;
	return -ENOSPC;
}

static void the_sinks_error_ends_the_writing(void **state)
{
	struct profile *p = new_profile();
	size_t calls = 0;

	for (int i = 0; i < 40000; i++)
		add_frame(p, 0, (uint64_t)i, NULL);
	assert_int_equal(pprof_write(p, (struct byte_sink){ refuse, &calls }), -ENOSPC);
	assert_int_equal(calls, 1);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_nothing_symbolized),
		cmocka_unit_test(b_only_kernel),
		cmocka_unit_test(c_jit_only),
		cmocka_unit_test(d_empty_interval),
		cmocka_unit_test(e_no_mappings),
		cmocka_unit_test(f_unknown_module),
		cmocka_unit_test(saturated_values_and_odd_names),
		cmocka_unit_test(an_empty_profile_is_framed_right),
		cmocka_unit_test(go_adds_up_the_same),
		cmocka_unit_test(what_is_alike_stands_together),
		cmocka_unit_test(the_sinks_error_ends_the_writing),
	};

	return cmocka_run_group_tests_name("pprof_write", tests, NULL, NULL);
}
