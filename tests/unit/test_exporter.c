/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter with a folder as its sink: delivery, what waits, what a person wrote wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/export/exporter.h"
#include "agent/export/exporter_options.h"
#include "tests/unit/store_lab.h"

static char dir[64], out[96];

static int make_dir(void **state)
{
	lab_make_dir(dir);
	snprintf(out, sizeof(out), "%s/out", dir);
	return 0;
}

static int remove_dir(void **state)
{
	lab_remove_dir(dir);
	return 0;
}

static struct exporter_options options_of(const char *target)
{
	struct exporter_options o = {
		.node = "n",
		.version = "1",
		.spool_mib = 16,
		.retry_max_ns = NSEC_PER_SEC / 10,
		.max_series = 100,
		.request_kib = 4096,
	};

	o.sinks[SINK_DIRECTORY].target = target;
	return o;
}

static struct exporter *open_exporter(const struct exporter_options *o)
{
	struct exporter *x = NULL;
	char reason[256];

	assert_int_equal(exporter_open(dir, o, &x, reason, sizeof(reason)), 0);
	return x;
}

static void add_kind(struct exporter *x, const char *kind, int64_t start_s)
{
	struct profile *p = lab_profile(kind, "main", 1, start_s, 10);

	assert_int_equal(exporter_add(x, p), 0);
	profile_free(p);
}

static void add(struct exporter *x, int64_t start_s)
{
	add_kind(x, "cpu", start_s);
}

/* Comments that do not compress, more than a light window has. */
static void make_heavy(struct profile *p)
{
	unsigned short state[3] = { 1, 2, 3 };

	for (int i = 0; i < 12000; i++)
		assert_int_equal(profile_add_comment(p, "%08lx%08lx%08lx%08lx",
						     (unsigned long)jrand48(state) & UINT32_MAX,
						     (unsigned long)jrand48(state) & UINT32_MAX,
						     (unsigned long)jrand48(state) & UINT32_MAX,
						     (unsigned long)jrand48(state) & UINT32_MAX),
				 0);
}

static size_t delivered(void)
{
	char command[160];
	FILE *f;
	int count = -1;

	snprintf(command, sizeof(command), "find %s -name '*.pb.gz' | wc -l", out);
	f = popen(command, "r");
	assert_int_equal(fscanf(f, "%d", &count), 1);
	pclose(f);
	return (size_t)count;
}

/* Waits until so many windows were delivered. */
static void wait_windows(struct exporter *x, uint64_t windows)
{
	struct sink_totals totals = { 0 };

	while (totals.windows < windows) {
		assert_true(exporter_totals(x, 0, &totals));
		usleep(1000);
	}
}

static void test_delivers(void **state)
{
	struct exporter_options o = options_of(out);
	struct exporter *x = open_exporter(&o);
	struct sink_totals totals;

	lab_run("mkdir %s", out);
	assert_int_equal(exporter_start(x), 0);
	for (int i = 1; i <= 5; i++)
		add(x, 1000 + 10 * i);
	assert_true(exporter_totals(x, 0, &totals));
	assert_false(exporter_totals(x, 1, &totals));
	exporter_close(x, 60 * NSEC_PER_SEC);
	assert_int_equal(delivered(), 5);
	assert_int_equal(lab_count(dir, "spool", ".chunk"), 0);
	exporter_close(NULL, 0);
}

/* Time and samples are not added up. */
static void test_wall_is_apart(void **state)
{
	static const struct {
		const char *event;
		int64_t value;
	} windows[] = { { "samples", 7 }, { "wall", 3500000000 }, { "samples", 5 } };
	struct exporter_options o = options_of(out);
	struct exporter *x = open_exporter(&o);
	struct sink_totals totals;

	lab_run("mkdir %s", out);
	assert_int_equal(exporter_start(x), 0);
	for (int i = 0; i < 3; i++) {
		struct profile *p = lab_profile(windows[i].event, "main", windows[i].value,
						1000 + 10 * i, 10);

		assert_int_equal(exporter_add(x, p), 0);
		profile_free(p);
	}
	wait_windows(x, 3);
	assert_true(exporter_totals(x, 0, &totals));
	assert_int_equal(totals.samples, 12);
	assert_int_equal(totals.wall_ns, 3500000000);
	exporter_close(x, 60 * NSEC_PER_SEC);
}

/* What no sink took is there after a restart, and is delivered then. */
static void test_waits_and_goes_on(void **state)
{
	struct exporter_options o = options_of(out);
	struct exporter *x = open_exporter(&o);
	enum notice_level level;
	char text[256] = "";

	lab_run("touch %s", out); /* a file is in the way */
	assert_int_equal(exporter_start(x), 0);
	add(x, 1000);
	while (!exporter_next_notice(x, &level, text, sizeof(text)))
		usleep(1000);
	assert_int_equal(level, NOTICE_WARN);
	assert_non_null(strstr(text, "sink directory: Not a directory; tried again"));
	exporter_close(x, 0);
	assert_int_equal(lab_count(dir, "spool", ".chunk"), 1);

	lab_run("rm %s; mkdir %s", out, out);
	x = open_exporter(&o);
	assert_int_equal(exporter_start(x), 0);
	exporter_close(x, 60 * NSEC_PER_SEC);
	assert_int_equal(delivered(), 1);
	assert_int_equal(lab_count(dir, "spool", ".chunk"), 0);
}

/*
 * Light windows wait for each other and go as one, as far as they are one stretch of time; the
 * first of a life does not wait, so that a newcomer sees something.
 */
static void test_gathers(void **state)
{
	static const int starts[] = { 1010, 1020, 1030, 2000, 2010 };
	struct exporter_options o = options_of(out);
	struct exporter *x;
	struct sink_totals totals;

	o.gather_ns = 3600 * NSEC_PER_SEC;
	lab_run("mkdir %s", out);
	x = open_exporter(&o);
	assert_int_equal(exporter_start(x), 0);
	add(x, 1000);
	wait_windows(x, 1);
	assert_int_equal(delivered(), 1);
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		add(x, starts[i]);
	assert_true(exporter_totals(x, 0, &totals));
	assert_int_equal(totals.windows, 1);
	assert_int_equal(totals.waiting, 5);
	exporter_close(x, 60 * NSEC_PER_SEC);
	assert_int_equal(delivered(), 3);
	assert_int_equal(lab_count(dir, "spool", ".chunk"), 0);
}

/* Kinds that come in turn go each with their like; a third kind begins anew. Time is no samples. */
static void test_gathers_by_kind(void **state)
{
	struct exporter_options o = options_of(out);
	struct sink_totals totals;
	struct exporter *x;

	lab_run("mkdir %s", out);
	x = open_exporter(&o);
	for (int i = 0; i < 5; i++) {
		add_kind(x, "samples", 1000 + 10 * i);
		add_kind(x, "wall", 1001 + 10 * i);
	}
	add_kind(x, "cycles", 1051);
	add_kind(x, "samples", 1061);
	exporter_close(x, 0);
	o.gather_ns = 3600 * NSEC_PER_SEC;
	x = open_exporter(&o);
	assert_int_equal(exporter_start(x), 0);
	wait_windows(x, 12);
	assert_true(exporter_totals(x, 0, &totals));
	assert_int_equal(totals.samples, 6);
	exporter_close(x, 60 * NSEC_PER_SEC);
	assert_int_equal(delivered(), 4);
	assert_int_equal(lab_count(dir, "spool", ".chunk"), 0);
}

/* One that is not light goes at once and by itself, and those before it with it. */
static void test_heavy_goes_at_once(void **state)
{
	struct exporter_options o = options_of(out);
	struct exporter *x;
	struct profile *heavy = lab_profile("cpu", "main", 1, 1030, 10);

	o.gather_ns = 3600 * NSEC_PER_SEC;
	lab_run("mkdir %s", out);
	x = open_exporter(&o);
	assert_int_equal(exporter_start(x), 0);
	add(x, 1000);
	wait_windows(x, 1);
	add(x, 1010);
	add(x, 1020);
	make_heavy(heavy);
	assert_int_equal(exporter_add(x, heavy), 0);
	profile_free(heavy);
	wait_windows(x, 4);
	assert_int_equal(delivered(), 3); /* the first of a life, two light ones, the heavy one */
	add(x, 1040);
	exporter_close(x, 60 * NSEC_PER_SEC);
	assert_int_equal(delivered(), 4);
}

/* Not longer than asked for: 25 s have room for two windows of 10 s. */
static void test_gathers_so_long(void **state)
{
	struct exporter_options o = options_of(out);
	struct exporter *x;

	o.gather_ns = 25 * NSEC_PER_SEC;
	x = open_exporter(&o);
	for (int i = 0; i < 6; i++)
		add(x, 1000 + 10 * i);
	exporter_close(x, 0);
	lab_run("mkdir %s", out);
	x = open_exporter(&o); /* all are from an earlier life now: none waits */
	assert_int_equal(exporter_start(x), 0);
	wait_windows(x, 6);
	exporter_close(x, 60 * NSEC_PER_SEC);
	assert_int_equal(delivered(), 3);
}

/* Closed without a thread: as when the agent's start fails half-way. */
static void test_never_started(void **state)
{
	struct exporter_options o = options_of(out);
	struct exporter *x = open_exporter(&o);
	struct spool_totals spool;

	add(x, 1000);
	exporter_spool_totals(x, &spool);
	assert_int_equal(spool.chunks, 1);
	exporter_close(x, NSEC_PER_SEC);
}

static void test_labels(void **state)
{
	static const char *const wrong[] = { "a",       "a=",     "=b",    "a=b,",
					     "a=b,a=c", "1a=b",   "a-b=c", "node=x",
					     "__x=y",   "comm=z", ",",     "a=b,,c=d" };
	struct push_label labels[EXPORT_MAX_USER_LABELS];
	char *text, many[256] = "";
	size_t count;

	assert_int_equal(exporter_parse_labels("env=prod,region=eu-1", &text, labels, &count), 0);
	assert_int_equal(count, 2);
	assert_string_equal(labels[1].name, "region");
	assert_string_equal(labels[1].text, "eu-1");
	free(text);
	assert_int_equal(exporter_parse_labels("a=b=c", &text, labels, &count), 0);
	assert_string_equal(labels[0].text, "b=c");
	free(text);
	assert_int_equal(exporter_parse_labels(NULL, &text, labels, &count), 0);
	assert_int_equal(count, 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(exporter_parse_labels(wrong[i], &text, labels, &count), -EINVAL);
	for (int i = 0; i <= EXPORT_MAX_USER_LABELS; i++)
		snprintf(many + strlen(many), sizeof(many) - strlen(many), "%sl%d=x", i ? "," : "",
			 i);
	assert_int_equal(exporter_parse_labels(many, &text, labels, &count), -EINVAL);
}

static void test_checks(void **state)
{
	static const struct {
		const char *url, *says;
	} rows[] = {
		{ "http://h:4318", NULL },
		{ "https://h/prefix/", NULL },
		{ "ftp://h", "does not begin with" },
		{ "", "does not begin with" },
		{ "http://", "no host" },
		{ "http:///x", "no host" },
		{ "http://u:p@h", "credentials" },
		{ "http://h/a@b", NULL },
		{ "http://h/?q", "no address" },
		{ "http://h/\r\nX: y", "no address" },
	};
	struct exporter_options o = { 0 };
	char reason[256];

	assert_false(exporter_is_wanted(&o));
	assert_int_equal(exporter_check(&o, reason, sizeof(reason)), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int err;

		o.sinks[SINK_PARCA].target = rows[i].url;
		assert_true(exporter_is_wanted(&o) && exporter_needs_http(&o));
		err = exporter_check(&o, reason, sizeof(reason));
		assert_int_equal(err, rows[i].says ? -EINVAL : 0);
		if (rows[i].says)
			assert_non_null(strstr(reason, rows[i].says));
	}
}

static void test_differs(void **state)
{
	struct exporter_options o = options_of(out), other = o;
	struct exporter *x = open_exporter(&o);
	char copy[96];

	snprintf(copy, sizeof(copy), "%s", out);
	other.sinks[SINK_DIRECTORY].target = copy;
	assert_false(exporter_differs(x, &other));
	other.sinks[SINK_OTLP].target = "http://h";
	assert_true(exporter_differs(x, &other));
	other = o;
	other.http.ca_file = "/ca";
	assert_true(exporter_differs(x, &other));
	other = (struct exporter_options){ 0 };
	assert_true(exporter_differs(x, &other));
	assert_false(exporter_differs(NULL, &other));
	exporter_close(x, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_delivers, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_wall_is_apart, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_waits_and_goes_on, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_gathers, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_gathers_by_kind, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_heavy_goes_at_once, make_dir,
						remove_dir),
		cmocka_unit_test_setup_teardown(test_gathers_so_long, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_never_started, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_differs, make_dir, remove_dir),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_checks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
