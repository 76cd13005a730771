/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal against what happens to disks and processes: what was appended comes back, what
 * is torn or damaged is never read as good, and nothing goes without being counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/store/chunk.h"
#include "agent/store/journal.h"
#include "base/file.h"
#include "proto/pprof.h"
#include "tests/unit/pprof_check.h"
#include "tests/unit/store_lab.h"

static struct journal *open_journal(const char *dir)
{
	struct journal *j = NULL;

	assert_int_equal(journal_open(dir, &j), 0);
	return j;
}

static struct journal_totals totals_of(const struct journal *j)
{
	struct journal_totals totals;

	journal_totals(j, &totals);
	return totals;
}

static int append(struct journal *j, uint64_t window, int64_t value)
{
	struct profile *p = lab_profile("cpu", "main", value, (int64_t)window * 60 + value, 10);
	int err = journal_append(j, window, p);

	profile_free(p);
	return err;
}

/* The sum of the oldest window before `before`, which must be `window`. */
static int64_t read_sum(struct journal *j, uint64_t before, uint64_t window)
{
	struct profile *p = NULL;
	uint64_t number = 0;
	int64_t sum;

	assert_int_equal(journal_read_oldest(j, before, &number, &p), 0);
	assert_int_equal(number, window);
	sum = lab_sum(p);
	profile_free(p);
	return sum;
}

static void expect_none(struct journal *j, uint64_t before)
{
	struct profile *p = NULL;
	uint64_t number = 77;

	assert_int_equal(journal_read_oldest(j, before, &number, &p), -ENOENT);
	assert_null(p);
	assert_int_equal(number, 77);
}

static void windows_come_back_in_order(void **state)
{
	struct journal *j;
	char dir[64];

	lab_make_dir(dir);
	j = open_journal(dir);
	expect_none(j, UINT64_MAX);
	for (uint64_t window = 5; window <= 7; window++) {
		for (int64_t value = 1; value <= 6; value++)
			assert_int_equal(append(j, window, value * (int64_t)window), 0);
	}
	expect_none(j, 5);
	assert_int_equal(read_sum(j, 7, 5), 21 * 5);
	assert_int_equal(read_sum(j, 7, 5), 21 * 5); /* it stays until it is removed */
	assert_int_equal(journal_remove(j, 5), 0);
	assert_int_equal(read_sum(j, 7, 6), 21 * 6);
	assert_int_equal(journal_remove(j, 6), 0);
	expect_none(j, 7);
	assert_int_equal(read_sum(j, 8, 7), 21 * 7);
	assert_int_equal(lab_count(dir, "journal", ".chunk"), 6);
	assert_int_equal(totals_of(j).written, 18);
	assert_int_equal(totals_of(j).read, 24);
	journal_close(j);
	j = open_journal(dir);
	assert_true(totals_of(j).bytes > 0);
	assert_int_equal(read_sum(j, 8, 7), 21 * 7);
	assert_int_equal(journal_remove(j, 7), 0);
	assert_int_equal(totals_of(j).bytes, 0);
	assert_int_equal(lab_count(dir, "journal", ""), 2); /* . and .. */
	journal_close(j);
	lab_remove_dir(dir);
}

static int to_buf(void *context, const void *bytes, size_t len)
{
	buf_put(context, bytes, len);
	return buf_error(context);
}

static void check_strict(const struct profile *p)
{
	struct buf file;

	buf_init(&file, 1 << 20);
	assert_int_equal(pprof_write(p, (struct byte_sink){ to_buf, &file }), 0);
	check_strictly(&file, p);
	buf_fini(&file);
}

/* Times, comments and strings of a window: as of one measurement, with nothing left over. */
static void a_window_is_one_profile(void **state)
{
	struct profile *p = NULL;
	struct journal *j;
	uint64_t window;
	char dir[64];

	lab_make_dir(dir);
	j = open_journal(dir);
	for (int64_t value = 10; value <= 50; value += 10)
		assert_int_equal(append(j, 1, value), 0);
	assert_int_equal(journal_read_oldest(j, 2, &window, &p), 0);
	assert_int_equal(p->time_ns, 70 * (int64_t)NSEC_PER_SEC);
	assert_int_equal(p->duration_ns, 50 * (int64_t)NSEC_PER_SEC);
	assert_int_equal(p->sample_count, 1);
	assert_true(lab_has_comment(p, "sonde.received=150"));
	assert_int_equal(p->comment_count, 3);
	for (size_t i = 0; i < p->strings.count; i++)
		assert_null(strstr(profile_text(p, (uint32_t)i), "received=10"));
	check_strict(p);
	profile_free(p);
	journal_close(j);
	lab_remove_dir(dir);
}

/* A chunk that came after the reading is in no profile yet. */
static void late_chunks_survive_the_removal(void **state)
{
	struct journal *j;
	char dir[64];

	lab_make_dir(dir);
	j = open_journal(dir);
	append(j, 1, 3);
	assert_int_equal(read_sum(j, 2, 1), 3);
	append(j, 1, 4);
	assert_int_equal(journal_remove(j, 1), 0);
	assert_int_equal(read_sum(j, 2, 1), 4);
	journal_close(j);
	lab_remove_dir(dir);
}

static void other_measurements_stay_apart(void **state)
{
	struct profile *p = lab_profile("cycles", "main", 9, 100, 10);
	struct journal *j;
	char dir[64];

	lab_make_dir(dir);
	j = open_journal(dir);
	append(j, 1, 1);
	append(j, 1, 2);
	assert_int_equal(journal_append(j, 1, p), 0);
	assert_int_equal(read_sum(j, 2, 1), 3);
	assert_int_equal(journal_remove(j, 1), 0);
	assert_int_equal(read_sum(j, 2, 1), 9);
	assert_int_equal(journal_remove(j, 1), 0);
	expect_none(j, UINT64_MAX);
	profile_free(p);
	journal_close(j);
	lab_remove_dir(dir);
}

/* The clock went back by a day: what was written before must not wait a day. */
static void a_clock_set_back_strands_nothing(void **state)
{
	struct journal *j;
	char dir[64];

	lab_make_dir(dir);
	j = open_journal(dir);
	append(j, 5000, 1);
	append(j, 5001, 2);
	append(j, 3560, 4);
	assert_int_equal(read_sum(j, 3560, 5000), 1);
	assert_int_equal(journal_remove(j, 5000), 0);
	assert_int_equal(read_sum(j, 3560, 5001), 2);
	assert_int_equal(journal_remove(j, 5001), 0);
	expect_none(j, 3560);
	append(j, 3561, 8);
	assert_int_equal(read_sum(j, 3561, 3560), 4);
	journal_close(j);
	lab_remove_dir(dir);
}

/* A crash in the middle of a removal must not make a smaller window of what is left. */
static void a_removal_is_all_or_nothing(void **state)
{
	struct journal *j;
	char dir[64];

	lab_make_dir(dir);
	j = open_journal(dir);
	for (int64_t value = 1; value <= 4; value++)
		append(j, 1, value);
	append(j, 2, 7);
	journal_close(j);
	lab_run("cd %s/journal && mv 00000000000000000001-00000000000000000003.chunk "
		"00000000000000000001-00000000000000000003.done && "
		"rm 00000000000000000001-00000000000000000001.chunk", dir);
	j = open_journal(dir);
	assert_int_equal(read_sum(j, UINT64_MAX, 2), 7);
	assert_int_equal(lab_count(dir, "journal", ".chunk"), 1);
	assert_int_equal(lab_count(dir, "journal", ".done"), 0);
	assert_int_equal(totals_of(j).damaged, 0);
	journal_close(j);
	lab_remove_dir(dir);
}

static void rubbish_goes_at_open(void **state)
{
	struct journal *j;
	char dir[64];

	lab_make_dir(dir);
	j = open_journal(dir);
	append(j, 1, 3);
	journal_close(j);
	lab_run("cd %s/journal && touch a.tmp 00000000000000000001-00000000000000000009.chunk.tmp "
		"notes 1-2.chunk && mkdir 00000000000000000000-00000000000000000008.chunk && "
		"touch 00000000000000000001-00000000000000000007.chunk", dir);
	j = open_journal(dir);
	assert_int_equal(lab_count(dir, "journal", ".tmp"), 0);
	lab_run("cd %s/journal && test -e notes && test -e 1-2.chunk", dir); /* not ours */
	assert_int_equal(totals_of(j).damaged, 2); /* the empty one and the directory */
	assert_int_equal(lab_count(dir, "journal", ".bad"), 2);
	assert_int_equal(read_sum(j, UINT64_MAX, 1), 3);
	assert_int_equal(append(j, 1, 4), 0);
	assert_int_equal(read_sum(j, UINT64_MAX, 1), 7);
	journal_close(j);
	lab_remove_dir(dir);
}

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
		"echo x > $(printf '%%020d-%%020d.chunk' $i $i); done", dir, dir);
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
		cmocka_unit_test(windows_come_back_in_order),
		cmocka_unit_test(a_window_is_one_profile),
		cmocka_unit_test(late_chunks_survive_the_removal),
		cmocka_unit_test(other_measurements_stay_apart),
		cmocka_unit_test(a_clock_set_back_strands_nothing),
		cmocka_unit_test(a_removal_is_all_or_nothing),
		cmocka_unit_test(rubbish_goes_at_open),
		cmocka_unit_test(no_damage_passes),
		cmocka_unit_test(damaged_files_are_set_aside),
		cmocka_unit_test(few_damaged_files_are_kept),
		cmocka_unit_test(a_vanished_directory_is_made_again),
		cmocka_unit_test(a_full_disk_is_an_error_and_no_more),
		cmocka_unit_test(a_readonly_disk_is_an_error_and_no_more),
		cmocka_unit_test(kill_9_loses_nothing),
	};

	return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
