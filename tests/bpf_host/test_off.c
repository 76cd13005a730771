/* SPDX-License-Identifier: Apache-2.0 */
/* Off-CPU stacks: which departures are captured, and what an interval adds to its stratum. */
#include "host.h"

#include "bpf/off.bpf.h"

enum { THREADS = 500 };

static const __u64 WINDOW_NS = 1 << SONDE_OFF_WINDOW_SHIFT, SECOND = 1000000000;

static struct sonde_off_thread o;
static struct sonde_off_cpu cpu;
static __u64 seed;

static int begin(void **state)
{
	host_reset();
	memset(&o, 0, sizeof(o));
	memset(&cpu, 0, sizeof(cpu));
	seed = 88172645463325252ULL;
	*host_off_settings() = (struct sonde_off_settings){
		.states = ~0U,
	};
	off_epoch = 2;
	off_from_ns[0] = off_from_ns[1] = 0;
	return 0;
}

static __u32 random_bits(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed >> 32;
}

static __u32 leave(struct sonde_off_thread *thread, __u32 site, __u64 now)
{
	return off_choose(thread, &cpu, site, now >> SONDE_OFF_WINDOW_SHIFT, random_bits());
}

static void rare_departures_are_all_captured(void **state)
{
	for (__u64 now = 0; now < 100 * SECOND; now += SECOND / 40)
		assert_int_equal(leave(&o, 5 + now / WINDOW_NS % 2 * 2, now), 1);
}

/* 50,000 a second for ten seconds: within the budget, and they stand for as many as there were. */
static void many_departures_keep_to_the_budget(void **state)
{
	__u64 captures = 0, stand_for = 0, departures = 0;

	for (__u64 now = 0; now < 10 * SECOND; now += SECOND / 50000) {
		__u32 weight = leave(&o, 7, now);

		captures += weight != 0;
		stand_for += weight;
		departures++;
	}
	assert_in_range(captures, 400, 10 * 120 + 60);
	assert_in_range(stand_for, departures * 85 / 100, departures * 115 / 100);
}

/* Without bias, also while probabilities change: over many threads the sum is right. */
static void captures_stand_for_all(void **state)
{
	__u64 stand_for = 0, departures = 0;

	for (int thread = 0; thread < THREADS; thread++) {
		memset(&o, 0, sizeof(o));
		memset(&cpu, 0, sizeof(cpu));
		for (__u64 now = 0; now < SECOND; now += SECOND / 2000) {
			stand_for += leave(&o, 7, now);
			departures++;
		}
	}
	assert_in_range(stand_for, departures * 98 / 100, departures * 102 / 100);
}

/* Six waits at another place between very many: each has its stack. */
static void rare_places_are_captured_for_sure(void **state)
{
	__u64 now = 0;

	for (int i = 0; i < 6; i++) {
		for (__u64 until = now + SECOND; now < until; now += SECOND / 50000)
			leave(&o, 7, now);
		assert_int_equal(leave(&o, 8, now), 1);
		now += SECOND;
	}
}

/* New places without end are no way around the budget. */
static void sure_captures_have_a_bound(void **state)
{
	__u64 captures = 0;
	__u32 site = 1;

	for (__u64 now = 0; now < 10 * SECOND; now += SECOND / 50000)
		captures += leave(&o, site++ << 3 | 1, now) != 0;
	assert_true(captures < 10 * (120 + SONDE_OFF_SURE * SECOND / WINDOW_NS) + 60);
}

static void a_cpu_has_a_budget_of_its_own(void **state)
{
	static struct sonde_off_thread many[THREADS];
	__u64 captures = 0, stand_for = 0, departures = 0;

	memset(many, 0, sizeof(many));
	for (__u64 now = 0; now < 10 * SECOND; now += SECOND / 25000) {
		__u32 weight = leave(&many[departures++ % THREADS], 0, now);

		captures += weight != 0;
		stand_for += weight;
	}
	assert_in_range(captures, 3000, 10 * 960 + 100);
	assert_in_range(stand_for, departures * 90 / 100, departures * 110 / 100);
}

/* ---- strata ---- */

static void thread_is(__u32 tgid)
{
	o.t.tgid = tgid;
	o.t.process_start_ns = 1000 + tgid;
	o.weight = 4;
	o.user_stack = 11;
	o.process = 12;
}

static const struct sonde_stratum *only_stratum(void *map, struct sonde_stratum_key *ret_key)
{
	const void *key;
	void *value;

	assert_int_equal(map_count_entries(map), 1);
	map_entry(map, 0, &key, &value);
	memcpy(ret_key, key, sizeof(*ret_key));
	return value;
}

static void intervals_add_to_stratum_and_stack(void **state)
{
	struct sonde_stratum_key key;
	const struct sonde_stratum *stratum;
	const struct sonde_off_count *count;
	const void *stack_key;
	void *value;

	thread_is(10);
	interval_closed(&o, &cpu, SONDE_SCHED_LOCK, 3000, 10000);
	interval_closed(&o, &cpu, SONDE_SCHED_LOCK, 4000, 20000);
	stratum = only_stratum(&strata_0, &key);
	assert_int_equal(key.row, sonde_off_row(&o.t));
	assert_int_equal(key.state, SONDE_SCHED_LOCK);
	assert_int_equal(key.bucket, sched_bucket(3000));
	assert_int_equal(stratum->count, 2);
	assert_int_equal(stratum->ns, 7000);
	assert_int_equal(stratum->max_ns, 4000);
	assert_int_equal(map_count_entries(&off_counts_0), 1);
	map_entry(&off_counts_0, 0, &stack_key, &value);
	count = value;
	assert_int_equal(((const struct sonde_off_key *)stack_key)->user_stack, 11);
	assert_int_equal(count->captures, 2);
	assert_int_equal(count->count, 8);
	assert_int_equal(count->ns, 28000);
	assert_int_equal(count->max_ns, 4000);
}

/* Of a wait that began before the window, the part in it; by its whole length. */
static void windows_cut_waits(void **state)
{
	struct sonde_stratum_key key;
	const struct sonde_stratum *stratum;

	thread_is(10);
	off_epoch = 3;
	off_from_ns[1] = 9 * SECOND;
	interval_closed(&o, &cpu, SONDE_SCHED_SLEEP, 8 * SECOND, 10 * SECOND);
	stratum = only_stratum(&strata_1, &key);
	assert_int_equal(stratum->ns, SECOND);
	assert_int_equal(stratum->max_ns, 8 * SECOND);
	assert_int_equal(key.bucket, sched_bucket(8 * SECOND));
	/* The clock was read before the window began. */
	interval_closed(&o, &cpu, SONDE_SCHED_SLEEP, 8 * SECOND, 8 * SECOND);
	assert_int_equal(stratum->ns, SECOND);
	assert_int_equal(map_count_entries(&strata_0), 0);
}

static void filters_are_in_the_kernel(void **state)
{
	*host_off_settings() = (struct sonde_off_settings){
		.min_ns = 5000, .states = 1u << SONDE_SCHED_LOCK,
	};
	thread_is(10);
	interval_closed(&o, &cpu, SONDE_SCHED_LOCK, 4999, 10000);
	interval_closed(&o, &cpu, SONDE_SCHED_PIPE, 6000, 10000);
	interval_closed(&o, &cpu, SONDE_SCHED_LOCK, 0, 10000);
	assert_int_equal(map_count_entries(&strata_0), 0);
	interval_closed(&o, &cpu, SONDE_SCHED_LOCK, 5000, 10000);
	assert_int_equal(map_count_entries(&strata_0), 1);
}

static void what_finds_no_room_is_counted(void **state)
{
	map_limit(&strata_0, 1);
	map_limit(&off_counts_0, 1);
	thread_is(10);
	interval_closed(&o, &cpu, SONDE_SCHED_LOCK, 3000, 10000);
	o.user_stack = 99;
	interval_closed(&o, &cpu, SONDE_SCHED_LOCK, 3000, 10000);
	assert_int_equal(cpu.counters[SONDE_OFF_COUNT_COUNTS_FULL], 1);
	thread_is(11);
	interval_closed(&o, &cpu, SONDE_SCHED_LOCK, 3000, 10000);
	assert_int_equal(cpu.counters[SONDE_OFF_COUNT_STRATA_FULL], 1);
	assert_int_equal(map_count_entries(&strata_0), 1);
}

/* A capture delays what waits on its own CPU, and no timer: each finds the stratum of its like. */
static void captures_do_not_move_waits(void **state)
{
	struct sonde_stratum_key key;

	thread_is(10);
	o.took_ns = 10000;
	interval_closed(&o, &cpu, SONDE_SCHED_LOCK, 2000, 10000);
	only_stratum(&strata_0, &key);
	assert_int_equal(key.bucket, sched_bucket(2000));
	begin(NULL);
	thread_is(10);
	o.took_ns = 10000;
	interval_closed(&o, &cpu, SONDE_SCHED_SLEEP, (1 << 20) - 5000, 2 << 20);
	only_stratum(&strata_0, &key);
	assert_int_equal(key.bucket, sched_bucket(1 << 20));
	assert_int_equal(o.took_ns, 0);
}

/* A record that is read late says what it was when the window ended. */
static void first_change_in_a_window_keeps_what_was(void **state)
{
	thread_is(10);
	o.t.state = SONDE_SCHED_LOCK;
	o.t.since = 5000;
	o.t.ns[SONDE_SCHED_RUNNING] = 4000;
	off_touch(&o);
	assert_int_equal(o.flip.ns[SONDE_SCHED_RUNNING], 4000);
	assert_int_equal(o.flip.state, SONDE_SCHED_LOCK);
	assert_int_equal(o.flip.user_stack, 11);
	o.t.state = SONDE_SCHED_WOKEN;
	o.t.since = 9000;
	off_touch(&o); /* the second change: it stays */
	assert_int_equal(o.flip.since, 5000);
	off_epoch++;
	off_touch(&o);
	assert_int_equal(o.flip.since, 9000);
	assert_int_equal(o.flip.state, SONDE_SCHED_WOKEN);
	assert_int_equal(o.epoch, off_epoch);
}

/* What the state machine adds to a record goes to the strata, a split wait to both. */
static void strata_are_what_the_accounts_are(void **state)
{
	struct sonde_sched_cpu sched = {};
	struct sonde_off_before before;
	__u64 sums[SONDE_SCHED_STATE_COUNT] = {};

	thread_is(10);
	o.t.since = 1000;
	segment_begin(&o.t);
	state_enter(&o.t, SONDE_SCHED_WOKEN);
	for (int i = 0; i < 200; i++) {
		__u64 now = o.t.since + 1 + random_bits() % 100000;
		__u32 what = random_bits() % 4;

		off_look(&before, &o.t);
		if (what == 0)
			thread_wakes(&o.t, now, &sched);
		else if (what == 1)
			thread_enters(&o.t, random_bits() % 50000, now, 0, &sched);
		else
			thread_leaves(&o.t, 1 + random_bits() % (SONDE_SCHED_STATE_COUNT - 1),
				      o.t.exec + random_bits() % 100000, now, &sched);
		off_settle(&o, &cpu, &before, now);
	}
	for (size_t i = 0; i < map_count_entries(&strata_0); i++) {
		const void *key;
		void *value;

		map_entry(&strata_0, i, &key, &value);
		sums[((const struct sonde_stratum_key *)key)->state] +=
			((struct sonde_stratum *)value)->ns;
	}
	for (int i = SONDE_SCHED_WOKEN; i < SONDE_SCHED_STATE_COUNT; i++)
		assert_int_equal(sums[i], o.t.ns[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(rare_departures_are_all_captured, begin),
		cmocka_unit_test_setup(many_departures_keep_to_the_budget, begin),
		cmocka_unit_test_setup(captures_stand_for_all, begin),
		cmocka_unit_test_setup(rare_places_are_captured_for_sure, begin),
		cmocka_unit_test_setup(sure_captures_have_a_bound, begin),
		cmocka_unit_test_setup(a_cpu_has_a_budget_of_its_own, begin),
		cmocka_unit_test_setup(intervals_add_to_stratum_and_stack, begin),
		cmocka_unit_test_setup(windows_cut_waits, begin),
		cmocka_unit_test_setup(filters_are_in_the_kernel, begin),
		cmocka_unit_test_setup(what_finds_no_room_is_counted, begin),
		cmocka_unit_test_setup(captures_do_not_move_waits, begin),
		cmocka_unit_test_setup(first_change_in_a_window_keeps_what_was, begin),
		cmocka_unit_test_setup(strata_are_what_the_accounts_are, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
