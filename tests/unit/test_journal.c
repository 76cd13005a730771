/* SPDX-License-Identifier: Apache-2.0 */
/* The journal: what was appended comes back, window by window, as one good profile each. */
#include "agent/store/journal.h"
#include "proto/pprof.h"
#include "tests/unit/journal_lab.h"
#include "tests/unit/pprof_check.h"

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
		"rm 00000000000000000001-00000000000000000001.chunk",
		dir);
	j = open_journal(dir);
	assert_int_equal(read_sum(j, UINT64_MAX, 2), 7);
	assert_int_equal(lab_count(dir, "journal", ".chunk"), 1);
	assert_int_equal(lab_count(dir, "journal", ".done"), 0);
	assert_int_equal(totals_of(j).damaged, 0);
	journal_close(j);
	lab_remove_dir(dir);
}

/* A chunk that cannot be deleted is not read again either, now or after the next open. */
static void a_removal_is_finished_later(void **state)
{
	static const char first[] = "journal/00000000000000000001-00000000000000000000.chunk";
	struct journal *j;
	char dir[64];

	lab_make_dir(dir);
	j = open_journal(dir);
	for (int64_t value = 1; value <= 3; value++)
		append(j, 1, value);
	assert_int_equal(read_sum(j, 2, 1), 6);
	lab_run("cd %s && rm %s && mkdir %s", dir, first, first);
	assert_int_equal(journal_remove(j, 1), 0);
	expect_none(j, UINT64_MAX);
	assert_int_equal(lab_count(dir, "journal", ".done"), 1);
	journal_close(j);
	j = open_journal(dir);
	expect_none(j, UINT64_MAX);
	assert_int_equal(lab_count(dir, "journal", ".done"), 1);
	journal_close(j);
	lab_run("rmdir %s/%s", dir, first);
	journal_close(open_journal(dir));
	assert_int_equal(lab_count(dir, "journal", ".done"), 0);
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
		"touch 00000000000000000001-00000000000000000007.chunk",
		dir);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_come_back_in_order),
		cmocka_unit_test(a_window_is_one_profile),
		cmocka_unit_test(late_chunks_survive_the_removal),
		cmocka_unit_test(other_measurements_stay_apart),
		cmocka_unit_test(a_clock_set_back_strands_nothing),
		cmocka_unit_test(a_removal_is_all_or_nothing),
		cmocka_unit_test(a_removal_is_finished_later),
		cmocka_unit_test(rubbish_goes_at_open),
	};

	return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
