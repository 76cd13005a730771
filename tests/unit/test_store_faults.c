/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store without its catalogue, with other files in it, on disks that are full, read-only or
 * gone, and with readers and another writer beside it.
 */
#include <errno.h>
#include <sys/wait.h>

#include "agent/store/store_files.h"
#include "tests/unit/store_writer_lab.h"

/* Each way to spoil the catalogue: readers see all the same, the next open mends it. */
static void the_catalogue_is_rebuilt(void **state)
{
	static const char *const damages[] = {
		"rm %s/catalogue.db",
		"echo this is no database > %s/catalogue.db",
		": > %s/catalogue.db",
		"truncate -s 5000 %s/catalogue.db",
		"dd if=/dev/urandom of=%s/catalogue.db bs=512 seek=8 count=20 conv=notrunc "
		"2>/dev/null",
		"dd if=/dev/urandom of=%s/catalogue.db bs=50 seek=1 count=1 conv=notrunc "
		"2>/dev/null",
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
					    "labels = 'kernel: 6.1' AND "
					    "end_ns - start_ns = 60000000000"),
				 20);
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
		"touch 120300-cpu.pb.gz.tmp README && mkdir ../2026-11-30 ../x && touch ../y",
		dir);
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
		cmocka_unit_test(the_catalogue_is_rebuilt),
		cmocka_unit_test(no_catalogue_is_no_error),
		cmocka_unit_test(a_busy_catalogue_is_caught_up),
		cmocka_unit_test(the_files_are_the_truth),
		cmocka_unit_test(a_vanished_directory_is_made_again),
		cmocka_unit_test(a_full_disk_is_an_error_and_no_more),
		cmocka_unit_test(a_readonly_disk_is_an_error_and_no_more),
		cmocka_unit_test(readers_need_no_lock),
	};

	return cmocka_run_group_tests_name("store_faults", tests, NULL, NULL);
}
