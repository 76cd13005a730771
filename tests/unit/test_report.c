/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sonde report` against golden texts: tests/golden/report/INPUT.profile is a description, made
 * into a pprof file here; NAME.txt is what the case NAME must print. UPDATE_GOLDEN=1 writes the
 * texts anew (look at the difference before keeping them). Then bad input, and a run over many
 * samples, which must not be quadratic.
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

#include "base/clock.h"
#include "base/file.h"
#include "cli/report.h"
#include "proto/compress.h"
#include "proto/pprof.h"
#include "tests/unit/profile_text.h"
#include "tests/unit/report_lab.h"

enum { ROOMY = 256 << 20 };

#define GOLDEN "tests/golden/report/"

static const struct golden {
	const char *name;
	const char *input;
	struct report_options options;
} CASES[] = {
	{ "node", "node", { 0 } },
	{ "node_children", "node", { .children = true, .no_header = true } },
	{ "node_callee", "node", { .call_graph = "callee", .no_header = true } },
	{ "node_caller", "node", { .call_graph = "caller", .no_header = true } },
	{ "node_children_caller", "node",
	  { .children = true, .call_graph = "caller", .percent_limit = 10, .no_header = true } },
	{ "node_by_comm_callee", "node",
	  { .sort = "comm", .call_graph = "callee", .percent_limit = 4, .no_header = true } },
	{ "node_limit", "node", { .percent_limit = 5, .no_header = true } },
	{ "node_ids", "node", { .sort = "pid,tid,thread,cgroup,container,kind", .no_header = true } },
	{ "node_owners", "node", { .sort = "container,pod,unit", .no_header = true } },
	{ "node_container", "node", { .container = "0123", .sort = "container,unit,sym" } },
	{ "node_pod", "node", { .pod_uid = "nobody,5c1a6e7b", .sort = "sym" } },
	{ "node_unit", "node", { .unit = "a.service", .sort = "unit,sym" } },
	{ "node_comm", "node", { .comm = "node,nobody", .sort = "symbol" } },
	{ "node_dso", "node", { .dso = "[kernel.kallsyms],[ext4]", .children = true } },
	{ "node_sym_comma", "node", { .sym = "std::map<int, char>::find", .no_header = true } },
	{ "node_sym_star", "node", { .sym = "fib,wa*", .no_header = true } },
	{ "node_pid", "node", { .pid = "9,10", .no_header = true } },
	{ "node_comm_pid", "node", { .comm = "no*,app", .pid = "7,100", .sort = "sym" } },
	{ "node_none", "node", { .pid = "12345" } },
	{ "node_samples", "node", { .sample_type = "samples", .percent_limit = 10 } },
	{ "node_folded", "node", { .folded = true } },
	{ "node_folded_comm", "node", { .folded = true, .comm = "node" } },
	{ "heap", "heap", { 0 } },
	{ "heap_inuse", "heap", { .sample_type = "inuse_objects", .sort = "sym,srcline,file" } },
	{ "heap_comm", "heap", { .sort = "comm,sym", .no_header = true } },
};

static int to_buf(void *context, const void *bytes, size_t len)
{
	buf_put(context, bytes, len);
	return buf_error(context);
}

static void write_file(const char *path, const void *bytes, size_t len)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static void write_profile(const struct profile *p, enum compress_kind kind, const char *path)
{
	struct compressor *c;
	struct buf file;

	buf_init(&file, ROOMY);
	assert_int_equal(compressor_open(kind, 1, (struct byte_sink){ to_buf, &file }, &c), 0);
	assert_int_equal(pprof_write(p, compressor_sink(c)), 0);
	assert_int_equal(compressor_finish(c), 0);
	compressor_close(c);
	write_file(path, file.data, file.len);
	buf_fini(&file);
}

static void make_path(char path[64])
{
	int fd;

	strcpy(path, "/tmp/test_report_XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
}

static void check_golden(const struct golden *g, const char *text)
{
	char path[128];
	struct buf want;

	snprintf(path, sizeof(path), GOLDEN "%s.txt", g->name);
	if (getenv("UPDATE_GOLDEN"))
		write_file(path, text, strlen(text));
	buf_init(&want, ROOMY);
	if (file_read_path(path, &want))
		fail_msg("%s is missing (UPDATE_GOLDEN=1 makes it)", path);
	if (strcmp(buf_cstr(&want), text) != 0)
		fail_msg("%s differs from:\n%s", path, text);
	for (const char *c = text; *c; c++)
		assert_true((unsigned char)*c >= 0x20 || *c == '\n');
	buf_fini(&want);
}

/* The compression of the input goes round: the text must not depend on it. */
static void golden_texts(void **state)
{
	static const enum compress_kind kinds[] = { COMPRESS_NONE, COMPRESS_GZIP, COMPRESS_ZSTD };

	for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
		char path[64], input[128], *out, *err;
		struct profile *p;

		make_path(path);
		snprintf(input, sizeof(input), GOLDEN "%s.profile", CASES[i].input);
		p = profile_from_text(input);
		write_profile(p, kinds[i % 3], path);
		profile_free(p);
		if (lab_report(CASES[i].options, path, &out, &err))
			fail_msg("%s: %s", CASES[i].name, err);
		assert_string_equal(err, "");
		check_golden(&CASES[i], out);
		free(out);
		free(err);
		unlink(path);
	}
}

static void expect_error(struct report_options options, const char *path, const char *why)
{
	lab_report_fails(options, path, why, path);
}

static void bad_input_is_explained(void **state)
{
	const struct report_options none = { 0 };
	char path[64];

	make_path(path);
	expect_error(none, path, "the file is empty");
	write_file(path, "\x1f\x8b\x08garbage", 10);
	expect_error(none, path, "damaged or cut gzip data");
	write_file(path, "\x28\xb5\x2f\xfdgarbage", 11);
	expect_error(none, path, "damaged or cut zstd data");
	write_file(path, "hello\n", 6);
	expect_error(none, path, "not a pprof profile");
	write_file(path, "\x32\x00", 2);
	expect_error(none, path, "no sample types");
	unlink(path);
	expect_error(none, path, "No such file");
	expect_error(none, "/", "Is a directory");
}

static void bad_options_are_explained(void **state)
{
	struct profile *p = profile_from_text(GOLDEN "node.profile");
	char path[64];

	make_path(path);
	write_profile(p, COMPRESS_GZIP, path);
	profile_free(p);
	expect_error((struct report_options){ .sort = "comm,foo\x1b" }, path,
		     "unknown sort key 'foo\\x1b'; known: comm, thread");
	expect_error((struct report_options){ .sort = "srcline" }, path, "names none");
	expect_error((struct report_options){ .sample_type = "heap" }, path,
		     "no sample type 'heap'; the file has samples, cpu");
	expect_error((struct report_options){ .call_graph = "flat" }, path, "'caller' or 'callee'");
	unlink(path);
}

/* 100,000 different stacks of 64 frames in 2,000 functions, one row for each function. */
static struct profile *big_profile(void)
{
	enum { FUNCTIONS = 2000, STACKS = 100000, DEPTH = 64 };
	uint32_t stack[DEPTH], x = 1;
	struct profile *p = NULL;
	char name[32];

	assert_int_equal(profile_new(ROOMY, &p), 0);
	profile_add_type(p, "samples", "count");
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		struct profile_function f = { 0 };
		struct profile_line line = { .function_id = i + 1 };

		snprintf(name, sizeof(name), "function_%u", i);
		f.name = (uint32_t)profile_string(p, name);
		assert_int_equal(profile_add_function(p, &f), i + 1);
		assert_int_equal(profile_add_location(p, 0, i, &line, 1), i + 1);
	}
	for (uint32_t i = 0; i < STACKS; i++) {
		for (uint32_t j = 0; j < DEPTH; j++) {
			x = x * 1664525 + 1013904223;
			stack[j] = 1 + (x >> 8) % FUNCTIONS;
		}
		assert_int_equal(profile_add_sample(p, stack, DEPTH, (int64_t[]){ 1 }, NULL, 0), 0);
	}
	return p;
}

/* About a second with sanitizers on a slow machine; anything quadratic takes minutes. */
static void large_files_are_quick(void **state)
{
	struct profile *p = big_profile();
	char path[64], *out, *err;
	nsec_t start;

	make_path(path);
	write_profile(p, COMPRESS_NONE, path);
	profile_free(p);
	start = clock_read(CLOCK_PROCESS_CPUTIME_ID);
	assert_int_equal(lab_report((struct report_options){ .children = true }, path, &out, &err), 0);
	assert_true(clock_read(CLOCK_PROCESS_CPUTIME_ID) - start < 60 * NSEC_PER_SEC);
	assert_non_null(strstr(out, "function_1999"));
	free(out);
	free(err);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_texts),
		cmocka_unit_test(bad_input_is_explained),
		cmocka_unit_test(bad_options_are_explained),
		cmocka_unit_test(large_files_are_quick),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
