/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of agent/resolve together with the kernel side's memory of what it has sent: nothing
 * that a count refers to is ever missing, however things come and go.
 */
#include "agent/resolve/resolve.h"
#include "resolve_lab.h"

#include <stdlib.h>

enum { STACK = 50, DRAINS = 400, STACKS = 40, PROCESSES = 12 };

/* Which ids the kernel side believes to be known, by kind. */
static bool seen_stack[STACKS], seen_process[PROCESSES], seen_file;

static void end_drain(void)
{
	enum resolver_thing thing;
	uint64_t id;

	resolver_tick(resolver);
	while (resolver_next_forgotten(resolver, &thing, &id)) {
		if (thing == RESOLVER_STACK && id >= STACK && id < STACK + STACKS)
			seen_stack[id - STACK] = false;
		else if (thing == RESOLVER_FACT && id >= 1000)
			seen_process[id - 1000] = false;
		else if (thing == RESOLVER_FILE)
			seen_file = false;
	}
}

static struct resolver_totals totals(void)
{
	struct resolver_totals t;

	resolver_totals(resolver, &t);
	return t;
}

/* Each thing is announced at its idle end in two steps, and once only. */
static void test_idle_things_are_forgotten(void **state)
{
	const struct sonde_frame frame = { SONDE_FRAME_ANON, 1 };
	unsigned int forgotten[3] = { 0 };
	enum resolver_thing thing;
	uint64_t id;

	lab_user_stack(STACK, &frame, 1);
	lab_count(STACK, 0, 1);
	for (int drain = 0; drain < 30; drain++) {
		resolver_tick(resolver);
		while (resolver_next_forgotten(resolver, &thing, &id)) {
			forgotten[thing]++;
			if (thing == RESOLVER_STACK) {
				assert_int_equal(id, STACK);
				lab_count(STACK, 0, 1); /* counted before the kernel side forgot */
			}
		}
	}
	assert_int_equal(forgotten[RESOLVER_STACK], 1);
	assert_int_equal(forgotten[RESOLVER_FACT], 3); /* process, thread name, cgroup */
	assert_int_equal(totals().lost_stacks, 0);
	lab_count(STACK, 0, 1);
	assert_int_equal(totals().lost_stacks, 1);
	assert_int_equal(totals().unknown_processes, 1);
}

/* One sample as the kernel side takes it: what it has not sent, or had to forget, it sends. */
static void sample(unsigned int stack, unsigned int process, uint64_t off)
{
	const struct sonde_frame frame = { LAB_FILE, off };
	const struct sonde_count_key key = { .process = 1000 + process, .user_stack = STACK + stack };

	if (!seen_process[process])
		lab_process(1000 + process, "p");
	seen_process[process] = true;
	if (!seen_file)
		lab_file();
	seen_file = true;
	if (!seen_stack[stack])
		lab_user_stack(STACK + stack, &frame, 1);
	seen_stack[stack] = true;
	resolver_count(resolver, &key, &(struct sonde_count){ 1, 1 });
}

/* Bursts and pauses around the time that things are kept. */
static void test_nothing_is_ever_missing(void **state)
{
	uint64_t off = lab_offset(test_nothing_is_ever_missing);
	unsigned int samples = 0;

	memset(seen_stack, 0, sizeof(seen_stack));
	memset(seen_process, 0, sizeof(seen_process));
	seen_file = false;
	srand(3);
	for (int drain = 0; drain < DRAINS; drain++) {
		for (unsigned int i = 0; i < STACKS; i++) {
			/* Stack i is used every so many drains, a little unevenly. */
			if (drain % (5 + i % 12) != 0 && rand() % 200 != 0)
				continue;
			sample(i, i % PROCESSES, off);
			samples++;
		}
		end_drain();
	}
	assert_int_equal(totals().samples, samples);
	assert_int_equal(totals().lost_stacks, 0);
	assert_int_equal(totals().unknown_processes, 0);
	assert_int_equal(totals().frames[SYM_NO_FILE], 0);
	assert_int_equal(totals().frames[SYM_OK], samples);
	assert_true(totals().processes > PROCESSES); /* some did expire and come again */
}

/* A process at the very drains when its entry is on its way out. */
static void test_process_that_wakes_up_while_forgotten(void **state)
{
	for (int pause = 8; pause < 18; pause++) {
		memset(seen_process, 0, sizeof(seen_process));
		memset(seen_stack, 0, sizeof(seen_stack));
		seen_file = false;
		for (int round = 0; round < 3; round++) {
			sample(0, 0, 1);
			for (int drain = 0; drain < pause; drain++)
				end_drain();
			for (int drain = 0; drain < 5; drain++) {
				sample(0, 0, 1);
				end_drain();
			}
		}
		assert_int_equal(totals().unknown_processes, 0);
		assert_int_equal(totals().lost_stacks, 0);
	}
}

/* Over the budget files are not read; they are announced again once there is room. */
static void test_reading_is_put_off(void **state)
{
	const struct sonde_frame frame = { LAB_FILE, lab_offset(test_reading_is_put_off) };
	enum resolver_thing thing;
	uint64_t id;

	resolver_set_reading(resolver, false);
	lab_file();
	assert_false(resolver_next_forgotten(resolver, &thing, &id));
	lab_user_stack(STACK, &frame, 1);
	lab_count(STACK, 0, 1);
	assert_string_equal(lab_name(0, 0), "");
	assert_int_equal(totals().frames[SYM_NO_BUDGET], 1);
	assert_int_equal(totals().file_bytes, 0);
	resolver_set_reading(resolver, true);
	assert_true(resolver_next_forgotten(resolver, &thing, &id));
	assert_int_equal(thing, RESOLVER_FILE);
	lab_file();
	assert_false(resolver_next_forgotten(resolver, &thing, &id));
	lab_count(STACK, 0, 1);
	assert_string_equal(lab_name(1, 0), "test_reading_is_put_off");
}

static void test_dropped_symbols(void **state)
{
	const struct sonde_frame frame = { LAB_FILE, lab_offset(test_dropped_symbols) };
	enum resolver_thing thing;
	uint64_t id;

	lab_file();
	assert_true(totals().file_bytes > 0);
	resolver_drop_symbols(resolver);
	assert_int_equal(totals().file_bytes, 0);
	assert_true(resolver_next_forgotten(resolver, &thing, &id));
	assert_int_equal(id, LAB_FILE);
	lab_file();
	lab_user_stack(STACK, &frame, 1);
	lab_count(STACK, 0, 1);
	assert_string_equal(lab_name(0, 0), "test_dropped_symbols");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_idle_things_are_forgotten, lab_open, lab_close),
		cmocka_unit_test_setup_teardown(test_nothing_is_ever_missing, lab_open, lab_close),
		cmocka_unit_test_setup_teardown(test_process_that_wakes_up_while_forgotten, lab_open,
						lab_close),
		cmocka_unit_test_setup_teardown(test_reading_is_put_off, lab_open, lab_close),
		cmocka_unit_test_setup_teardown(test_dropped_symbols, lab_open, lab_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
