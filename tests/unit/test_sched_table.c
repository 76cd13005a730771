/* SPDX-License-Identifier: Apache-2.0 */
/* From books through a profile to tables: nothing is lost on the way; filters, sorting, bounds. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cli/sched.h"
#include "proto/pprof.h"
#include "sched_lab.h"

enum { MAX_BYTES = 16 << 20 };

static const struct sched_profile_options options = { .realtime_ns = (uint64_t)(5000 * MS),
						       .max_bytes = MAX_BYTES };

static const struct sched_view by_process = { .by = "process", .sort = "run" };

static int append(void *context, const void *bytes, size_t len)
{
	buf_put(context, bytes, len);
	return buf_error(context);
}

/* What a file that was written holds when it is read. */
static struct profile *through_pprof(struct profile *p)
{
	struct profile *read = NULL;
	char reason[256] = "";
	struct buf bytes;

	buf_init(&bytes, MAX_BYTES);
	assert_int_equal(pprof_write(p, (struct byte_sink){ append, &bytes }), 0);
	assert_int_equal(pprof_read(bytes.data, bytes.len, MAX_BYTES, &read, reason, sizeof(reason)),
			 0);
	buf_fini(&bytes);
	profile_free(p);
	return read;
}

/* Two processes, one of them with two threads, over 1 s. */
static struct profile *example(bool by_thread)
{
	struct sched_books *b = lab_books(by_thread, 100);
	struct sonde_sched_thread a = lab_thread(10, 10, 0), w = lab_thread(10, 11, 0),
				  k = lab_thread(2, 2, 0);
	struct profile *p;

	lab_snapshot(b, 0);
	sched_books_clear(b);
	lab_spend(&a, 300, SONDE_SCHED_LOCK);
	lab_spend(&a, 600, SONDE_SCHED_WOKEN);
	lab_spend(&a, 100, SONDE_SCHED_RUNNING);
	a.delay[5] = 99;
	a.delay[20] = 1;
	a.off[0] = 3;
	a.delay_ns = (uint64_t)(100 * MS);
	a.max[0].ns = 600000000;
	a.migrations = 4;
	lab_spend(&w, 50, SONDE_SCHED_THROTTLED);
	lab_spend(&w, 950, SONDE_SCHED_POLL);
	k.flags = SONDE_SCHED_KERNEL_THREAD;
	strcpy(k.comm, "kthreadd");
	k.state = SONDE_SCHED_OTHER;
	sched_books_thread(b, &a, 1000 * MS, 0);
	sched_books_thread(b, &w, 1000 * MS, 0);
	sched_books_thread(b, &k, 1000 * MS, 0);
	lab_snapshot(b, 1000);
	assert_int_equal(sched_profile_new(b, &options, &p), 0);
	sched_books_free(b);
	return through_pprof(p);
}

static void all_values_survive(void **state)
{
	struct profile *p = example(false);
	const struct sched_totals *t;
	struct sched_table table;

	assert_int_equal(p->duration_ns, 1000 * MS);
	assert_int_equal(sched_table_make(p, &by_process, &table), 0);
	assert_int_equal(table.count, 1);
	t = &table.groups[0].totals;
	assert_int_equal(table.groups[0].key.pid, 10);
	assert_int_equal(t->exec_ns, 350 * MS);
	assert_int_equal(t->ns[SONDE_SCHED_LOCK], 600 * MS);
	assert_int_equal(t->ns[SONDE_SCHED_WOKEN], 100 * MS);
	assert_int_equal(t->ns[SONDE_SCHED_THROTTLED], 950 * MS);
	assert_int_equal(t->elapsed_ns, 2000 * MS);
	assert_int_equal(t->threads, 2);
	assert_int_equal(t->migrations, 4);
	assert_int_equal(t->delay[5], 99);
	assert_int_equal(t->delay[20], 1);
	assert_int_equal(t->off[0], 3);
	assert_int_equal(t->delay_ns, 100 * MS);
	assert_int_equal(t->max_delay_ns, 600000000);
	assert_int_equal(t->entries[SONDE_SCHED_LOCK], 1);
	assert_int_equal(table.all.totals.elapsed_ns, 3000 * MS);
	assert_int_equal(table.kernel.totals.threads, 1);
	sched_table_fini(&table);
	profile_free(p);
}

static void rows_may_be_threads(void **state)
{
	struct sched_view view = { .by = "thread", .sort = "quota", .kernel = true };
	struct profile *p = example(true);
	struct sched_table table;

	assert_int_equal(sched_table_make(p, &view, &table), 0);
	assert_int_equal(table.count, 3);
	assert_int_equal(table.groups[0].key.tid, 11);
	assert_string_equal(profile_text(p, table.groups[0].key.thread), "worker");
	/* A thread is found by its process's name. */
	assert_string_equal(profile_text(p, table.groups[0].key.comm), "leader");
	sched_table_fini(&table);
	profile_free(p);
}

static size_t rows_with(struct profile *p, struct sched_view view)
{
	struct sched_table table;
	size_t count;

	view.by = "process";
	view.sort = "name";
	view.kernel = true;
	assert_int_equal(sched_table_make(p, &view, &table), 0);
	count = table.count;
	sched_table_fini(&table);
	return count;
}

static void filters_choose_rows(void **state)
{
	struct profile *p = example(false);

	assert_int_equal(rows_with(p, (struct sched_view){ .comm = "leader" }), 1);
	assert_int_equal(rows_with(p, (struct sched_view){ .comm = "lead*,kthreadd" }), 2);
	assert_int_equal(rows_with(p, (struct sched_view){ .comm = "lead" }), 0);
	assert_int_equal(rows_with(p, (struct sched_view){ .pid = "1,2" }), 1);
	assert_int_equal(rows_with(p, (struct sched_view){ .pid = "10", .comm = "kthreadd" }), 0);
	assert_int_equal(rows_with(p, (struct sched_view){ .cgroup = "[unknown cgroup]" }), 2);
	assert_int_equal(rows_with(p, (struct sched_view){ .comm = "" }), 0);
	profile_free(p);
}

static void unknown_words_are_refused(void **state)
{
	struct sched_view by = { .by = "cow", .sort = "run" };
	struct sched_view sort = { .by = "all", .sort = "cow" };
	struct sched_view histogram = { .by = "all", .sort = "p99", .histogram = "cow" };
	struct sched_view good = { .by = "all", .sort = "page_fault", .histogram = "off" };
	char reason[256] = "";

	assert_int_equal(sched_view_check(&by, reason, sizeof(reason)), -EINVAL);
	assert_non_null(strstr(reason, "--by: 'cow'"));
	assert_int_equal(sched_view_check(&sort, reason, sizeof(reason)), -EINVAL);
	assert_int_equal(sched_view_check(&histogram, reason, sizeof(reason)), -EINVAL);
	assert_int_equal(sched_view_check(&good, reason, sizeof(reason)), 0);
}

static void other_profiles_are_refused(void **state)
{
	struct sched_table table;
	struct profile *p;

	assert_int_equal(profile_new(MAX_BYTES, &p), 0);
	assert_true(profile_add_type(p, "samples", "count") >= 0);
	assert_int_equal(sched_table_make(p, &by_process, &table), -EINVAL);
	profile_free(p);
}

/* A file that somebody made: as large as a number can be, in whichever value, and negative. */
static void sums_that_do_not_fit_are_refused(void **state)
{
	static const int64_t extremes[] = { INT64_MAX, INT64_MIN, -INT64_MAX };

	for (int v = 0; v < SCHED_VALUE_COUNT; v++) {
		for (size_t i = 0; i < sizeof(extremes) / sizeof(extremes[0]); i++) {
			struct profile *p = example(true);
			struct sched_table table;

			p->samples[0].values[v] = extremes[i];
			p->samples[1].values[v] = 1;
			assert_int_equal(sched_table_make(p, &by_process, &table), -EOVERFLOW);
			profile_free(p);
		}
	}
}

/* Numbers that are labels: pids, buckets. */
static void make_large(const struct profile_sample *s)
{
	struct profile_label *labels = (struct profile_label *)(uintptr_t)s->labels;

	for (uint32_t i = 0; i < s->label_count; i++) {
		if (!labels[i].str)
			labels[i].num = INT64_MIN;
	}
}

/* The largest that fit are shown without harm; so are pids that no kernel has. */
static void large_numbers_are_shown(void **state)
{
	static const int64_t large[] = { INT64_MAX, -INT64_MAX };
	struct sched_view view = { .by = "thread", .sort = "pid", .kernel = true };

	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
		struct profile *p = example(true);
		struct sched_table table;
		struct buf text;

		for (size_t s = 0; s < p->sample_count; s++) {
			for (int v = 0; v < SCHED_VALUE_COUNT; v++)
				p->samples[s].values[v] = s ? 0 : large[i];
			make_large(&p->samples[s]);
		}
		buf_init(&text, MAX_BYTES);
		assert_int_equal(sched_table_make(p, &view, &table), 0);
		sched_table_print(&table, &view, &text);
		sched_table_csv(&table, &view, &text);
		assert_int_equal(buf_error(&text), 0);
		buf_fini(&text);
		sched_table_fini(&table);
		profile_free(p);
	}
}

static void quantiles_lie_in_their_bucket(void **state)
{
	uint64_t buckets[SONDE_SCHED_BUCKETS] = { 0 };

	assert_int_equal(sched_quantile(buckets, 0.99, 0), 0);
	buckets[4] = 99;
	buckets[10] = 1;
	assert_in_range(sched_quantile(buckets, 0.5, 0), sched_bucket_start(4),
			sched_bucket_start(5));
	assert_in_range(sched_quantile(buckets, 0.995, 0), sched_bucket_start(10),
			sched_bucket_start(11));
	/* The longest is known exactly. */
	assert_int_equal(sched_quantile(buckets, 1, sched_bucket_start(10) + 5),
			 sched_bucket_start(10) + 5);
}

/* What an earlier interval got too much is not lost from the sum, and never shown negative. */
static void negative_differences_are_settled(void **state)
{
	struct sched_books *b = lab_books(false, 100);
	struct sonde_sched_thread t = lab_thread(10, 10, 0);
	struct sched_table table;
	struct profile *p;
	int64_t sum = 0;

	lab_spend(&t, 10, SONDE_SCHED_PREEMPTED);
	sched_books_thread(b, &t, 1000 * MS, 0);
	lab_snapshot(b, 1000);
	sched_books_clear(b);
	/* All of that wait turns out to have been throttled. */
	t.ns[SONDE_SCHED_THROTTLED] = (uint64_t)(1090 * MS);
	t.since += (uint64_t)(1090 * MS);
	sched_books_thread(b, &t, 1100 * MS, 0);
	lab_snapshot(b, 1100);
	assert_int_equal(sched_profile_new(b, &options, &p), 0);
	sched_books_free(b);
	assert_int_equal(sched_table_make(p, &by_process, &table), 0);
	for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++) {
		assert_true(table.groups[0].totals.ns[i] >= 0);
		sum += table.groups[0].totals.ns[i];
	}
	assert_int_equal(sum, 100 * MS);
	sched_table_fini(&table);
	profile_free(p);
}

static void tables_are_written(void **state)
{
	struct sched_view view = { .by = "process", .sort = "run", .histogram = "delay" };
	struct profile *p = example(false);
	struct sched_table table;
	struct buf text;

	buf_init(&text, MAX_BYTES);
	assert_int_equal(sched_table_make(p, &view, &table), 0);
	sched_table_print(&table, &view, &text);
	assert_non_null(strstr(buf_cstr(&text), "leader:10"));
	assert_non_null(strstr(buf_cstr(&text), "lock 600 ms"));
	assert_non_null(strstr(buf_cstr(&text), "lived (100.00 %)"));
	buf_reset(&text);
	sched_table_csv(&table, &view, &text);
	assert_non_null(strstr(buf_cstr(&text), "\n\"leader\",\"\",\"\",10,0,2,2000000000,350000000,"));
	buf_fini(&text);
	sched_table_fini(&table);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_values_survive),
		cmocka_unit_test(rows_may_be_threads),
		cmocka_unit_test(filters_choose_rows),
		cmocka_unit_test(unknown_words_are_refused),
		cmocka_unit_test(other_profiles_are_refused),
		cmocka_unit_test(sums_that_do_not_fit_are_refused),
		cmocka_unit_test(large_numbers_are_shown),
		cmocka_unit_test(quantiles_lie_in_their_bucket),
		cmocka_unit_test(negative_differences_are_settled),
		cmocka_unit_test(tables_are_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
