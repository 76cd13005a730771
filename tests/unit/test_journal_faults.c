/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal against what happens to disks and processes: nothing torn or damaged is ever read as
 * good, nothing that was safe is lost, and nothing goes without being counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/store/chunk.h"
#include "base/file.h"
#include "tests/unit/journal_lab.h"

static const char CHUNK[] = "journal/00000000000000000001-00000000000000000000.chunk";

static void write_bytes(const char *dir, const void *bytes, size_t len)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, CHUNK);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, bytes, len), 0);
	close(fd);
}

static void encode_one(struct buf *chunk)
{
	struct profile *p = lab_profile("cpu", "main", 5, 60, 10);

	buf_init(chunk, 1 << 20);
	assert_int_equal(chunk_encode(p, chunk), 0);
	profile_free(p);
}

static void expect_damaged(const void *bytes, size_t len)
{
	struct profile *p = NULL;

	assert_int_equal(chunk_check(bytes, len), -EBADMSG);
	assert_int_equal(chunk_decode(bytes, len, 1 << 20, &p), -EBADMSG);
	assert_null(p);
}

/* In memory every length and every bit; heap copies, so that ASan sees a byte too far. */
static void no_damage_passes(void **state)
{
	struct buf chunk;

	encode_one(&chunk);
	for (size_t len = 0; len < chunk.len; len++) {
		uint8_t *cut = malloc(len);

		if (len)
			memcpy(cut, chunk.data, len);
		expect_damaged(cut, len);
		free(cut);
	}
	for (size_t bit = 0; bit < chunk.len * 8; bit++) {
		chunk.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		expect_damaged(chunk.data, chunk.len);
		chunk.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	buf_put_byte(&chunk, 0);
	expect_damaged(chunk.data, chunk.len);
	chunk.len--;
	assert_int_equal(chunk_check(chunk.data, chunk.len), 0);
	buf_fini(&chunk);
}

/* On disk at every length: set aside at open, or at reading when it happens after the open. */
static void damaged_files_are_set_aside(void **state)
{
	struct buf chunk;
	char dir[64];

	encode_one(&chunk);
	for (size_t len = 0; len < chunk.len; len++) {
		bool before = len % 2;
		struct journal *j;

		lab_make_dir(dir);
		j = open_journal(dir);
		append(j, 1, 3);
		append(j, 1, 4);
		if (before)
			journal_close(j);
		write_bytes(dir, chunk.data, len);
		if (before)
			j = open_journal(dir);
		assert_int_equal(read_sum(j, 2, 1), 4);
		assert_int_equal(totals_of(j).damaged, 1);
		assert_int_equal(lab_count(dir, "journal", ".bad"), 1);
		assert_int_equal(journal_remove(j, 1), 0);
		expect_none(j, UINT64_MAX);
		journal_close(j);
		lab_remove_dir(dir);
	}
	buf_fini(&chunk);
}

static void few_damaged_files_are_kept(void **state)
{
	struct journal *j;
	char dir[64];

	lab_make_dir(dir);
	lab_run("mkdir %s/journal && cd %s/journal && for i in $(seq 40); do "
		"echo x > $(printf '%%020d-%%020d.chunk' $i $i); done",
		dir, dir);
	j = open_journal(dir);
	assert_int_equal(totals_of(j).damaged, 40);
	assert_int_equal(lab_count(dir, "journal", ".chunk"), 0);
	assert_int_equal(lab_count(dir, "journal", ".bad"), 16);
	assert_int_equal(lab_count(dir, "journal", "40.bad"), 1);
	expect_none(j, UINT64_MAX);
	journal_close(j);
	lab_remove_dir(dir);
}

static void a_vanished_directory_is_made_again(void **state)
{
	struct journal *j;
	char dir[64];

	lab_make_dir(dir);
	j = open_journal(dir);
	append(j, 1, 1);
	lab_remove_dir(dir);
	assert_int_equal(append(j, 1, 2), 0);
	assert_int_equal(read_sum(j, 2, 1), 2);
	assert_int_equal(totals_of(j).damaged, 1); /* the one that went with the directory */
	lab_remove_dir(dir);
	assert_int_equal(access("/tmp/no_such_folder", F_OK), -1);
	journal_close(j);
	assert_int_equal(journal_open("/tmp/no_such_folder/store", &j), -ENOENT);
}

static void a_full_disk_is_an_error_and_no_more(void **state)
{
	struct journal *j;
	char dir[64];

	lab_make_dir(dir);
	lab_mount(dir, "size=1m");
	j = open_journal(dir);
	assert_int_equal(append(j, 1, 1), 0);
	lab_fill_up(dir);
	assert_int_equal(append(j, 1, 2), -ENOSPC);
	assert_int_equal(append(j, 1, 2), -ENOSPC);
	assert_int_equal(totals_of(j).write_errors, 2);
	assert_int_equal(lab_count(dir, "journal", ".chunk"), 1);
	assert_int_equal(lab_count(dir, "journal", ".tmp"), 0);
	assert_int_equal(read_sum(j, 2, 1), 1);
	lab_run("rm %s/ballast", dir);
	assert_int_equal(append(j, 1, 2), 0);
	lab_fill_up(dir);
	assert_int_equal(read_sum(j, 2, 1), 3);
	assert_int_equal(journal_remove(j, 1), 0); /* needs no room */
	expect_none(j, UINT64_MAX);
	journal_close(j);
	lab_unmount(dir);
}

static void a_readonly_disk_is_an_error_and_no_more(void **state)
{
	struct journal *j;
	char dir[64];

	lab_make_dir(dir);
	lab_mount(dir, "size=1m");
	j = open_journal(dir);
	append(j, 1, 1);
	lab_make_readonly(dir);
	assert_int_equal(append(j, 1, 2), -EROFS);
	assert_int_equal(totals_of(j).write_errors, 1);
	assert_int_equal(read_sum(j, 2, 1), 1);
	assert_int_equal(journal_remove(j, 1), -EROFS);
	assert_int_equal(read_sum(j, 2, 1), 1);
	lab_make_writable(dir);
	assert_int_equal(append(j, 1, 2), 0);
	assert_int_equal(read_sum(j, 2, 1), 3);
	journal_close(j);
	lab_unmount(dir);
}

/* Appends 1, 2, 3 ... until it is killed, and tells of each that is safe. */
static void append_for_ever(const char *dir, int to)
{
	struct journal *j;

	if (journal_open(dir, &j))
		_exit(1);
	for (int64_t value = 1;; value++) {
		struct profile *p = lab_profile("cpu", "main", 1, value, 1);

		if (journal_append(j, 1, p) || write(to, "", 1) != 1)
			_exit(1);
		profile_free(p);
	}
}

/* Kills it after `count` chunks and some microseconds more. Returns how many were told of. */
static size_t kill_after(const char *dir, size_t count, unsigned microseconds)
{
	char told[4096];
	size_t total = 0;
	int fds[2];
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(fds[0]);
		append_for_ever(dir, fds[1]);
	}
	close(fds[1]);
	while (total < count && (n = read(fds[0], told, count - total)) > 0)
		total += (size_t)n;
	usleep(microseconds);
	kill(pid, SIGKILL);
	while ((n = read(fds[0], told, sizeof(told))) > 0)
		total += (size_t)n;
	close(fds[0]);
	waitpid(pid, NULL, 0);
	assert_true(total >= count);
	return total;
}

/* All that was told of is there, at most one more, and all of it good. */
static void kill_9_loses_nothing(void **state)
{
	char dir[64];

	lab_make_dir(dir);
	for (unsigned round = 0; round < 200; round++) {
		size_t told = kill_after(dir, 1 + round % 3, round * 37 % 1500);
		struct journal *j = open_journal(dir);
		int64_t sum = read_sum(j, 2, 1);

		assert_in_range(sum, told, told + 1);
		assert_int_equal(totals_of(j).damaged, 0);
		assert_int_equal(lab_count(dir, "journal", ".tmp"), 0);
		assert_int_equal(journal_remove(j, 1), 0);
		journal_close(j);
	}
	lab_remove_dir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_damage_passes),
		cmocka_unit_test(damaged_files_are_set_aside),
		cmocka_unit_test(few_damaged_files_are_kept),
		cmocka_unit_test(a_vanished_directory_is_made_again),
		cmocka_unit_test(a_full_disk_is_an_error_and_no_more),
		cmocka_unit_test(a_readonly_disk_is_an_error_and_no_more),
		cmocka_unit_test(kill_9_loses_nothing),
	};

	return cmocka_run_group_tests_name("journal_faults", tests, NULL, NULL);
}
