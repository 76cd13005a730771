/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/resolve/waiting: counts whose files are still being read. */
#include "agent/resolve/resolve.h"
#include "resolve_lab.h"

#include <stdlib.h>

#include "base/proc.h"

enum { STACK = 50, OTHER_STACK = 51, KEEP_DRAINS = 30, JIT_PROCESS = 60 };

static char map_path[64];

static struct resolver_totals totals(void)
{
	struct resolver_totals t;

	resolver_totals(resolver, &t);
	return t;
}

/* Announced, but not read: one stack in it, one that has nothing to do with it. */
static int setup(void **state)
{
	struct sonde_frame frame = { LAB_FILE, 0 };
	int err = lab_open_idle(state);

	if (err)
		return err;
	frame.off = lab_offset(totals);
	lab_announce();
	lab_user_stack(STACK, &frame, 1);
	frame = (struct sonde_frame){ SONDE_FRAME_ANON, 1 };
	lab_user_stack(OTHER_STACK, &frame, 1);
	return 0;
}

/* A process whose JIT code is described by a map in /tmp: this very one. */
static void put_jit_process(void)
{
	struct sonde_process record = { .tgid = (uint32_t)getpid(), .tid = (uint32_t)getpid(),
					.ns_tgid = (uint32_t)getpid(), .euid = geteuid() };
	struct event event = { .type = SONDE_RECORD_PROCESS, .id = JIT_PROCESS, .process = &record };
	uint64_t ticks;

	assert_int_equal(proc_start_ticks("/proc", (uint32_t)getpid(), &ticks), 0);
	record.start_ns = ticks * SONDE_NS_PER_TICK;
	resolver_event(resolver, &event);
}

static void write_map(const char *text)
{
	FILE *f;

	snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", getpid());
	f = fopen(map_path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void count_jit(void)
{
	const struct sonde_count_key key = { .process = JIT_PROCESS, .user_stack = OTHER_STACK };
	const struct sonde_count count = { 1, LAB_PERIOD };

	resolver_count(resolver, &key, &count);
}

static int teardown(void **state)
{
	if (map_path[0])
		unlink(map_path);
	map_path[0] = 0;
	return lab_close(state);
}

static void next_profile(void)
{
	resolver_end(resolver);
	profile_free(profile);
	assert_int_equal(profile_new(64 << 20, &profile), 0);
	profile_add_type(profile, "samples", "count");
	profile_add_type(profile, "cpu", "nanoseconds");
	resolver_begin(resolver, profile);
}

static void read_files(void)
{
	assert_int_equal(resolver_start(resolver), 0);
	lab_settle();
}

static void test_named_once_it_is_read(void **state)
{
	lab_count(STACK, 0, 3);
	lab_count(OTHER_STACK, 0, 1);
	lab_count(STACK, 0, 2);
	assert_int_equal(profile->sample_count, 1); /* the other one */
	assert_true(resolver_is_waiting(resolver));
	assert_int_equal(totals().samples_waiting, 5);
	assert_int_equal(totals().files_queued, 1);
	read_files();
	assert_false(resolver_is_waiting(resolver));
	assert_int_equal(profile->sample_count, 2);
	assert_string_equal(lab_name(1, 0), "totals");
	assert_int_equal(lab_sample(1)->values[0], 5);
	assert_int_equal(lab_sample(1)->values[1], 5 * LAB_PERIOD);
	assert_string_equal(lab_text(1, "comm"), "proc");
	assert_int_equal(totals().samples, 6);
	assert_int_equal(totals().frames[SYM_OK], 5);
	assert_int_equal(totals().frames[SYM_READING], 0);
	assert_int_equal(totals().carried_out, 0);
}

/* What a count refers to stays known however long it waits; each drain looks. */
static void test_many_drains(void **state)
{
	enum resolver_thing thing;
	uint64_t id;

	lab_count(STACK, 0, 1);
	for (int drain = 0; drain < KEEP_DRAINS; drain++) {
		resolver_tick(resolver);
		while (resolver_next_forgotten(resolver, &thing, &id))
			assert_int_not_equal(id, STACK);
	}
	assert_int_equal(profile->sample_count, 0);
	read_files();
	assert_string_equal(lab_name(0, 0), "totals");
	assert_string_equal(lab_text(0, "comm"), "proc");
	assert_string_equal(lab_text(0, "thread"), "worker");
	assert_string_equal(lab_text(0, "cgroup"), "/system.slice/a.service");
	assert_int_equal(totals().lost_stacks, 0);
	assert_int_equal(totals().unknown_processes, 0);
}

static void test_carried_into_the_next_profile(void **state)
{
	lab_count(STACK, 0, 4);
	next_profile();
	assert_int_equal(totals().carried_out, 4);
	assert_int_equal(totals().carried_in, 4);
	lab_count(STACK, 0, 1);
	next_profile();
	assert_int_equal(totals().carried_out, 4 + 5);
	read_files();
	assert_int_equal(profile->sample_count, 1);
	assert_int_equal(lab_sample(0)->values[0], 5);
	assert_string_equal(lab_name(0, 0), "totals");
	next_profile();
	assert_int_equal(totals().carried_out, totals().carried_in);
	assert_int_equal(totals().carried_out, 4 + 5);
}

/* At the end of a recording: the address and the reason, no name. */
static void test_no_more_waiting(void **state)
{
	lab_count(STACK, 0, 4);
	resolver_stop_waiting(resolver);
	assert_false(resolver_is_waiting(resolver));
	assert_int_equal(profile->sample_count, 1);
	assert_string_equal(lab_name(0, 0), "");
	assert_int_equal(lab_location(0, 0)->address, lab_offset(totals));
	assert_int_equal(totals().frames[SYM_READING], 4);
	/* Which was not remembered. */
	read_files();
	lab_count(STACK, 0, 1);
	assert_string_equal(lab_name(1, 0), "totals");
}

static void test_discarded(void **state)
{
	lab_count(STACK, 0, 4);
	resolver_discard_waiting(resolver);
	read_files();
	assert_int_equal(profile->sample_count, 0);
	assert_int_equal(totals().samples, 0);
}

/* A file that turns out to be unreadable has its own reason. */
static void test_no_budget_after_all(void **state)
{
	lab_count(STACK, 0, 4);
	resolver_set_reading(resolver, false);
	read_files();
	assert_int_equal(totals().frames[SYM_NO_BUDGET], 4);
	assert_int_equal(profile->sample_count, 1);
}

/* Past the bound nothing is lost but names. */
static void test_bound(void **state)
{
	enum { COUNTS = 70000 };

	for (uint64_t i = 0; i < COUNTS; i++) {
		const struct sonde_count_key key = { .process = LAB_PROCESS, .user_stack = STACK,
						     .thread = i };

		resolver_count(resolver, &key, &(struct sonde_count){ 1, 1 });
	}
	assert_true(totals().samples_waiting < COUNTS);
	assert_true(totals().frames[SYM_READING] > 0);
	assert_int_equal(totals().samples_waiting + totals().frames[SYM_READING], COUNTS);
	read_files();
	assert_int_equal(totals().samples, COUNTS);
}

/* Closed with all of it pending. */
static void test_end(void **state)
{
	lab_count(STACK, 0, 4);
	assert_int_equal(resolver_start(resolver), 0);
}

/* The names of JIT code are read once there are samples of it, and not by who counts them. */
static void test_jit_code_is_read_elsewhere(void **state)
{
	put_jit_process();
	write_map("1 10 jitted\n");
	count_jit();
	assert_int_equal(profile->sample_count, 0);
	assert_int_equal(totals().samples_waiting, 1);
	read_files();
	assert_false(resolver_is_waiting(resolver));
	assert_string_equal(lab_name(0, 0), "jitted");
}

/* Samples of the next drain are not named by what was read for those of this one. */
static void test_jit_code_of_the_next_drain(void **state)
{
	put_jit_process();
	write_map("1 10 jitted\n");
	count_jit();
	read_files();
	resolver_tick(resolver);
	resolver_drain(resolver);
	write_map("1 10 other\n");
	count_jit();
	assert_true(resolver_is_waiting(resolver));
	lab_settle();
	assert_false(resolver_is_waiting(resolver));
	assert_int_equal(profile->sample_count, 2);
	assert_string_not_equal(lab_name(1, 0), "jitted");
}

static void test_jit_code_that_is_not_waited_for(void **state)
{
	put_jit_process();
	write_map("1 10 jitted\n");
	count_jit();
	resolver_stop_waiting(resolver);
	assert_int_equal(profile->sample_count, 1);
	assert_int_equal(totals().frames[SYM_READING], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_jit_code_is_read_elsewhere, setup, teardown),
		cmocka_unit_test_setup_teardown(test_jit_code_of_the_next_drain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_jit_code_that_is_not_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(test_named_once_it_is_read, setup, lab_close),
		cmocka_unit_test_setup_teardown(test_many_drains, setup, lab_close),
		cmocka_unit_test_setup_teardown(test_carried_into_the_next_profile, setup, lab_close),
		cmocka_unit_test_setup_teardown(test_no_more_waiting, setup, lab_close),
		cmocka_unit_test_setup_teardown(test_discarded, setup, lab_close),
		cmocka_unit_test_setup_teardown(test_no_budget_after_all, setup, lab_close),
		cmocka_unit_test_setup_teardown(test_bound, setup, lab_close),
		cmocka_unit_test_setup_teardown(test_end, setup, lab_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
