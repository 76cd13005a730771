/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine of the scheduler accounting: each interval goes to one bucket. */
#include "host.h"

#include "bpf/sched_state.bpf.h"

#define MS 1000000ULL

static struct sonde_sched_thread t;
static struct sonde_sched_cpu cpu;

/* A thread that was woken for the first time at `now`. */
static int begin(void **state)
{
	memset(&t, 0, sizeof(t));
	memset(&cpu, 0, sizeof(cpu));
	t.since = 1000 * MS;
	segment_begin(&t);
	state_enter(&t, SONDE_SCHED_WOKEN);
	return 0;
}

static __u64 sum(void)
{
	__u64 n = 0;

	for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++)
		n += t.ns[i];
	return n;
}

static void each_interval_has_its_bucket(void **state)
{
	thread_enters(&t, 0, 1002 * MS, 0, &cpu);
	thread_leaves(&t, SONDE_SCHED_LOCK, 5 * MS, 1007 * MS, &cpu);
	assert_true(thread_wakes(&t, 1017 * MS, &cpu));
	thread_enters(&t, 0, 1018 * MS, 0, &cpu);
	thread_leaves(&t, SONDE_SCHED_PREEMPTED, 8 * MS, 1021 * MS, &cpu);
	thread_enters(&t, 0, 1041 * MS, 0, &cpu);
	assert_int_equal(t.ns[SONDE_SCHED_WOKEN], 3 * MS);
	assert_int_equal(t.ns[SONDE_SCHED_RUNNING], 8 * MS);
	assert_int_equal(t.ns[SONDE_SCHED_LOCK], 10 * MS);
	assert_int_equal(t.ns[SONDE_SCHED_PREEMPTED], 20 * MS);
	assert_int_equal(sum(), t.since - t.birth);
	assert_int_equal(t.entries[SONDE_SCHED_WOKEN], 2);
	assert_int_equal(t.entries[SONDE_SCHED_LOCK], 1);
	assert_int_equal(t.delay_ns, 23 * MS);
	assert_int_equal(cpu.counters[SONDE_SCHED_COUNT_UNSEEN], 0);
}

static void delays_and_absences_are_counted_by_their_length(void **state)
{
	thread_enters(&t, 0, 1002 * MS, 0, &cpu);
	thread_leaves(&t, SONDE_SCHED_SLEEP, 0, 1003 * MS, &cpu);
	thread_wakes(&t, 1103 * MS, &cpu);
	thread_enters(&t, 0, 1103 * MS + 500, 0, &cpu);
	assert_int_equal(t.delay[sched_bucket(2 * MS)], 1);
	assert_int_equal(t.delay[0], 1);
	assert_int_equal(t.off[sched_bucket(100 * MS)], 1);
	assert_int_equal(t.max[0].ns, 2 * MS);
}

static void longest_delay_is_that_of_its_epoch(void **state)
{
	thread_enters(&t, 0, 1009 * MS, 6, &cpu);
	thread_leaves(&t, SONDE_SCHED_PREEMPTED, 0, 1010 * MS, &cpu);
	thread_enters(&t, 0, 1011 * MS, 7, &cpu);
	thread_leaves(&t, SONDE_SCHED_PREEMPTED, 0, 1012 * MS, &cpu);
	thread_enters(&t, 0, 1015 * MS, 7, &cpu);
	assert_int_equal(t.max[0].ns, 9 * MS);
	assert_int_equal(t.max[1].ns, 3 * MS);
	thread_leaves(&t, SONDE_SCHED_PREEMPTED, 0, 1016 * MS, &cpu);
	thread_enters(&t, 0, 1017 * MS, 8, &cpu);
	assert_int_equal(t.max[0].ns, 1 * MS);
	assert_int_equal(t.max[0].epoch, 8);
}

static void throttled_part_of_a_wait_is_cut_out(void **state)
{
	thread_enters(&t, 7 * MS, 1010 * MS, 0, &cpu);
	assert_int_equal(t.ns[SONDE_SCHED_THROTTLED], 7 * MS);
	assert_int_equal(t.ns[SONDE_SCHED_WOKEN], 3 * MS);
	assert_int_equal(t.entries[SONDE_SCHED_THROTTLED], 1);
	thread_leaves(&t, SONDE_SCHED_THROTTLED, 0, 1020 * MS, &cpu);
	thread_enters(&t, 95 * MS, 1110 * MS, 0, &cpu);
	/* Never more than the wait. */
	assert_int_equal(t.ns[SONDE_SCHED_THROTTLED], 97 * MS);
	assert_int_equal(t.ns[SONDE_SCHED_PREEMPTED], 0);
	assert_int_equal(t.entries[SONDE_SCHED_THROTTLED], 2);
	assert_int_equal(t.delay_ns, 3 * MS);
	assert_int_equal(sum(), t.since - t.birth);
}

/* A wake-up may come while the thread is still on its way to sleep. */
static void early_wakeups_say_nothing(void **state)
{
	assert_false(thread_wakes(&t, 1001 * MS, &cpu));
	thread_enters(&t, 0, 1002 * MS, 0, &cpu);
	assert_false(thread_wakes(&t, 1003 * MS, &cpu));
	thread_leaves(&t, SONDE_SCHED_PREEMPTED, 0, 1004 * MS, &cpu);
	assert_false(thread_wakes(&t, 1005 * MS, &cpu));
	assert_int_equal(t.state, SONDE_SCHED_PREEMPTED);
	assert_int_equal(t.since, 1004 * MS);
}

/* O-01: never negative, never huge. */
static void clock_that_goes_back_is_counted(void **state)
{
	static const __u64 earlier[] = { 999 * MS, 1, 1000 * MS + (1ULL << 63) };

	for (size_t i = 0; i < ARRAY_SIZE(earlier); i++) {
		begin(NULL);
		thread_enters(&t, 0, earlier[i], 0, &cpu);
		assert_int_equal(cpu.counters[SONDE_SCHED_COUNT_BACKWARDS], 1);
		assert_int_equal(sum(), 0);
		assert_int_equal(t.since, 1000 * MS);
	}
	begin(NULL);
	thread_enters(&t, 0, t.since, 0, &cpu);
	assert_int_equal(cpu.counters[SONDE_SCHED_COUNT_BACKWARDS], 0);
	assert_int_equal(sum(), 0);
}

/* It runs, although no program saw that it was woken and chosen: what it ran is known. */
static void unseen_changes_are_set_right(void **state)
{
	thread_enters(&t, 0, 1001 * MS, 0, &cpu);
	thread_leaves(&t, SONDE_SCHED_POLL, 1 * MS, 1002 * MS, &cpu);
	thread_leaves(&t, SONDE_SCHED_PIPE, 4 * MS, 7002 * MS, &cpu);
	assert_int_equal(t.ns[SONDE_SCHED_POLL], 5997 * MS);
	assert_int_equal(t.ns[SONDE_SCHED_RUNNING], 4 * MS);
	assert_int_equal(cpu.counters[SONDE_SCHED_COUNT_UNSEEN], 1);
	assert_int_equal(sum(), t.since - t.birth);
	/* Chosen while it was believed blocked. */
	thread_enters(&t, 0, 7005 * MS, 0, &cpu);
	assert_int_equal(t.ns[SONDE_SCHED_PIPE], 3 * MS);
	assert_int_equal(t.state, SONDE_SCHED_RUNNING);
}

static void wakeup_that_nobody_saw_is_where_the_scheduler_has_it(void **state)
{
	thread_enters(&t, 0, 1001 * MS, 0, &cpu);
	thread_leaves(&t, SONDE_SCHED_DISK, 1 * MS, 1002 * MS, &cpu);
	wake_unseen(&t, 8 * MS, 1020 * MS, &cpu);
	thread_enters(&t, 0, 1020 * MS, 0, &cpu);
	assert_int_equal(t.ns[SONDE_SCHED_DISK], 10 * MS);
	assert_int_equal(t.ns[SONDE_SCHED_WOKEN], 9 * MS);
	assert_int_equal(t.delay[sched_bucket(8 * MS)], 1);
	assert_int_equal(cpu.counters[SONDE_SCHED_COUNT_UNSEEN], 1);
	/* Never before it fell asleep. */
	thread_leaves(&t, SONDE_SCHED_DISK, 2 * MS, 1021 * MS, &cpu);
	wake_unseen(&t, 5000 * MS, 1030 * MS, &cpu);
	thread_enters(&t, 0, 1030 * MS, 0, &cpu);
	assert_int_equal(t.ns[SONDE_SCHED_DISK], 10 * MS);
	assert_int_equal(sum(), t.since - t.birth);
}

static void stop_does_not_hide_what_was_waited_for(void **state)
{
	thread_enters(&t, 0, 1001 * MS, 0, &cpu);
	thread_leaves(&t, SONDE_SCHED_SLEEP, 0, 1002 * MS, &cpu);
	thread_wakes(&t, 1003 * MS, &cpu);
	thread_enters(&t, 0, 1003 * MS, 0, &cpu);
	thread_leaves(&t, SONDE_SCHED_STOPPED, 0, 1004 * MS, &cpu);
	assert_int_equal(t.reason, SONDE_SCHED_SLEEP);
}

static void segment_begins_empty(void **state)
{
	t.exec = 77;
	t.migrations = 5;
	thread_enters(&t, 0, 1001 * MS, 0, &cpu);
	segment_begin(&t);
	assert_int_equal(sum(), 0);
	assert_int_equal(t.birth, 1001 * MS);
	assert_int_equal(t.exec_birth, 77);
	assert_int_equal(t.migrations_birth, 5);
	assert_int_equal(t.delay_ns, 0);
	assert_int_equal(t.state, SONDE_SCHED_RUNNING);
}

/* Moved to another cgroup at 1005: what was open until then is of the segment before. */
static void open_interval_is_cut_where_it_changed_hands(void **state)
{
	thread_enters(&t, 0, 1001 * MS, 0, &cpu);
	t.exec = 100 * MS;
	interval_cut(&t, 1005 * MS, 109 * MS);
	assert_int_equal(t.ns[SONDE_SCHED_RUNNING], 4 * MS);
	assert_int_equal(t.exec, 104 * MS);
	assert_int_equal(sum(), t.since - t.birth);
	segment_begin(&t);
	thread_leaves(&t, SONDE_SCHED_SLEEP, 109 * MS, 1011 * MS, &cpu);
	assert_int_equal(t.ns[SONDE_SCHED_RUNNING], 6 * MS);
	assert_int_equal(t.exec - t.exec_birth, 5 * MS); /* 1 ms was stolen from it */
	interval_cut(&t, 1020 * MS, 109 * MS);
	assert_int_equal(t.ns[SONDE_SCHED_SLEEP], 9 * MS);
	assert_int_equal(t.exec, 109 * MS);
}

static void cut_before_the_interval_began_is_none(void **state)
{
	thread_enters(&t, 0, 1001 * MS, 0, &cpu);
	interval_cut(&t, 1001 * MS, 5 * MS);
	interval_cut(&t, 999 * MS, 5 * MS);
	assert_int_equal(t.ns[SONDE_SCHED_RUNNING], 0);
	assert_int_equal(t.exec, 0);
	assert_int_equal(t.since, 1001 * MS);
}

/* More was stolen than it ran: it cannot have run longer than it did. */
static void cut_gives_no_more_than_it_ran(void **state)
{
	thread_enters(&t, 0, 1001 * MS, 0, &cpu);
	interval_cut(&t, 1011 * MS, 3 * MS);
	assert_int_equal(t.ns[SONDE_SCHED_RUNNING], 10 * MS);
	assert_int_equal(t.exec, 3 * MS);
}

static void buckets_are_powers_of_two(void **state)
{
	assert_int_equal(sched_bucket(0), 0);
	assert_int_equal(sched_bucket(1023), 0);
	for (int i = 1; i < SONDE_SCHED_BUCKETS - 1; i++) {
		assert_int_equal(sched_bucket(1ULL << (9 + i)), i);
		assert_int_equal(sched_bucket((2ULL << (9 + i)) - 1), i);
	}
	assert_int_equal(sched_bucket(~0ULL), SONDE_SCHED_BUCKETS - 1);
	for (int i = 0; i < 64; i++)
		assert_int_equal(log2_floor(1ULL << i), i);
}

/* Whatever happens in whatever order: the buckets are the age, and times are where they belong. */
static void books_close_over_any_sequence(void **state)
{
	__u64 now = t.since, exec = 0, seed = 1;

	for (int i = 0; i < 200000; i++) {
		__u32 next, what;

		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		what = (seed >> 60) % 4;
		next = 1 + (seed >> 40) % (SONDE_SCHED_STATE_COUNT - 1);
		now += (seed >> 33) % 100000;
		if (what == 0) {
			exec += (seed >> 20) % 5000;
			thread_leaves(&t, next == SONDE_SCHED_WOKEN ? SONDE_SCHED_LOCK : next, exec,
				      now, &cpu);
		} else if (what == 1) {
			thread_wakes(&t, now, &cpu);
		} else if (what == 2) {
			thread_enters(&t, (seed >> 10) % 50000, now, i / 1000, &cpu);
		} else if ((seed & 0xff) == 0) {
			segment_begin(&t);
		}
		assert_int_equal(sum(), t.since - t.birth);
	}
	assert_int_equal(cpu.counters[SONDE_SCHED_COUNT_BACKWARDS], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_interval_has_its_bucket, begin),
		cmocka_unit_test_setup(delays_and_absences_are_counted_by_their_length, begin),
		cmocka_unit_test_setup(longest_delay_is_that_of_its_epoch, begin),
		cmocka_unit_test_setup(throttled_part_of_a_wait_is_cut_out, begin),
		cmocka_unit_test_setup(early_wakeups_say_nothing, begin),
		cmocka_unit_test_setup(clock_that_goes_back_is_counted, begin),
		cmocka_unit_test_setup(unseen_changes_are_set_right, begin),
		cmocka_unit_test_setup(wakeup_that_nobody_saw_is_where_the_scheduler_has_it, begin),
		cmocka_unit_test_setup(stop_does_not_hide_what_was_waited_for, begin),
		cmocka_unit_test_setup(segment_begins_empty, begin),
		cmocka_unit_test_setup(open_interval_is_cut_where_it_changed_hands, begin),
		cmocka_unit_test_setup(cut_before_the_interval_began_is_none, begin),
		cmocka_unit_test_setup(cut_gives_no_more_than_it_ran, begin),
		cmocka_unit_test_setup(buckets_are_powers_of_two, begin),
		cmocka_unit_test_setup(books_close_over_any_sequence, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
