/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde report DIR`: times as people write them, the right windows, merged, and clear errors. */
#include <errno.h>

#include "agent/store/store.h"
#include "cli/report.h"
#include "cli/report_store.h"
#include "tests/unit/report_lab.h"
#include "tests/unit/store_lab.h"

enum { NOON = 1795953600 }; /* 2026-11-29 12:00:00 */

#define NS ((int64_t)NSEC_PER_SEC)

static void times_are_understood(void **state)
{
	static const struct {
		const char *text;
		int64_t want_s; /* -1: refused */
	} cases[] = {
		{ "now", NOON },
		{ "1h", NOON - 3600 },
		{ "30m", NOON - 1800 },
		{ "90s", NOON - 90 },
		{ "90", NOON - 90 },
		{ "2d", NOON - 2 * 86400 },
		{ "36500d", 0 }, /* before time began: one ns after, as 0 would be no limit */
		{ "2026-11-29 03:12", NOON - 31680 },
		{ "2026-11-29 03:12:30", NOON - 31650 },
		{ "2026-11-29T03:12:00Z", NOON - 31680 },
		{ "2026-11-29T03:12", NOON - 31680 },
		{ "2026-11-29 03:12Z", NOON - 31680 },
		{ "2026-11-29", NOON - 43200 },
		{ "03:12", NOON - 31680 },
		{ "03:12:30", NOON - 31650 },
		{ "12:00", NOON },
		{ "12:01", NOON + 60 - 86400 }, /* still to come: yesterday's */
		{ "23:59", NOON + 43200 - 60 - 86400 },
		{ "2024-02-29", 1709164800 },
		{ "2026-02-29", -1 },
		{ "2026-02-30 03:12", -1 },
		{ "2026-13-01", -1 },
		{ "24:30", -1 },
		{ "03:60", -1 },
		{ "03:12 ", -1 },
		{ "03:12+01:00", -1 },
		{ "yesterday", -1 },
		{ "-1h", -1 },
		{ "1969-01-01", -1 },
		{ "", -1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t ns = 77;
		int err = report_parse_time(cases[i].text, NOON * NS, &ns);

		if (cases[i].want_s < 0 ? err != -EINVAL || ns != 77
					: err != 0 || ns / NS != cases[i].want_s || ns == 0)
			fail_msg("'%s': %d, %lld", cases[i].text, err, (long long)(ns / NS));
	}
}

/* A sample of `function` by process `comm` in a control group. */
static void add_sample(struct profile *p, const char *function, const char *comm,
		       const char *cgroup, int64_t value)
{
	struct profile_function f = { .name = lab_string(p, function) };
	struct profile_line line = { .function_id = (uint32_t)profile_add_function(p, &f) };
	uint32_t location = (uint32_t)profile_add_location(p, 0, 0, &line, 1);
	struct profile_label labels[] = {
		{ .key = lab_string(p, "comm"), .str = lab_string(p, comm) },
		{ .key = lab_string(p, "pid"), .num = value },
		{ .key = lab_string(p, "cgroup"), .str = lab_string(p, cgroup) },
	};

	assert_int_equal(profile_add_sample(p, &location, 1, &value, labels, 3), 0);
}

/* Ten minutes from noon on; minute i runs function minute_i, and all run always. */
static void make_store(char dir[64])
{
	struct store_options options = { .dir = dir };
	char name[32], reason[256];
	struct store *s;

	lab_make_dir(dir);
	assert_int_equal(store_open(&options, &s, reason, sizeof(reason)), 0);
	for (int i = 0; i < 10; i++) {
		struct profile *p = lab_profile("cpu", "always", 1000, NOON + i * 60, 60);

		snprintf(name, sizeof(name), "minute_%d", i);
		add_sample(p, name, "app", "/system.slice/app.service", 100 + i);
		add_sample(p, "other", "bash", "/user.slice/user-0.slice", 10);
		assert_int_equal(store_add(s, p, "cpu"), 0);
		profile_free(p);
	}
	store_close(s);
}

/* The report must have all of `want` and none of `miss` (texts with |). */
static void expect(struct report_options options, const char *dir, const char *want,
		   const char *miss)
{
	char *out, *err, *words, *save = NULL;

	options.sort = "sym";
	if (lab_report(options, dir, &out, &err))
		fail_msg("%s", err);
	assert_string_equal(err, "");
	words = strdup(want);
	for (char *w = strtok_r(words, "|", &save); w; w = strtok_r(NULL, "|", &save))
		if (!strstr(out, w))
			fail_msg("'%s' is missing in:\n%s", w, out);
	free(words);
	words = strdup(miss);
	for (char *w = strtok_r(words, "|", &save); w; w = strtok_r(NULL, "|", &save))
		if (strstr(out, w))
			fail_msg("'%s' should not be in:\n%s", w, out);
	free(words);
	free(out);
	free(err);
}

static void expect_error(struct report_options options, const char *dir, const char *why)
{
	options.sort = "sym";
	lab_report_fails(options, dir, why, NULL);
}

static void windows_are_merged(void **state)
{
	char dir[64];

	make_store(dir);
	expect((struct report_options){ 0 }, dir,
	       "always|minute_0|minute_9|# merged from 10 profiles of type cpu, which cover 600.0 "
	       "s|"
	       "# host: lab|# sonde.received=10000|# Start: 2026-11-29 12:00:00 UTC|"
	       "# Duration: 600.00 s",
	       "profiles, which cover 60.0");
	lab_remove_dir(dir);
}

/* "What ran at 12:03?" */
static void a_minute_is_found(void **state)
{
	char dir[64];

	make_store(dir);
	expect((struct report_options){ .since = "2026-11-29 12:03", .until = "2026-11-29 12:04" },
	       dir, "minute_3|always|merged from 1 profiles|# Start: 2026-11-29 12:03:00",
	       "minute_2|minute_4");
	expect((struct report_options){ .since = "2026-11-29 12:03:30",
					.until = "2026-11-29T12:04:10Z" },
	       dir, "minute_3|minute_4|merged from 2", "minute_2|minute_5");
	expect((struct report_options){ .since = "2026-11-29 12:08" }, dir, "minute_8|minute_9",
	       "minute_7");
	expect((struct report_options){ .until = "2026-11-29 12:01", .type = "cpu" }, dir,
	       "minute_0", "minute_1");
	lab_remove_dir(dir);
}

static void filters_work(void **state)
{
	char dir[64];

	make_store(dir);
	expect((struct report_options){ .comm = "bash" }, dir, "other", "minute_|always");
	expect((struct report_options){ .pid = "103,104" }, dir, "minute_3|minute_4",
	       "minute_2|other");
	expect((struct report_options){ .cgroup = "/system.slice/*" }, dir,
	       "minute_0|cgroup /system.slice/*", "other|always");
	expect((struct report_options){ .cgroup = "/user.slice/user-0.slice" }, dir, "other",
	       "minute_|always");
	expect((struct report_options){ .cgroup = "/user.slice" }, dir, "# Total", "other|minute_");
	expect((struct report_options){ .folded = true, .cgroup = "/user.slice/*" }, dir,
	       "other 100", "minute_|always");
	lab_remove_dir(dir);
}

static void mistakes_are_explained(void **state)
{
	char dir[64], file[128];

	make_store(dir);
	expect_error((struct report_options){ .since = "noon\x1b" }, dir,
		     "--since: 'noon\\x1b' is no time, such as 1h");
	expect_error((struct report_options){ .until = "25:00" }, dir, "--until: '25:00'");
	expect_error((struct report_options){ .since = "2026-11-29", .until = "2026-11-28" }, dir,
		     "--until is not after --since");
	expect_error((struct report_options){ .since = "2026-11-28", .until = "2026-11-29 01:00" },
		     dir, "no profile since 2026-11-28 00:00:00 until 2026-11-29 01:00:00 UTC");
	expect_error((struct report_options){ .type = "heap\n" }, dir, "of type 'heap\\x0a'");
	expect_error((struct report_options){ 0 }, "/tmp", "no store of sonde agent");
	snprintf(file, sizeof(file), "%s/profiles/2026-11-29/120000-cpu.pb.gz", dir);
	expect_error((struct report_options){ .since = "1h" }, file,
		     "choose from a store directory");
	lab_run("rm -r %s/profiles/*", dir);
	expect_error((struct report_options){ 0 }, dir,
		     "the store has no profile; no report is made");
	lab_remove_dir(dir);
}

static void run_with_warning(struct report_options options, const char *dir, const char *warning)
{
	char *out, *err;

	assert_int_equal(lab_report(options, dir, &out, &err), 0);
	if (!strstr(err, warning) || strchr(err, '\n') != err + strlen(err) - 1)
		fail_msg("expected one line with '%s': %s", warning, err);
	assert_non_null(strstr(out, "merged from 9 profiles"));
	assert_non_null(strstr(out, "others are left out"));
	free(out);
	free(err);
}

static void what_is_damaged_is_left_out(void **state)
{
	char dir[64];

	make_store(dir);
	lab_run("truncate -s 100 %s/profiles/2026-11-29/120500-cpu.pb.gz", dir);
	run_with_warning((struct report_options){ 0 }, dir,
			 "120500-cpu.pb.gz: damaged or cut gzip data");
	lab_run("rm %s/catalogue.db", dir);
	run_with_warning((struct report_options){ 0 }, dir,
			 "120500-cpu.pb.gz: damaged or cut gzip data");
	lab_remove_dir(dir);
}

static void all_damaged_is_an_error(void **state)
{
	char dir[64], *out, *err;

	make_store(dir);
	lab_run("for f in %s/profiles/*/*; do : > $f; done", dir);
	assert_int_equal(lab_report((struct report_options){ 0 }, dir, &out, &err), 1);
	assert_string_equal(out, "");
	assert_non_null(strstr(err, "none of the 10 profiles in that time can be read"));
	free(out);
	free(err);
	lab_remove_dir(dir);
}

/* Another event, as after a reboot to a kernel without a PMU; another type of profile. */
static void what_does_not_fit_is_left_out(void **state)
{
	struct store_options options = { 0 };
	char dir[64], reason[256];
	struct profile *p;
	struct store *s;

	make_store(dir);
	lab_run("rm %s/profiles/2026-11-29/120900-cpu.pb.gz", dir);
	options.dir = dir;
	assert_int_equal(store_open(&options, &s, reason, sizeof(reason)), 0);
	p = lab_profile("cycles", "cycled", 5, NOON + 900, 60);
	assert_int_equal(store_add(s, p, "cpu"), 0);
	assert_int_equal(store_add(s, p, "cycles"), 0);
	profile_free(p);
	store_close(s);
	run_with_warning((struct report_options){ 0 }, dir, "measures something else");
	expect((struct report_options){ .type = "cycles" }, dir, "cycled|merged from 1", "always");
	lab_remove_dir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_understood),
		cmocka_unit_test(windows_are_merged),
		cmocka_unit_test(a_minute_is_found),
		cmocka_unit_test(filters_work),
		cmocka_unit_test(mistakes_are_explained),
		cmocka_unit_test(what_is_damaged_is_left_out),
		cmocka_unit_test(all_damaged_is_an_error),
		cmocka_unit_test(what_does_not_fit_is_left_out),
	};

	return cmocka_run_group_tests_name("report_store", tests, NULL, NULL);
}
