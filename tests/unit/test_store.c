/* SPDX-License-Identifier: Apache-2.0 */
/* The store: what is added is listed by time, and caps drop the oldest, whatever the clock does. */
#include <errno.h>

#include "agent/store/store_files.h"
#include "tests/unit/store_writer_lab.h"

static void names_are_times(void **state)
{
	static const struct {
		const char *day, *file;
		bool good;
	} cases[] = {
		{ "2026-11-29", "120000-cpu.pb.gz", true },
		{ "2026-11-29", "120000-off_cpu-2.1.pb.gz", true },
		{ "1970-01-01", "000000-a.pb.gz", true },
		{ "2026-02-30", "120000-cpu.pb.gz", false },
		{ "2026-11-29", "126000-cpu.pb.gz", false },
		{ "2026-11-29", "120000-cpu.0.pb.gz", false },
		{ "2026-11-29", "120000-cpu.pb.gz.tmp", false },
		{ "2026-11-29", "120000-CPU.pb.gz", false },
		{ "2026-11-29", "120000-.pb.gz", false },
		{ "2026-11-29", "120000", false },
		{ "2026-1-29", "120000-cpu.pb.gz", false },
		{ "9999-11-29", "120000-cpu.pb.gz", false },
		{ "..", "120000-cpu.pb.gz", false },
	};
	struct store_name name;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (store_name_parse(cases[i].day, cases[i].file, &name) != cases[i].good)
			fail_msg("%s/%s", cases[i].day, cases[i].file);
	}
	assert_true(store_name_parse("2026-11-29", "120001-cpu.3.pb.gz", &name));
	assert_int_equal(name.start_s, NOON + 1);
	assert_int_equal(name.variant, 3);
	assert_string_equal(name.type, "cpu");
}

static void profiles_are_listed_by_time(void **state)
{
	struct store *s;
	char dir[64];

	lab_make_dir(dir);
	s = open_store(dir, 0, 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(add(s, NOON + i * 60, 1), 0);
	assert_int_equal(add_at(s, NOON * NS, 1, "offcpu"), 0);
	assert_int_equal(count_all(dir), 11);
	assert_int_equal(count_range(dir, 0, 0, "cpu"), 10);
	assert_int_equal(count_range(dir, 0, 0, "memory"), 0);
	/* Ends count as outside, on both sides. */
	assert_int_equal(count_range(dir, NOON + 120, NOON + 180, "cpu"), 1);
	assert_int_equal(count_range(dir, NOON + 121, NOON + 181, "cpu"), 2);
	assert_int_equal(count_range(dir, NOON + 600, 0, "cpu"), 0);
	assert_int_equal(count_range(dir, NOON + 599, 0, "cpu"), 1);
	assert_int_equal(count_range(dir, 0, NOON, NULL), 0);
	assert_int_equal(totals_of(s).written, 11);
	assert_int_equal(totals_of(s).profiles, 11);
	assert_int_equal(totals_of(s).bytes, totals_of(s).written_bytes);
	assert_int_equal(rows(dir), 11);
	assert_int_equal(query(dir, "SELECT sum(bytes) FROM profiles"), totals_of(s).bytes);
	assert_int_equal(query(dir, "SELECT count(*) FROM profiles WHERE host = 'lab' AND labels = "
				    "'kernel: 6.1' AND end_ns - start_ns = 60000000000"),
			 11);
	lab_run("test -f %s/profiles/2026-11-29/120900-cpu.pb.gz", dir);
	lab_run("test -f %s/profiles/2026-11-29/120000-offcpu.pb.gz", dir);
	store_close(s);
	lab_remove_dir(dir);
}

static void no_store_says_so(void **state)
{
	struct store_list list = { 0 };
	char dir[64];

	lab_make_dir(dir);
	assert_int_equal(store_list(dir, 0, 0, NULL, &list), -ENOENT);
	assert_int_equal(store_list("/tmp/no_such_folder", 0, 0, NULL, &list), -ENOENT);
	assert_int_equal(store_list("/dev/null", 0, 0, NULL, &list), -ENOTDIR);
	lab_remove_dir(dir);
}

static void bad_profiles_are_refused(void **state)
{
	struct store *s;
	char dir[64];

	lab_make_dir(dir);
	s = open_store(dir, 0, 0);
	assert_int_equal(add_at(s, -1, 1, "cpu"), -EINVAL);
	assert_int_equal(add_at(s, 1, 1, "../cpu"), -EINVAL);
	assert_int_equal(add_at(s, 1, 1, ""), -EINVAL);
	assert_int_equal(add_at(s, 1, 1, "abcdefghijklmnopqrstuvwxyz0123456789"), -EINVAL);
	assert_int_equal(totals_of(s).write_errors, 4);
	assert_int_equal(add_at(s, INT64_MAX - 100 * NS, 1, "cpu"), 0); /* the year 2262 */
	assert_int_equal(count_all(dir), 1);
	store_close(s);
	lab_remove_dir(dir);
}

/* Written again after a crash: once. Another window in the same second: both. */
static void equal_windows_are_replaced(void **state)
{
	struct store *s;
	char dir[64];

	lab_make_dir(dir);
	s = open_store(dir, 0, 0);
	assert_int_equal(add_at(s, NOON * NS + 5, 1, "cpu"), 0);
	assert_int_equal(add_at(s, NOON * NS + 5, 2, "cpu"), 0);
	assert_int_equal(totals_of(s).profiles, 1);
	store_close(s);
	s = open_store(dir, 0, 0);
	assert_int_equal(add_at(s, NOON * NS + 5, 3, "cpu"), 0);
	assert_int_equal(count_all(dir), 1);
	assert_int_equal(add_at(s, NOON * NS + 6, 4, "cpu"), 0);
	assert_int_equal(add_at(s, NOON * NS + 6, 5, "cpu"), 0);
	assert_int_equal(count_all(dir), 2);
	assert_int_equal(rows(dir), 2);
	lab_run("test -f %s/profiles/2026-11-29/120000-cpu.1.pb.gz", dir);
	assert_int_equal(totals_of(s).profiles, 2);
	store_close(s);
	lab_remove_dir(dir);
}

static void one_writer_at_a_time(void **state)
{
	struct store *s, *second = NULL;
	char dir[64], reason[256] = "";

	lab_make_dir(dir);
	s = open_store(dir, 0, 0);
	assert_int_equal(try_open(dir, 0, 0, &second, reason), -EBUSY);
	assert_null(second);
	assert_non_null(strstr(reason, dir));
	assert_non_null(strstr(reason, "another sonde agent"));
	assert_int_equal(add(s, NOON, 1), 0);
	store_close(s);
	store_close(open_store(dir, 0, 0));
	lab_remove_dir(dir);
	assert_int_equal(try_open("/tmp/no_such_folder/store", 0, 0, &second, reason), -ENOENT);
	assert_int_equal(try_open("/dev/null", 0, 0, &second, reason), -ENOTDIR);
	assert_null(strchr(reason, '\n'));
}

static void the_size_cap_drops_the_oldest(void **state)
{
	int64_t now_s = (int64_t)(clock_realtime() / NSEC_PER_SEC);
	struct store_list list;
	struct store *s;
	uint64_t one;
	char dir[64];

	lab_make_dir(dir);
	s = open_store(dir, 0, 0);
	add(s, now_s, 1);
	one = totals_of(s).bytes;
	store_set_caps(s, one * 5 + one / 2, 0);
	for (int i = 1; i < 12; i++)
		assert_int_equal(add(s, now_s + i * 60, 1), 0);
	assert_int_equal(totals_of(s).profiles, 5);
	assert_int_equal(totals_of(s).dropped_size, 7);
	assert_int_equal(totals_of(s).dropped_age, 0);
	assert_true(totals_of(s).bytes <= one * 5 + one / 2);
	assert_int_equal(totals_of(s).bytes + totals_of(s).dropped_bytes,
			 totals_of(s).written_bytes);
	assert_int_equal(store_list(dir, 0, 0, NULL, &list), 0);
	assert_int_equal(list.count, 5);
	assert_int_equal(list.entries[0].start_ns, (now_s + 7 * 60) * NS);
	store_list_fini(&list);
	assert_int_equal(rows(dir), 5);
	/* A cap that nothing fits in leaves the newest. */
	store_set_caps(s, 1, 0);
	assert_int_equal(add(s, now_s + 900, 1), 0);
	assert_int_equal(totals_of(s).profiles, 1);
	assert_int_equal(count_range(dir, now_s + 900, 0, NULL), 1);
	store_close(s);
	lab_remove_dir(dir);
}

/* Sets the mtime of all files of the store back. */
static void make_old(const char *dir, int hours)
{
	lab_run("find %s/profiles -name '*.gz' -exec touch -d '%d hours ago' {} +", dir, hours);
}

static void the_age_cap_drops_the_old(void **state)
{
	int64_t now_s = (int64_t)(clock_realtime() / NSEC_PER_SEC);
	struct store *s;
	char dir[64];

	lab_make_dir(dir);
	s = open_store(dir, 0, 0);
	for (int hours = 40; hours > 0; hours--)
		add(s, now_s - hours * 3600, 1);
	store_close(s);
	make_old(dir, 40);
	s = open_store(dir, 0, 48 * 3600 * NSEC_PER_SEC);
	assert_int_equal(add(s, now_s - 60, 1), 0);
	assert_int_equal(totals_of(s).profiles, 41);
	store_set_caps(s, 0, (24 * 3600 + 1800) * NSEC_PER_SEC);
	assert_int_equal(add(s, now_s, 1), 0);
	assert_int_equal(totals_of(s).dropped_age, 16);
	assert_int_equal(totals_of(s).profiles, 26);
	assert_int_equal(count_all(dir), 26);
	assert_int_equal(rows(dir), 26);
	store_close(s);
	lab_remove_dir(dir);
}

/*
 * The clock stands a year ahead, or nothing ran for a year: a hole counts as an hour. What
 * was there goes once a day of profiles has come after it.
 */
static void a_step_of_the_clock_drops_nothing(void **state)
{
	int64_t now_s = (int64_t)(clock_realtime() / NSEC_PER_SEC), old_s = now_s - 365 * 86400;
	struct store *s;
	char dir[64];

	lab_make_dir(dir);
	s = open_store(dir, 0, 0);
	for (int i = 0; i < 60; i++)
		add(s, old_s + i * 60, 1);
	store_close(s);
	make_old(dir, 366 * 24);
	s = open_store(dir, 0, 86400 * NSEC_PER_SEC);
	for (int i = 0; i < 3; i++)
		assert_int_equal(add(s, now_s - 23 * 3600 + i * 60, 1), 0);
	assert_int_equal(totals_of(s).dropped_age, 0);
	assert_int_equal(totals_of(s).profiles, 63);
	store_close(s);
	lab_run("find %s/profiles -name '*.gz' -newermt '2 days ago' -exec "
		"touch -d '23 hours ago' {} +", dir);
	s = open_store(dir, 0, 86400 * NSEC_PER_SEC);
	for (int hours = 22; hours >= 0; hours--)
		assert_int_equal(add(s, now_s - hours * 3600, 1), 0);
	assert_int_equal(totals_of(s).dropped_age, 0);
	store_close(s);
	lab_remove_dir(dir);
}

/*
 * A clock set back by a day writes windows that start a day ago, one set forward such that start
 * tomorrow: neither are too old, the newest is never dropped, and the same minutes may come twice.
 */
static void a_clock_that_was_set_breaks_nothing(void **state)
{
	int64_t now_s = (int64_t)(clock_realtime() / NSEC_PER_SEC), day = 24 * 3600;
	struct store *s;
	char dir[64];

	lab_make_dir(dir);
	s = open_store(dir, 0, 12 * 3600 * NSEC_PER_SEC);
	assert_int_equal(add(s, now_s - day, 1), 0);
	assert_int_equal(add(s, now_s, 1), 0);
	assert_int_equal(add(s, now_s + day, 1), 0);
	assert_int_equal(add(s, now_s + 60, 1), 0);
	assert_int_equal(add_at(s, (now_s - day) * NS + 7, 1, "cpu"), 0);
	assert_int_equal(totals_of(s).profiles, 5);
	assert_int_equal(count_range(dir, now_s - day, now_s - day + 1, NULL), 2);
	assert_int_equal(count_range(dir, now_s + day, 0, NULL), 1);
	store_close(s);
	/* All but tomorrow's were written 20 hours ago. */
	make_old(dir, 20);
	s = open_store(dir, 0, 12 * 3600 * NSEC_PER_SEC);
	assert_int_equal(add(s, 1, 1), 0); /* the clock starts in 1970 */
	assert_int_equal(totals_of(s).dropped_age, 0); /* hardly anything came after them */
	assert_int_equal(totals_of(s).profiles, 6);
	assert_int_equal(count_range(dir, 1, 2, NULL), 1);
	store_close(s);
	lab_remove_dir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_times),
		cmocka_unit_test(profiles_are_listed_by_time),
		cmocka_unit_test(no_store_says_so),
		cmocka_unit_test(bad_profiles_are_refused),
		cmocka_unit_test(equal_windows_are_replaced),
		cmocka_unit_test(one_writer_at_a_time),
		cmocka_unit_test(the_size_cap_drops_the_oldest),
		cmocka_unit_test(the_age_cap_drops_the_old),
		cmocka_unit_test(a_step_of_the_clock_drops_nothing),
		cmocka_unit_test(a_clock_that_was_set_breaks_nothing),
	};

	return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
