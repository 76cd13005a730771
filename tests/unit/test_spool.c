/* SPDX-License-Identifier: Apache-2.0 */
/* The spool: order, cap, restart, damage, cursors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/export/spool.h"
#include "tests/unit/store_lab.h"

static char dir[64], folder[96];

static int make_dir(void **state)
{
	lab_make_dir(dir);
	snprintf(folder, sizeof(folder), "%s/spool", dir);
	return 0;
}

static int remove_dir(void **state)
{
	lab_remove_dir(dir);
	return 0;
}

static struct spool *open_spool(uint64_t max)
{
	struct spool *s = NULL;

	assert_int_equal(spool_open(dir, max, &s), 0);
	return s;
}

static int add(struct spool *s, int64_t value, int64_t start_s)
{
	struct profile *p = lab_profile("cpu", "main", value, start_s, 10);
	int err = spool_add(s, p);

	profile_free(p);
	return err;
}

static int64_t load(struct spool *s, uint64_t from, struct spool_chunk *chunk)
{
	struct profile *p = NULL;
	int64_t sum;

	assert_true(spool_next(s, from, chunk));
	assert_int_equal(spool_load(spool_dir(s), chunk, &p), 0);
	sum = lab_sum(p);
	profile_free(p);
	return sum;
}

/* In the order of coming, whatever the clock said; numbers go on after a restart. */
static void test_order(void **state)
{
	struct spool *s = open_spool(1 << 20);
	struct spool_chunk chunk;

	assert_int_equal(add(s, 1, 5000), 0);
	assert_int_equal(add(s, 2, 100), 0);
	spool_close(s);
	s = open_spool(1 << 20);
	assert_int_equal(add(s, 3, 3000), 0);
	assert_int_equal(spool_count(s, 0), 3);
	assert_int_equal(load(s, 0, &chunk), 1);
	assert_int_equal(chunk.start_s, 5000);
	assert_int_equal(load(s, chunk.number + 1, &chunk), 2);
	assert_int_equal(load(s, chunk.number + 1, &chunk), 3);
	assert_false(spool_next(s, chunk.number + 1, &chunk));
	spool_remove_below(s, chunk.number);
	assert_int_equal(spool_count(s, 0), 1);
	assert_int_equal(lab_count(dir, "spool", ".chunk"), 1);
	spool_close(s);
}

static void test_same_window_twice(void **state)
{
	struct spool *s = open_spool(1 << 20);

	assert_int_equal(add(s, 1, 5000), 0);
	assert_int_equal(add(s, 1, 5000), 0);
	assert_int_equal(spool_count(s, 0), 1);
	assert_int_equal(add(s, 1, 5010), 0);
	assert_int_equal(spool_count(s, 0), 2);
	/* Two kinds of windows in turn, and again and again. */
	for (int i = 0; i < 6; i++)
		assert_int_equal(add(s, 1, 5020 + i % 2), 0);
	assert_int_equal(spool_count(s, 0), 4);
	spool_close(s);
}

static void test_cap(void **state)
{
	struct spool *s = open_spool(2048);
	struct spool_totals totals;
	struct spool_chunk chunk;

	for (int i = 1; i <= 50; i++)
		assert_int_equal(add(s, i, i * 10), 0);
	spool_totals(s, &totals);
	assert_true(totals.bytes <= 2048 && totals.chunks >= 1);
	assert_int_equal(totals.written, 50);
	assert_int_equal(totals.dropped, 50 - totals.chunks);
	assert_int_equal(load(s, 0, &chunk), 50 - (int64_t)totals.chunks + 1);
	assert_int_equal(lab_count(dir, "spool", ".chunk"), totals.chunks);
	spool_close(s);
	/* One that is over the cap alone stays: better than nothing. */
	s = open_spool(1);
	assert_int_equal(add(s, 51, 9000), 0);
	assert_int_equal(spool_count(s, 0), 1);
	spool_close(s);
}

static void test_damage(void **state)
{
	struct spool *s = open_spool(1 << 20);
	struct spool_chunk chunk;
	struct spool_totals totals;
	struct profile *p;

	assert_int_equal(add(s, 1, 10), 0);
	assert_int_equal(add(s, 2, 20), 0);
	lab_run("for f in %s/*10.chunk; do echo x >$f; done", folder);
	assert_true(spool_next(s, 0, &chunk));
	assert_int_equal(spool_load(folder, &chunk, &p), -EBADMSG);
	spool_set_aside(s, &chunk);
	assert_int_equal(lab_count(dir, "spool", ".bad"), 1);
	assert_int_equal(load(s, 0, &chunk), 2);
	lab_run("rm %s/*20.chunk", folder);
	assert_int_equal(spool_load(folder, &chunk, &p), -ENOENT);
	spool_totals(s, &totals);
	assert_int_equal(totals.damaged, 1);
	spool_close(s);
	/* Its number is not given again. */
	s = open_spool(1 << 20);
	assert_int_equal(spool_end(s), 2);
	spool_close(s);
}

static void test_folder_taken_away(void **state)
{
	struct spool *s = open_spool(1 << 20);

	lab_run("rm -r %s", folder);
	assert_int_equal(add(s, 1, 10), 0);
	assert_int_equal(lab_count(dir, "spool", ".chunk"), 1);
	spool_close(s);
	spool_close(NULL);
}

static void test_cursors(void **state)
{
	static const char *const damaged[] = { "",     "7",      "x\n",
					       "-1\n", "7\n8\n", "99999999999999999999999999\n" };
	struct spool *s = open_spool(1 << 20);

	assert_int_equal(spool_read_cursor(folder, "otlp"), 0);
	assert_int_equal(spool_write_cursor(folder, "otlp", 18446744073709551615ULL), 0);
	assert_true(spool_read_cursor(folder, "otlp") == 18446744073709551615ULL);
	for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
		lab_run("printf -- '%s' >%s/otlp.cursor", damaged[i], folder);
		assert_int_equal(spool_read_cursor(folder, "otlp"), 0);
	}
	/* Numbers go on behind what was sent, when nothing of it is left. */
	spool_begin_at(s, 40);
	assert_int_equal(spool_end(s), 40);
	spool_begin_at(s, 3);
	assert_int_equal(spool_end(s), 40);
	spool_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_same_window_twice, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_cap, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_damage, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_folder_taken_away, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_cursors, make_dir, remove_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
