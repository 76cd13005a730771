/* SPDX-License-Identifier: Apache-2.0 */
/* Time off the CPU in a profile: its columns, labels, and who is an idle worker. */
#include "agent/collect/sched_events.h"
#include "resolve_lab.h"

#include <stdlib.h>

enum { STACK = 50, KERNEL_STACK = 60 };

/* Named like what workers wait in (Java's); the resolver knows no more of it. */
__attribute__((noinline)) static int Unsafe_Park(int x)
{
	asm volatile("" : "+r"(x));
	return x + 1;
}

static int open_off(void **state)
{
	int err = lab_open(state);

	profile_free(profile);
	profile = NULL;
	if (err || profile_new(64 << 20, &profile) ||
	    profile_add_type(profile, "waits", "count") < 0 ||
	    profile_add_type(profile, "longest", "nanoseconds") < 0 ||
	    profile_add_type(profile, "off_cpu", "nanoseconds") < 0)
		return -1;
	profile->maxima = 1 << 1;
	resolver_set_columns(resolver, SONDE_KIND_OFF_CPU, 0, 2);
	resolver_set_columns(resolver, SONDE_KIND_OFF_MAX, RESOLVER_NOWHERE, 1);
	resolver_begin(resolver, profile);
	return 0;
}

static void wait_count(enum sonde_kind kind, uint32_t detail, uint64_t stack, uint64_t waits,
		       uint64_t ns)
{
	const struct sonde_count_key key = { .process = LAB_PROCESS,
					     .cgroup = LAB_CGROUP,
					     .user_stack = stack,
					     .kind = kind,
					     .detail = detail };

	resolver_count(resolver, &key, &(struct sonde_count){ waits, ns });
}

static const char *label(size_t sample, const char *name)
{
	const struct profile_sample *s = lab_sample(sample);

	for (uint32_t i = 0; i < s->label_count; i++) {
		if (strcmp(profile_text(profile, s->labels[i].key), name) == 0)
			return profile_text(profile, s->labels[i].str);
	}
	return "";
}

static void stack_in(const void *function)
{
	const struct sonde_frame frames[] = { { LAB_FILE, lab_offset(function) + 1 } };

	lab_file();
	lab_user_stack(STACK, frames, 1);
}

static void columns_and_labels(void **state)
{
	stack_in(stack_in);
	wait_count(SONDE_KIND_OFF_CPU, SONDE_SCHED_LOCK, STACK, 3, 3000);
	wait_count(SONDE_KIND_OFF_MAX, SONDE_SCHED_LOCK, STACK, 0, 1500);
	wait_count(SONDE_KIND_OFF_CPU, SONDE_SCHED_LOCK, STACK, 2, 1000);
	wait_count(SONDE_KIND_OFF_MAX, SONDE_SCHED_LOCK, STACK, 0, 900);
	assert_int_equal(profile->sample_count, 1);
	assert_int_equal(lab_sample(0)->values[0], 5);
	assert_int_equal(lab_sample(0)->values[1], 1500); /* the longest, no sum */
	assert_int_equal(lab_sample(0)->values[2], 4000);
	assert_string_equal(label(0, "state"), "blocked");
	assert_string_equal(label(0, "reason"), "lock");
	assert_string_equal(label(0, "comm"), "proc");
	assert_string_equal(label(0, "idle"), "");
	wait_count(SONDE_KIND_OFF_CPU, SONDE_SCHED_WOKEN, STACK, 1, 10);
	assert_string_equal(label(1, "state"), "runnable");
	assert_string_equal(label(1, "reason"), "woken");
}

static void idle_workers_are_marked(void **state)
{
	stack_in(Unsafe_Park);
	wait_count(SONDE_KIND_OFF_CPU, SONDE_SCHED_POLL | SONDE_OFF_LONG, STACK, 1, 10);
	assert_string_equal(label(0, "idle"), "yes");
	wait_count(SONDE_KIND_OFF_CPU, SONDE_SCHED_LOCK | SONDE_OFF_LONG, STACK, 1, 10);
	assert_string_equal(label(1, "idle"), "yes");
	/* Short ones are not, nor is what was asked for: a sleep, a disk. */
	wait_count(SONDE_KIND_OFF_CPU, SONDE_SCHED_LOCK, STACK, 1, 10);
	assert_string_equal(label(2, "idle"), "");
	wait_count(SONDE_KIND_OFF_CPU, SONDE_SCHED_SLEEP | SONDE_OFF_LONG, STACK, 1, 10);
	assert_string_equal(label(3, "idle"), "");
	wait_count(SONDE_KIND_OFF_CPU, SONDE_SCHED_DISK | SONDE_OFF_LONG, STACK, 1, 10);
	assert_string_equal(label(4, "idle"), "");
}

static void long_held_locks_are_no_idle_workers(void **state)
{
	stack_in(stack_in);
	wait_count(SONDE_KIND_OFF_CPU, SONDE_SCHED_LOCK | SONDE_OFF_LONG, STACK, 1, 10);
	assert_string_equal(label(0, "idle"), "");
}

static void without_a_stack_it_is_somebodys(void **state)
{
	const struct resolver_owner owner = { "ser\nver", 321, "/docker/"
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" };

	resolver_unstacked(resolver, &owner, SONDE_KIND_OFF_CPU, SONDE_SCHED_PIPE,
			   &(struct sonde_count){ 4, 50 });
	assert_string_equal(lab_name(0, 0), "[no stack]");
	assert_int_equal(lab_sample(0)->values[0], 4);
	assert_int_equal(lab_sample(0)->values[2], 50);
	assert_string_equal(label(0, "comm"), "ser\\x0aver");
	assert_string_equal(label(0, "reason"), "pipe");
	assert_int_equal(strlen(label(0, "container_id")), 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(columns_and_labels, open_off, lab_close),
		cmocka_unit_test_setup_teardown(idle_workers_are_marked, open_off, lab_close),
		cmocka_unit_test_setup_teardown(long_held_locks_are_no_idle_workers, open_off,
						lab_close),
		cmocka_unit_test_setup_teardown(without_a_stack_it_is_somebodys, open_off, lab_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
