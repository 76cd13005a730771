/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/metrics: the text format, by eye and by Prometheus's own checker. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/metrics.h"

static void check_text(struct buf *b, const char *want)
{
	const char *text = buf_cstr(b);

	assert_non_null(text);
	assert_string_equal(text, want);
	buf_fini(b);
}

static void test_family(void **state)
{
	struct buf b;

	buf_init(&b, 4096);
	metric_family(&b, "sonde_lost_samples_total", METRIC_COUNTER, "Samples lost, by reason.");
	metric_sample(&b, "sonde_lost_samples_total", "reason", "no_state", 3);
	metric_sample(&b, "sonde_lost_samples_total", "reason", "idle", 0);
	metric_single(&b, "sonde_memory_bytes", METRIC_GAUGE, "Memory.", 1.5);
	check_text(&b, "# HELP sonde_lost_samples_total Samples lost, by reason.\n"
		       "# TYPE sonde_lost_samples_total counter\n"
		       "sonde_lost_samples_total{reason=\"no_state\"} 3\n"
		       "sonde_lost_samples_total{reason=\"idle\"} 0\n"
		       "# HELP sonde_memory_bytes Memory.\n"
		       "# TYPE sonde_memory_bytes gauge\n"
		       "sonde_memory_bytes 1.5\n");
}

static void test_several_labels(void **state)
{
	const struct metric_label labels[] = { { "le", "+Inf" }, { "container", "a\"b" } };
	struct buf b;

	buf_init(&b, 4096);
	metric_family(&b, "sonde_x_seconds", METRIC_HISTOGRAM, "X.");
	metric_labelled(&b, "sonde_x_seconds_bucket", labels, 2, 3);
	metric_labelled(&b, "sonde_x_seconds_sum", labels + 1, 1, 0.5);
	metric_labelled(&b, "sonde_x_seconds_count", NULL, 0, 3);
	check_text(&b, "# HELP sonde_x_seconds X.\n"
		       "# TYPE sonde_x_seconds histogram\n"
		       "sonde_x_seconds_bucket{le=\"+Inf\",container=\"a\\\"b\"} 3\n"
		       "sonde_x_seconds_sum{container=\"a\\\"b\"} 0.5\n"
		       "sonde_x_seconds_count 3\n");
}

static void test_escapes(void **state)
{
	struct buf b;

	buf_init(&b, 4096);
	metric_family(&b, "m", METRIC_GAUGE, "a \"b\" \\ c\nd");
	metric_sample(&b, "m", "l", "q\"b\\n\nt\t\xff\xc3\xa9", 1);
	metric_sample(&b, "m", "l", "\\x41", 1);
	metric_sample(&b, "m", "l", "", 1);
	check_text(&b, "# HELP m a \"b\" \\\\ c\\nd\n# TYPE m gauge\n"
		       "m{l=\"q\\\"b\\\\n\\nt\\\\x09\\\\xff\xc3\xa9\"} 1\n"
		       "m{l=\"\\\\x41\"} 1\n"
		       "m{l=\"\"} 1\n");
}

static void check_value(double value, const char *want)
{
	struct buf b;
	char line[64];

	buf_init(&b, 4096);
	metric_sample(&b, "m", NULL, NULL, value);
	snprintf(line, sizeof(line), "m %s\n", want);
	check_text(&b, line);
}

static void test_values(void **state)
{
	check_value(0, "0");
	check_value(0.1, "0.1");
	check_value(-2.5, "-2.5");
	check_value(123456789012345, "123456789012345");
	check_value(9007199254740991.0, "9007199254740991");
	check_value(1.0 / 3, "0.33333333333333331");
	check_value(INFINITY, "+Inf");
	check_value(-INFINITY, "-Inf");
	check_value(NAN, "NaN");
}

static void test_bound(void **state)
{
	struct buf b;

	buf_init(&b, 16);
	metric_single(&b, "sonde_memory_bytes", METRIC_GAUGE, "Memory.", 1.5);
	assert_int_not_equal(buf_error(&b), 0);
	buf_fini(&b);
}

static void test_promtool(void **state)
{
	struct buf b;
	FILE *tool;

	if (system("command -v promtool >/dev/null 2>&1") != 0) {
		print_message("# skip: no promtool here (Debian's package prometheus)\n");
		skip();
	}
	buf_init(&b, 4096);
	metric_family(&b, "sonde_lost_samples_total", METRIC_COUNTER,
		      "Samples \\ lost,\nby reason.");
	metric_sample(&b, "sonde_lost_samples_total", "reason", "a \"b\" \\ c\nd\xff\t", 3);
	metric_sample(&b, "sonde_lost_samples_total", "reason", "idle", INFINITY);
	metric_single(&b, "sonde_stall_seconds", METRIC_GAUGE, "Longest stall.", 0.1);
	tool = popen("promtool check metrics", "we");
	assert_non_null(tool);
	assert_int_equal(fwrite(b.data, 1, b.len, tool), b.len);
	buf_fini(&b);
	assert_int_equal(pclose(tool), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_family),   cmocka_unit_test(test_several_labels), cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_values),   cmocka_unit_test(test_bound),
		cmocka_unit_test(test_promtool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
