/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of agent/collect/perf_events: lists of CPUs and limits come from files of the test;
 * events are opened where the kernel lets us, with a program that does nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/collect/perf_events.h"

enum { NO_CPU = 8000 };

static char dir[64], online[PATH_MAX], rate[PATH_MAX], reason[512];
static int prog_fd;

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* return 0; */
static int load_program(void)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_PERF_EVENT,
				.insns = (uintptr_t)insns,
				.insn_cnt = 2,
				.license = (uintptr_t) "GPL" };

	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static int setup(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/sonde-perf-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(online, sizeof(online), "%s/online", dir);
	snprintf(rate, sizeof(rate), "%s/rate", dir);
	prog_fd = load_program();
	return 0;
}

static int teardown(void **state)
{
	unlink(online);
	unlink(rate);
	close(prog_fd);
	return rmdir(dir);
}

static int open_events(const char *cpus, const char *limit, uint32_t hz, struct perf_events **ret)
{
	const struct perf_events_options options = { .frequency_hz = hz,
						     .no_hardware = true,
						     .cpu_online = online,
						     .max_rate = rate };

	write_file(online, cpus);
	write_file(rate, limit);
	reason[0] = 0;
	return perf_events_open(&options, prog_fd, ret, reason, sizeof(reason));
}

/* Events of the first CPU, or the test ends as skipped. */
static struct perf_events *must_open(const char *limit, uint32_t hz)
{
	struct perf_events *e = NULL;
	int err = open_events("0\n", limit, hz, &e);

	if (err == -EACCES || err == -EPERM || prog_fd < 0) {
		print_message("# skip: no privilege for perf events\n");
		perf_events_close(e);
		skip();
	}
	assert_int_equal(err, 0);
	return e;
}

static void test_lists_that_cannot_be(void **state)
{
	struct perf_events *e = NULL;

	assert_int_equal(open_events("", "1000", 99, &e), -ENODEV);
	assert_non_null(strstr(reason, "no CPU is online"));
	assert_int_equal(open_events("0-\n", "1000", 99, &e), -EINVAL);
	assert_non_null(strstr(reason, online));
	assert_int_equal(open_events("0-9000\n", "1000", 99, &e), -ERANGE);
	unlink(online);
	assert_int_equal(perf_events_open(&(struct perf_events_options){ .frequency_hz = 99,
									  .cpu_online = online,
									  .max_rate = rate },
					  prog_fd, &e, reason, sizeof(reason)),
			 -ENOENT);
	assert_null(e);
	perf_events_close(NULL);
}

static void test_program_that_is_none(void **state)
{
	const struct perf_events_options options = { .frequency_hz = 99,
						     .no_hardware = true,
						     .cpu_online = online,
						     .max_rate = rate };
	struct perf_events *e = NULL;

	perf_events_close(must_open("1000", 99));
	assert_true(perf_events_open(&options, -1, &e, reason, sizeof(reason)) < 0);
	assert_null(e);
	assert_true(reason[0]);
}

static void test_limit_of_the_frequency(void **state)
{
	static const struct {
		const char *limit;
		uint32_t want;
	} rows[] = {
		{ "50\n", 50 }, { "99\n", 99 }, { "100000\n", 99 }, { "0\n", 99 }, { "", 99 },
		{ "x", 99 }, { "99999999999999999999\n", 99 }, { "4294967296\n", 99 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct perf_events *e = must_open(rows[i].limit, 99);

		assert_int_equal(perf_events_frequency(e), rows[i].want);
		assert_false(perf_events_is_hardware(e));
		perf_events_close(e);
	}
}

static void test_other_frequency(void **state)
{
	struct perf_events *e = must_open("1000\n", 99);

	perf_events_set_frequency(e, 500);
	assert_int_equal(perf_events_frequency(e), 500);
	perf_events_set_frequency(e, 5000);
	assert_int_equal(perf_events_frequency(e), 1000);
	assert_int_equal(perf_events_cpu_count(e), 1);
	perf_events_close(e);
}

static void test_follows_cpus(void **state)
{
	struct perf_events *e = must_open("1000\n", 99);

	write_file(online, "");
	perf_events_follow(e);
	assert_int_equal(perf_events_cpu_count(e), 0);
	write_file(online, "0\n");
	perf_events_follow(e);
	assert_int_equal(perf_events_cpu_count(e), 1);
	assert_int_equal(perf_events_failed_cpus(e), 0);
	write_file(online, "nonsense"); /* leaves all as it is */
	perf_events_follow(e);
	assert_int_equal(perf_events_cpu_count(e), 1);
	snprintf(reason, sizeof(reason), "0,%d\n", NO_CPU);
	write_file(online, reason);
	perf_events_follow(e);
	assert_int_equal(perf_events_cpu_count(e), 1);
	assert_int_equal(perf_events_failed_cpus(e), 1);
	perf_events_close(e);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Until the events have counted something; a clock that stands still for 10 s is a failure. */
static struct perf_totals wait_for(struct perf_events *e, uint64_t more_than)
{
	uint64_t end = now_ns() + 10000000000;
	struct perf_totals t;

	do {
		perf_events_totals(e, &t);
	} while (t.value <= more_than && now_ns() < end);
	assert_true(t.value > more_than);
	return t;
}

/* The books never run backwards, whatever is closed and opened. */
static void test_totals(void **state)
{
	struct perf_events *e = must_open("1000\n", 99);
	struct perf_totals first, second, third;

	perf_events_totals(e, &first);
	assert_int_equal(first.value, 0);
	assert_int_equal(perf_events_enable(e), 0);
	first = wait_for(e, 0);
	assert_true(first.enabled_ns > 0);
	perf_events_set_frequency(e, 200);
	second = wait_for(e, first.value);
	write_file(online, "");
	perf_events_follow(e);
	perf_events_totals(e, &third);
	assert_true(third.value >= second.value);
	assert_true(third.enabled_ns >= second.enabled_ns);
	write_file(online, "0\n");
	perf_events_follow(e); /* opened anew, and running */
	second = wait_for(e, third.value);
	perf_events_disable(e);
	perf_events_totals(e, &second);
	perf_events_totals(e, &third);
	assert_int_equal(second.value, third.value);
	perf_events_close(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists_that_cannot_be),
		cmocka_unit_test(test_program_that_is_none),
		cmocka_unit_test(test_limit_of_the_frequency),
		cmocka_unit_test(test_other_frequency),
		cmocka_unit_test(test_follows_cpus),
		cmocka_unit_test(test_totals),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
