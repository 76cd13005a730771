/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/daemon_options: what a configuration that is loaded again may change. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "agent/daemon_private.h"

static struct daemon_options usual(void)
{
	return (struct daemon_options){
		.dir = "/d", .listen = "off", .log_level = "info", .debug_dir = "/usr/lib/debug",
		.symfs = "", .frequency_hz = 19, .collect_ns = 10, .window_ns = 60,
		.max_size_mib = 1024, .cpu_budget = 1, .unwind_mib = 32,
	};
}

static void test_what_counts_at_once(void **state)
{
	struct daemon_options options = usual(), fresh = usual();
	char kept[64];

	fresh.log_level = "debug";
	fresh.frequency_hz = 99;
	fresh.max_size_mib = 5;
	fresh.cpu_budget = 2;
	daemon_options_renew(&options, &fresh, kept, sizeof(kept));
	assert_string_equal(kept, "");
	assert_memory_equal(&options.cpu_budget, &fresh.cpu_budget, sizeof(double));
	assert_int_equal(options.frequency_hz, 99);
	assert_int_equal(options.max_size_mib, 5);
	assert_string_equal(options.log_level, "debug");
}

/* The texts stay those of before, by pointer: the agent's parts hold them, and the new ones die. */
static void test_what_stays(void **state)
{
	const struct daemon_options before = usual();
	struct daemon_options options = before, fresh = before;
	char dir[] = "/d", debug_dir[] = "/other", symfs[] = "/mnt", kept[256];

	fresh.dir = dir; /* equal, but elsewhere */
	fresh.debug_dir = debug_dir;
	fresh.symfs = symfs;
	fresh.window_ns = 61;
	fresh.sched_groups = 7;
	fresh.idle = true;
	daemon_options_renew(&options, &fresh, kept, sizeof(kept));
	assert_string_equal(kept, "debug-dir, symfs, window, sched-groups, idle");
	assert_ptr_equal(options.dir, before.dir);
	assert_ptr_equal(options.debug_dir, before.debug_dir);
	assert_ptr_equal(options.symfs, before.symfs);
	assert_int_equal(options.window_ns, 60);
	assert_false(options.idle);
}

static void test_a_short_line(void **state)
{
	struct daemon_options options = usual(), fresh = usual();
	char kept[8];

	fresh.listen = ":1";
	fresh.debug_dir = fresh.symfs = "/x";
	daemon_options_renew(&options, &fresh, kept, sizeof(kept));
	assert_string_equal(kept, "listen,");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_counts_at_once),
		cmocka_unit_test(test_what_stays),
		cmocka_unit_test(test_a_short_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
