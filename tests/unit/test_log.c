/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/log: what a line looks like, levels, and the limit on lines. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/log.h"

enum { TEXT_BYTES = 16384 };

/* Standard error goes into a pipe meanwhile. */
struct capture {
	int saved, ends[2];
	char text[TEXT_BYTES];
};

static void capture_begin(struct capture *c)
{
	assert_int_equal(pipe2(c->ends, O_CLOEXEC | O_NONBLOCK), 0);
	fflush(stderr);
	c->saved = dup(STDERR_FILENO);
	assert_true(c->saved >= 0);
	dup2(c->ends[1], STDERR_FILENO);
}

static void capture_end(struct capture *c)
{
	ssize_t n = read(c->ends[0], c->text, sizeof(c->text) - 1);

	dup2(c->saved, STDERR_FILENO);
	close(c->saved);
	close(c->ends[0]);
	close(c->ends[1]);
	c->text[n > 0 ? n : 0] = 0;
}

static size_t lines_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void test_a_line(void **state)
{
	struct log_site site = { 0 };
	struct capture c;
	int year, end = 0;
	const char *rest;

	unsetenv("JOURNAL_STREAM");
	capture_begin(&c);
	log_write(&site, LOG_WARN, "sink %s: %d", "http", 5);
	capture_end(&c);
	assert_int_equal(sscanf(c.text, "%4d-%*2d-%*2dT%*2d:%*2d:%*2d.%*3dZ%n", &year, &end), 1);
	assert_true(year >= 2024 && end == 24);
	rest = c.text + end;
	assert_string_equal(rest, " WARN  sink http: 5\n");
}

static void test_levels(void **state)
{
	enum log_level level = LOG_DEBUG;
	struct log_site site = { 0 };
	struct capture c;

	assert_int_equal(log_parse_level("error", &level), 0);
	assert_int_equal(level, LOG_ERROR);
	assert_int_equal(log_parse_level("debug", &level), 0);
	assert_int_equal(level, LOG_DEBUG);
	assert_int_equal(log_parse_level("loud", &level), -EINVAL);
	assert_int_equal(log_parse_level("", &level), -EINVAL);
	assert_int_equal(level, LOG_DEBUG);

	log_set_level(LOG_WARN);
	capture_begin(&c);
	log_write(&site, LOG_INFO, "no");
	log_write(&site, LOG_DEBUG, "no");
	log_write(&site, LOG_WARN, "yes");
	log_write(&site, LOG_ERROR, "yes");
	capture_end(&c);
	log_set_level(LOG_INFO);
	assert_int_equal(lines_of(c.text), 2);
	assert_null(strstr(c.text, "no"));
}

static void test_journal(void **state)
{
	struct log_site site = { 0 };
	struct capture c;
	struct stat st;
	char stream[64];

	capture_begin(&c);
	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	log_write(&site, LOG_ERROR, "stop");
	log_write(&site, LOG_INFO, "start");
	/* Inherited from a service, but our output goes elsewhere. */
	setenv("JOURNAL_STREAM", "1:1", 1);
	log_write(&site, LOG_ERROR, "elsewhere");
	unsetenv("JOURNAL_STREAM");
	capture_end(&c);
	assert_ptr_equal(strstr(c.text, "<3>stop\n<6>start\n"), c.text);
	assert_non_null(strstr(c.text, "ERROR elsewhere\n"));
}

static void test_foreign_bytes(void **state)
{
	struct log_site site = { 0 };
	struct capture c;

	capture_begin(&c);
	log_write(&site, LOG_INFO, "comm %s", "a\nb\x1b[31m\xff");
	capture_end(&c);
	assert_int_equal(lines_of(c.text), 1);
	assert_non_null(strstr(c.text, "comm a\\x0ab\\x1b[31m\\xff\n"));
}

static void test_long_message(void **state)
{
	struct log_site site = { 0 };
	char *text = malloc(100000);
	struct capture c;

	memset(text, 1, 99999);
	text[99999] = 0;
	capture_begin(&c);
	log_write(&site, LOG_INFO, "%s", text);
	capture_end(&c);
	free(text);
	assert_int_equal(lines_of(c.text), 1);
	assert_true(strlen(c.text) > 1000 && strlen(c.text) < 12000);
}

static void test_burst(void **state)
{
	struct log_site site = { 0 }, other = { 0 };
	struct capture c;

	capture_begin(&c);
	for (int i = 0; i < LOG_BURST + 7; i++)
		log_write(&site, LOG_WARN, "again");
	log_write(&other, LOG_WARN, "another site");
	capture_end(&c);
	assert_int_equal(lines_of(c.text), LOG_BURST + 1);
	assert_non_null(strstr(c.text, "another site\n"));
	assert_int_equal(site.suppressed, 7);

	/* As if the interval had passed. */
	site.since -= LOG_INTERVAL_SECONDS * NSEC_PER_SEC;
	capture_begin(&c);
	log_write(&site, LOG_WARN, "again");
	log_write(&site, LOG_WARN, "again");
	capture_end(&c);
	assert_int_equal(lines_of(c.text), 2);
	assert_non_null(strstr(c.text, "again (7 more like this were left out before)\n"));
	assert_int_equal(site.suppressed, 0);
	assert_int_equal(site.written, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_line),       cmocka_unit_test(test_levels),
		cmocka_unit_test(test_journal),      cmocka_unit_test(test_foreign_bytes),
		cmocka_unit_test(test_long_message), cmocka_unit_test(test_burst),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
