/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store: what is added is listed by time, caps drop the oldest, and neither a lost catalogue,
 * a full disk, a vanished directory nor a clock that was set breaks it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <sqlite3.h>

#include "agent/store/store.h"
#include "agent/store/store_files.h"
#include "tests/unit/store_lab.h"

enum { NOON = 1795953600 }; /* 2026-11-29 12:00:00 */

#define NS ((int64_t)NSEC_PER_SEC)

static int try_open(const char *dir, uint64_t max_bytes, uint64_t max_age_ns, struct store **ret,
		    char reason[256])
{
	struct store_options options = { dir, max_bytes, max_age_ns };

	return store_open(&options, ret, reason, 256);
}

static struct store *open_store(const char *dir, uint64_t max_bytes, uint64_t max_age_ns)
{
	struct store *s = NULL;
	char reason[256] = "";

	if (try_open(dir, max_bytes, max_age_ns, &s, reason))
		fail_msg("%s", reason);
	return s;
}

static struct store_totals totals_of(struct store *s)
{
	struct store_totals totals;

	store_totals(s, &totals);
	return totals;
}

static int add_at(struct store *s, int64_t start_ns, int64_t value, const char *type)
{
	struct profile *p = lab_profile("cpu", "main", value, 0, 60);
	int err;

	p->time_ns = start_ns;
	err = store_add(s, p, type);
	profile_free(p);
	return err;
}

static int add(struct store *s, int64_t start_s, int64_t value)
{
	return add_at(s, start_s * NS, value, "cpu");
}

static size_t count_range(const char *dir, int64_t since_s, int64_t until_s, const char *type)
{
	struct store_list list;
	size_t count;

	assert_int_equal(store_list(dir, since_s * NS, until_s * NS, type, &list), 0);
	for (size_t i = 1; i < list.count; i++)
		assert_true(list.entries[i - 1].start_ns <= list.entries[i].start_ns);
	count = list.count;
	store_list_fini(&list);
	return count;
}

static size_t count_all(const char *dir)
{
	return count_range(dir, 0, 0, NULL);
}

/* A number that a query of the catalogue answers; -1 on any error. */
static int64_t query(const char *dir, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	int64_t number = -1;
	sqlite3 *db = NULL;
	char path[128];

	snprintf(path, sizeof(path), "%s/catalogue.db", dir);
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
	    sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW)
		number = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	sqlite3_close(db);
	return number;
}

static int64_t rows(const char *dir)
{
	return query(dir, "SELECT count(*) FROM profiles");
}

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
				    "'kernel=6.1' AND end_ns - start_ns = 60000000000"), 11);
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
	assert_int_equal(totals_of(s).bytes + totals_of(s).dropped_bytes, totals_of(s).written_bytes);
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
	for (int i = 0; i < 4; i++)
		add(s, now_s - 40 * 3600 + i * 60, 1);
	store_close(s);
	make_old(dir, 40);
	s = open_store(dir, 0, 48 * 3600 * NSEC_PER_SEC);
	assert_int_equal(add(s, now_s - 60, 1), 0);
	assert_int_equal(totals_of(s).profiles, 5);
	store_set_caps(s, 0, 24 * 3600 * NSEC_PER_SEC);
	assert_int_equal(add(s, now_s, 1), 0);
	assert_int_equal(totals_of(s).profiles, 2);
	assert_int_equal(totals_of(s).dropped_age, 4);
	assert_int_equal(count_all(dir), 2);
	assert_int_equal(rows(dir), 2);
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
	assert_int_equal(totals_of(s).dropped_age, 2); /* yesterday's; the others start today or later */
	assert_int_equal(totals_of(s).profiles, 4);
	assert_int_equal(count_range(dir, 1, 2, NULL), 1);
	store_close(s);
	lab_remove_dir(dir);
}

static void fill(const char *dir, int count)
{
	struct store *s = open_store(dir, 0, 0);

	for (int i = 0; i < count; i++)
		assert_int_equal(add(s, NOON + i * 60, 1), 0);
	store_close(s);
}

/* Each way to spoil the catalogue: readers see all the same, the next open mends it. */
static void the_catalogue_is_rebuilt(void **state)
{
	static const char *const damages[] = {
		"rm %s/catalogue.db",
		"echo this is no database > %s/catalogue.db",
		": > %s/catalogue.db",
		"truncate -s 5000 %s/catalogue.db",
		"dd if=/dev/urandom of=%s/catalogue.db bs=512 seek=8 count=20 conv=notrunc 2>/dev/null",
		"dd if=/dev/urandom of=%s/catalogue.db bs=50 seek=1 count=1 conv=notrunc 2>/dev/null",
		"echo rubbish > %s/catalogue.db-journal",
	};
	char dir[64];

	lab_make_dir(dir);
	fill(dir, 20);
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		char command[256];
		struct store *s;

		snprintf(command, sizeof(command), damages[i], dir);
		lab_run("%s", command);
		assert_int_equal(count_all(dir), 20);
		assert_int_equal(count_range(dir, NOON + 60, NOON + 120, NULL), 1);
		s = open_store(dir, 0, 0);
		assert_int_equal(totals_of(s).profiles, 20);
		assert_int_equal(totals_of(s).catalogue_errors, 0);
		assert_int_equal(rows(dir), 20);
		assert_int_equal(query(dir, "SELECT count(*) FROM profiles WHERE host = 'lab' AND "
					    "labels = 'kernel=6.1' AND "
					    "end_ns - start_ns = 60000000000"), 20);
		store_close(s);
	}
	lab_remove_dir(dir);
}

/* Something that cannot be mended is done without. */
static void no_catalogue_is_no_error(void **state)
{
	struct store *s;
	char dir[64];

	lab_make_dir(dir);
	lab_run("mkdir -p %s/catalogue.db/x", dir);
	s = open_store(dir, 0, 0);
	assert_int_equal(add(s, NOON, 1), 0);
	assert_true(totals_of(s).catalogue_errors > 0);
	assert_int_equal(totals_of(s).write_errors, 0);
	assert_int_equal(count_all(dir), 1);
	lab_run("rm -r %s/catalogue.db", dir);
	assert_int_equal(add(s, NOON + 60, 1), 0);
	assert_int_equal(rows(dir), 2);
	store_close(s);
	lab_remove_dir(dir);
}

/* A reader in a long transaction: the writer waits a little, goes on, and catches up later. */
static void a_busy_catalogue_is_caught_up(void **state)
{
	char dir[64], path[128];
	sqlite3 *db = NULL;
	struct store *s;

	lab_make_dir(dir);
	s = open_store(dir, 0, 0);
	add(s, NOON, 1);
	snprintf(path, sizeof(path), "%s/catalogue.db", dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(add(s, NOON + 60, 1), 0);
	assert_true(totals_of(s).catalogue_errors > 0);
	assert_int_equal(count_all(dir), 2);
	sqlite3_close(db);
	assert_int_equal(add(s, NOON + 120, 1), 0);
	assert_int_equal(rows(dir), 3);
	store_close(s);
	lab_remove_dir(dir);
}

/* Files that came, went or changed while no agent ran, and rubbish between them. */
static void the_files_are_the_truth(void **state)
{
	struct store *s;
	char dir[64];

	lab_make_dir(dir);
	fill(dir, 5);
	lab_run("cd %s/profiles/2026-11-29 && rm 120000-cpu.pb.gz && "
		"cp 120100-cpu.pb.gz 130000-cpu.pb.gz && echo x > 120200-cpu.pb.gz && "
		"touch 120300-cpu.pb.gz.tmp README && mkdir ../2026-11-30 ../x && touch ../y", dir);
	assert_int_equal(count_all(dir), 5);
	s = open_store(dir, 0, 0);
	assert_int_equal(totals_of(s).profiles, 5);
	assert_int_equal(rows(dir), 5);
	assert_int_equal(lab_count(dir, "profiles/2026-11-29", ".tmp"), 0);
	assert_int_equal(query(dir, "SELECT bytes FROM profiles WHERE file LIKE '%120200%'"), 2);
	store_close(s);
	lab_remove_dir(dir);
}

static void a_vanished_directory_is_made_again(void **state)
{
	struct store *s, *second = NULL;
	char dir[64], reason[256];

	lab_make_dir(dir);
	s = open_store(dir, 0, 0);
	add(s, NOON, 1);
	lab_remove_dir(dir);
	assert_int_equal(add(s, NOON + 60, 1), 0);
	assert_int_equal(totals_of(s).profiles, 1);
	assert_int_equal(count_all(dir), 1);
	assert_int_equal(try_open(dir, 0, 0, &second, reason), -EBUSY); /* the lock too */
	lab_run("rm -r %s/profiles", dir);
	assert_int_equal(add(s, NOON + 120, 1), 0);
	assert_int_equal(count_all(dir), 1);
	/* Another agent was quicker. */
	lab_remove_dir(dir);
	second = open_store(dir, 0, 0);
	assert_int_equal(add(s, NOON + 180, 1), -EBUSY);
	assert_int_equal(add(second, NOON + 180, 1), 0);
	store_close(second);
	assert_int_equal(add(s, NOON + 240, 1), 0);
	assert_int_equal(totals_of(s).profiles, 2);
	store_close(s);
	lab_remove_dir(dir);
}

static void a_full_disk_is_an_error_and_no_more(void **state)
{
	struct store *s;
	char dir[64];

	lab_make_dir(dir);
	lab_mount(dir, "size=1m");
	s = open_store(dir, 0, 0);
	assert_int_equal(add(s, NOON, 1), 0);
	lab_fill_up(dir);
	assert_int_equal(add(s, NOON + 60, 1), -ENOSPC);
	assert_int_equal(totals_of(s).write_errors, 1);
	assert_int_equal(count_all(dir), 1);
	assert_int_equal(lab_count(dir, "profiles/2026-11-29", ".tmp"), 0);
	lab_run("rm %s/ballast", dir);
	assert_int_equal(add(s, NOON + 60, 1), 0);
	assert_int_equal(count_all(dir), 2);
	assert_int_equal(rows(dir), 2);
	store_close(s);
	lab_fill_up(dir);
	s = open_store(dir, 0, 0); /* still opens */
	assert_int_equal(totals_of(s).profiles, 2);
	store_close(s);
	lab_unmount(dir);
}

static void a_readonly_disk_is_an_error_and_no_more(void **state)
{
	char dir[64], reason[256];
	struct store *s;

	lab_make_dir(dir);
	lab_mount(dir, "size=1m");
	s = open_store(dir, 1, 0);
	assert_int_equal(add(s, NOON, 1), 0);
	lab_make_readonly(dir);
	assert_int_equal(add(s, NOON + 60, 1), -EROFS);
	assert_int_equal(count_all(dir), 1);
	store_close(s);
	assert_int_equal(try_open(dir, 0, 0, &s, reason), -EROFS);
	assert_non_null(strstr(reason, "read-only"));
	lab_make_writable(dir);
	s = open_store(dir, 0, 0);
	assert_int_equal(add(s, NOON + 60, 1), 0);
	assert_int_equal(count_all(dir), 2);
	store_close(s);
	lab_unmount(dir);
}

/* Readers beside a writer that drops: no error, and never a file that is not whole. */
static void readers_need_no_lock(void **state)
{
	struct store *s;
	char dir[64];
	pid_t pid;

	lab_make_dir(dir);
	fill(dir, 3);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		s = open_store(dir, 1000, 0);
		for (int i = 3; i < 60; i++)
			if (add(s, NOON + i * 60, 1))
				_exit(1);
		store_close(s);
		_exit(0);
	}
	for (;;) {
		struct store_list list;
		int status;

		assert_int_equal(store_list(dir, 0, 0, NULL, &list), 0);
		for (size_t i = 0; i < list.count; i++) {
			struct store_facts facts;
			int err = store_facts_read(list.entries[i].path, &facts);

			assert_true(err == 0 || err == -ENOENT);
		}
		store_list_fini(&list);
		if (waitpid(pid, &status, WNOHANG) == pid) {
			assert_int_equal(status, 0);
			break;
		}
	}
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
		cmocka_unit_test(a_clock_that_was_set_breaks_nothing),
		cmocka_unit_test(the_catalogue_is_rebuilt),
		cmocka_unit_test(no_catalogue_is_no_error),
		cmocka_unit_test(a_busy_catalogue_is_caught_up),
		cmocka_unit_test(the_files_are_the_truth),
		cmocka_unit_test(a_vanished_directory_is_made_again),
		cmocka_unit_test(a_full_disk_is_an_error_and_no_more),
		cmocka_unit_test(a_readonly_disk_is_an_error_and_no_more),
		cmocka_unit_test(readers_need_no_lock),
	};

	return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
