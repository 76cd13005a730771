/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/resolve/reader: order, bounds, files that change, and its end at any moment. */
#include "agent/resolve/reader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct reader *reader;
static char path[] = "/tmp/sonde-reader-XXXXXX";

static size_t open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static int setup(void **state)
{
	const struct sym_file_options options = { 0 };

	return reader_new(&options, &reader);
}

static int teardown(void **state)
{
	reader_free(reader);
	return 0;
}

static struct read_job job_of(uint64_t id, const char *file)
{
	struct read_job job = { .id = id, .fd = open(file, O_RDONLY | O_CLOEXEC),
				.wants_table = true, .wants_symbols = true };
	struct stat st;

	assert_int_equal(fstat(job.fd, &st), 0);
	job.identity = (struct target_identity){ st.st_ino, st.st_mtim.tv_sec,
						 (uint64_t)st.st_mtim.tv_nsec };
	return job;
}

static void submit(uint64_t id, bool wants_table, bool wants_symbols)
{
	struct read_job job = job_of(id, "/proc/self/exe");

	job.wants_table = wants_table;
	job.wants_symbols = wants_symbols;
	assert_int_equal(reader_submit(reader, &job), 0);
}

static struct read_result next(void)
{
	struct pollfd results = { .fd = reader_fd(reader), .events = POLLIN };
	struct read_result result;

	assert_int_equal(poll(&results, 1, -1), 1);
	assert_true(reader_next(reader, &result));
	return result;
}

static void drop(struct read_result *result)
{
	unwind_table_free(result->table);
	sym_file_free(result->symbols);
	sym_jit_free(result->jit);
}

static void expect(uint64_t id, enum read_part part, int err)
{
	struct read_result result = next();

	assert_int_equal(result.id, id);
	assert_int_equal(result.part, part);
	assert_int_equal(result.err, err);
	assert_int_equal(result.table != NULL, part == READ_TABLE && !err);
	assert_int_equal(result.symbols != NULL, part == READ_SYMBOLS && !err);
	drop(&result);
}

static void expect_no_more(void)
{
	struct pollfd results = { .fd = reader_fd(reader), .events = POLLIN };
	struct read_result result;

	assert_int_equal(reader_jobs(reader, READ_TABLE), 0);
	assert_int_equal(reader_jobs(reader, READ_SYMBOLS), 0);
	assert_int_equal(poll(&results, 1, 0), 0);
	assert_false(reader_next(reader, &result));
}

/* All tables first, each kind in the order of submission. */
static void test_order(void **state)
{
	submit(9, false, true);
	for (uint64_t id = 1; id <= 3; id++)
		submit(id, true, id != 2);
	assert_int_equal(reader_jobs(reader, READ_TABLE), 3);
	assert_int_equal(reader_start(reader), 0);
	for (uint64_t id = 1; id <= 3; id++)
		expect(id, READ_TABLE, 0);
	expect(9, READ_SYMBOLS, 0);
	expect(1, READ_SYMBOLS, 0);
	expect(3, READ_SYMBOLS, 0);
	expect_no_more();
}

/* JIT code and tables take turns, with JIT code first; symbols wait. */
static void test_turns(void **state)
{
	static const enum read_part parts[] = { READ_JIT,   READ_TABLE, READ_JIT,     READ_TABLE,
						READ_TABLE, READ_TABLE, READ_SYMBOLS, READ_SYMBOLS };
	struct read_job job = { .from_ns = 1 };

	for (uint64_t id = 1; id <= 4; id++)
		submit(id, true, id <= 2);
	for (job.id = 10; job.id < 12; job.id++) {
		job.fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
		assert_int_equal(sym_jit_new((uint32_t)getpid(), geteuid(), false, &job.jit), 0);
		assert_int_equal(reader_submit(reader, &job), 0);
	}
	assert_int_equal(reader_jobs(reader, READ_JIT), 2);
	assert_int_equal(reader_start(reader), 0);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct read_result result = next();

		assert_int_equal(result.part, parts[i]);
		assert_int_equal(result.jit != NULL, result.id >= 10);
		drop(&result);
	}
	expect_no_more();
}

/* A full queue takes nothing over. */
static void test_bound(void **state)
{
	size_t before = open_fds();
	struct read_job job;

	for (uint64_t id = 0; id < READER_MAX_JOBS; id++)
		submit(id, true, true);
	job = job_of(1000, "/proc/self/exe");
	assert_int_equal(reader_submit(reader, &job), -EAGAIN);
	assert_int_equal(close(job.fd), 0);
	assert_int_equal(open_fds(), before + READER_MAX_JOBS);
	/* The end of a reader that never ran. */
	reader_free(reader);
	reader = NULL;
	assert_true(open_fds() < before);
}

/* Every wanted part is answered once, also with far more of them than results may wait. */
static void test_each_answer_once(void **state)
{
	size_t before = open_fds();
	unsigned int tables[READER_MAX_JOBS] = { 0 }, symbols[READER_MAX_JOBS] = { 0 };

	assert_int_equal(reader_start(reader), 0);
	for (uint64_t id = 0; id < READER_MAX_JOBS; id++)
		submit(id, true, true);
	for (int i = 0; i < 2 * READER_MAX_JOBS; i++) {
		struct read_result result = next();

		assert_int_equal(result.err, 0);
		assert_true(result.id < READER_MAX_JOBS);
		(result.part == READ_TABLE ? tables : symbols)[result.id]++;
		drop(&result);
	}
	for (int id = 0; id < READER_MAX_JOBS; id++) {
		assert_int_equal(tables[id], 1);
		assert_int_equal(symbols[id], 1);
	}
	assert_int_equal(reader_call(reader, getppid), getppid()); /* the last one is wholly done */
	expect_no_more();
	assert_int_equal(open_fds(), before);
}

/* Symbols are given up, and said so, where their queue is full; the table comes all the same. */
static void test_full_symbol_queue(void **state)
{
	for (uint64_t id = 0; id < READER_MAX_JOBS; id++)
		submit(id, false, true);
	submit(1000, true, true);
	assert_int_equal(reader_start(reader), 0);
	expect(1000, READ_TABLE, 0);
	expect(1000, READ_SYMBOLS, -EAGAIN);
	for (uint64_t id = 0; id < READER_MAX_JOBS; id++)
		expect(id, READ_SYMBOLS, 0);
	expect_no_more();
}

static void test_few_descriptors(void **state)
{
	const struct sym_file_options options = { 0 };
	struct rlimit before, few;
	struct read_job job;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 64;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	reader_free(reader);
	assert_int_equal(reader_new(&options, &reader), 0);
	for (uint64_t id = 0; id < 8; id++)
		submit(id, true, true);
	job = job_of(8, "/proc/self/exe");
	assert_int_equal(reader_submit(reader, &job), -EAGAIN);
	close(job.fd);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Changed between the opening and the reading: no part of it is passed on. */
static void test_changed_file(void **state)
{
	const struct timespec times[2] = { { 1, 0 }, { 1, 0 } };
	char command[128];
	struct read_job job;

	strcpy(path + sizeof(path) - 7, "XXXXXX");
	close(mkstemp(path));
	snprintf(command, sizeof(command), "cp /proc/%d/exe %s", getpid(), path);
	assert_int_equal(system(command), 0);
	job = job_of(1, path);
	assert_int_equal(reader_submit(reader, &job), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	job = job_of(2, path);
	assert_int_equal(reader_submit(reader, &job), 0);
	assert_int_equal(unlink(path), 0); /* which changes nothing in it */
	assert_int_equal(reader_start(reader), 0);
	expect(1, READ_TABLE, -ESTALE);
	expect(2, READ_TABLE, 0);
	expect(1, READ_SYMBOLS, -ESTALE);
	expect(2, READ_SYMBOLS, 0);
	expect_no_more();
}

static void test_no_elf(void **state)
{
	struct read_job job = job_of(1, "/etc/passwd");

	assert_int_equal(reader_submit(reader, &job), 0);
	assert_int_equal(reader_start(reader), 0);
	expect(1, READ_TABLE, -ENOEXEC);
	expect(1, READ_SYMBOLS, -ENOEXEC);
}

static void test_symbols_given_up(void **state)
{
	submit(1, true, true);
	reader_set_symbols(reader, false);
	assert_int_equal(reader_start(reader), 0);
	expect(1, READ_TABLE, 0);
	expect(1, READ_SYMBOLS, -ECANCELED);
	reader_set_symbols(reader, true);
	submit(1, true, true);
	expect(1, READ_TABLE, 0);
	expect(1, READ_SYMBOLS, 0);
}

static void test_bytes_in_flight(void **state)
{
	struct pollfd results = { .fd = reader_fd(reader), .events = POLLIN };
	struct read_result result;

	assert_int_equal(reader_bytes(reader, READ_SYMBOLS), 0);
	submit(1, false, true);
	assert_int_equal(reader_start(reader), 0);
	assert_int_equal(poll(&results, 1, -1), 1);
	assert_true(reader_bytes(reader, READ_SYMBOLS) > 0);
	assert_int_equal(reader_bytes(reader, READ_TABLE), 0);
	result = next();
	assert_int_equal(reader_bytes(reader, READ_SYMBOLS), 0);
	drop(&result);
}

static int is_main_thread(void)
{
	return gettid() == getpid();
}

/* In the thread, also while it waits for room for a result. */
static void test_call(void **state)
{
	assert_int_equal(reader_call(reader, gettid), 0); /* no thread yet */
	assert_int_equal(reader_start(reader), 0);
	assert_int_not_equal(reader_call(reader, gettid), 0);
	assert_int_equal(reader_call(reader, is_main_thread), 0);
	for (uint64_t id = 0; id < 2 * READER_MAX_RESULTS; id++)
		submit(id, true, false);
	for (int i = 0; i < 100; i++)
		assert_int_equal(reader_call(reader, is_main_thread), 0);
}

/* Whatever it is at: nothing leaks (the sanitizer looks), no descriptor stays open. */
static void test_end_at_any_moment(void **state)
{
	const struct sym_file_options options = { 0 };
	size_t before;

	reader_free(reader);
	before = open_fds();
	for (int fetched = 0; fetched < 40; fetched++) {
		assert_int_equal(reader_new(&options, &reader), 0);
		for (uint64_t id = 0; id < 30; id++)
			submit(id, true, true);
		assert_int_equal(reader_start(reader), 0);
		for (int i = 0; i < fetched; i++) {
			struct read_result result = next();

			drop(&result);
		}
		reader_free(reader);
		assert_int_equal(open_fds(), before);
	}
	reader = NULL;
	reader_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bound, setup, teardown),
		cmocka_unit_test_setup_teardown(test_each_answer_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_symbol_queue, setup, teardown),
		cmocka_unit_test_setup_teardown(test_few_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_changed_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_elf, setup, teardown),
		cmocka_unit_test_setup_teardown(test_symbols_given_up, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bytes_in_flight, setup, teardown),
		cmocka_unit_test_setup_teardown(test_call, setup, teardown),
		cmocka_unit_test_setup_teardown(test_end_at_any_moment, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
