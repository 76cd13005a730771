/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/options. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/options.h"

enum { MAX_ARGS = 16 };

struct values {
	bool flag, other;
	uint64_t number, duration;
	double real;
	const char *text, *plain;
};

#define FIELD(name) offsetof(struct values, name)

static const struct option_row rows[] = {
	{ "flag", 'f', OPTION_FLAG, NULL, NULL, 0, 0, FIELD(flag), "a flag" },
	{ "other-flag", 'o', OPTION_FLAG, NULL, "yes", 0, 0, FIELD(other), "on by default" },
	{ "number", 'n', OPTION_NUMBER, "N", "99", 1, 1000, FIELD(number), "a number" },
	{ "real", 0, OPTION_REAL, "X", "0.5", -1, 1, FIELD(real), "a real number" },
	{ "duration", 'd', OPTION_DURATION, "TIME", NULL, 0, 0, FIELD(duration), "how long" },
	{ "text", 't', OPTION_TEXT, "FILE", "none", 0, 0, FIELD(text), "a text" },
	{ "plain", 0, OPTION_TEXT, "FILE", NULL, 0, 0, FIELD(plain), "without default" },
	{ 0 },
};

static struct values values;
static char reason[256];
static int rest;

/* Parses a command line given as one text with blanks; "" stands for an empty argument. */
static int parse(const char *line)
{
	static char copy[256];
	char *argv[MAX_ARGS + 1] = { "prog" }, *save = NULL;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok_r(copy, " ", &save); word && argc < MAX_ARGS;
	     word = strtok_r(NULL, " ", &save))
		argv[argc++] = strcmp(word, "''") == 0 ? "" : word;
	memset(&values, 0, sizeof(values));
	reason[0] = 0;
	rest = -1;
	return options_parse(rows, argc, argv, &values, &rest, reason, sizeof(reason));
}

static void check_bad(const char *line, const char *complaint)
{
	assert_int_equal(parse(line), -EINVAL);
	if (!strstr(reason, complaint))
		fail_msg("%s: '%s' does not say '%s'", line, reason, complaint);
	assert_null(strchr(reason, '\n'));
	assert_int_equal(rest, -1);
}

static void test_defaults(void **state)
{
	assert_int_equal(parse(""), 0);
	assert_false(values.flag);
	assert_true(values.other);
	assert_int_equal(values.number, 99);
	assert_true(values.real == 0.5);
	assert_int_equal(values.duration, 0);
	assert_string_equal(values.text, "none");
	assert_null(values.plain);
	assert_int_equal(rest, 1);
}

static void test_long_names(void **state)
{
	assert_int_equal(parse("--flag --number 7 --real=-0.25 --duration 1.5m --text=a=b rest"), 0);
	assert_true(values.flag);
	assert_int_equal(values.number, 7);
	assert_true(values.real == -0.25);
	assert_int_equal(values.duration, 90000000000);
	assert_string_equal(values.text, "a=b");
	assert_int_equal(rest, 8);
	assert_int_equal(parse("--other-flag=no --flag=1 --text= --plain ''"), 0);
	assert_false(values.other);
	assert_true(values.flag);
	assert_string_equal(values.text, "");
	assert_string_equal(values.plain, "");
	assert_int_equal(parse("--text --flag"), 0); /* a value may look like an option */
	assert_string_equal(values.text, "--flag");
	assert_false(values.flag);
}

static void test_letters(void **state)
{
	assert_int_equal(parse("-f -n5 -d 200ms -tx"), 0);
	assert_true(values.flag);
	assert_int_equal(values.number, 5);
	assert_int_equal(values.duration, 200000000);
	assert_string_equal(values.text, "x");
	assert_int_equal(parse("-fon 17 x"), 0);
	assert_true(values.flag && values.other);
	assert_int_equal(values.number, 17);
	assert_int_equal(rest, 3);
	assert_int_equal(parse("-n 5 -n 6"), 0); /* the last one counts */
	assert_int_equal(values.number, 6);
}

static void test_where_options_end(void **state)
{
	assert_int_equal(parse("-f cmd -n 5"), 0);
	assert_int_equal(rest, 2);
	assert_int_equal(values.number, 99);
	assert_int_equal(parse("-f -- -n"), 0);
	assert_int_equal(rest, 3);
	assert_int_equal(parse("- -f"), 0);
	assert_int_equal(rest, 1);
	assert_int_equal(parse("'' -f"), 0);
	assert_int_equal(rest, 1);
}

static void test_help_is_asked_for(void **state)
{
	assert_int_equal(parse("--help"), 1);
	assert_int_equal(parse("-h"), 1);
	assert_int_equal(parse("-f --help --nonsense"), 1);
	assert_int_equal(parse("cmd --help"), 0);
	assert_int_equal(parse("-- --help"), 0);
}

static void test_bad_lines(void **state)
{
	check_bad("--nothing", "'--nothing'");
	check_bad("--fla", "'--fla'");
	check_bad("--flagg", "'--flagg'");
	check_bad("--=x", "unknown option");
	check_bad("-x", "'-x'");
	check_bad("-fx", "'-fx'");
	check_bad("--number", "--number needs a value: N");
	check_bad("-n", "--number needs a value: N");
	check_bad("--flag=maybe", "'maybe'");
	check_bad("-n x", "'x' is no number");
	check_bad("-n -5", "'-5' is no number");
	check_bad("-n 5x", "'5x'");
	check_bad("-n ''", "''");
	check_bad("-n 99999999999999999999", "no number");
	check_bad("--real nan", "no number");
	check_bad("--real inf", "no number");
	check_bad("--real 1e999", "no number");
	check_bad("--real 0.5x", "no number");
	check_bad("-d 5y", "no duration");
}

static void test_bounds(void **state)
{
	assert_int_equal(parse("-n 1"), 0);
	assert_int_equal(parse("-n 1000"), 0);
	check_bad("-n 0", "out of range, 1 to 1000");
	check_bad("-n 1001", "out of range");
	check_bad("-n 18446744073709551615", "out of range");
	assert_int_equal(parse("--real -1"), 0);
	check_bad("--real 1.001", "out of range, -1 to 1");
}

/* Environment beats defaults, argv beats both. */
static void test_environment(void **state)
{
	setenv("SONDE_NUMBER", "12", 1);
	setenv("SONDE_OTHER_FLAG", "false", 1);
	assert_int_equal(parse(""), 0);
	assert_int_equal(values.number, 12);
	assert_false(values.other);
	assert_int_equal(parse("-n 13 -o"), 0);
	assert_int_equal(values.number, 13);
	assert_true(values.other);
	setenv("SONDE_NUMBER", "0", 1);
	check_bad("", "out of range");
	unsetenv("SONDE_NUMBER");
	unsetenv("SONDE_OTHER_FLAG");
}

static void test_set_by_name(void **state)
{
	assert_int_equal(parse(""), 0);
	assert_int_equal(options_set(rows, &values, "number", "44", reason, sizeof(reason)), 0);
	assert_int_equal(values.number, 44);
	assert_int_equal(options_set(rows, &values, "number", "0", reason, sizeof(reason)), -EINVAL);
	assert_int_equal(values.number, 44);
	assert_int_equal(options_set(rows, &values, "numbe", "1", reason, sizeof(reason)), -ENOENT);
	assert_int_equal(options_set(rows, &values, "", "1", reason, sizeof(reason)), -ENOENT);
	assert_int_equal(options_set(rows, &values, "flag", "true", reason, sizeof(reason)), 0);
	assert_true(values.flag);
}

/* A reason is cut, never overrun. */
static void test_little_room_for_the_reason(void **state)
{
	char *argv[] = { "prog", "--an-unknown-option-with-a-long-name", NULL };
	char small[8];

	memset(small, 'x', sizeof(small));
	assert_int_equal(options_parse(rows, 2, argv, &values, &rest, small, 4), -EINVAL);
	assert_int_equal(strlen(small), 3);
	assert_int_equal(small[4], 'x');
}

static char *written(void (*write)(const struct option_row *rows, FILE *out))
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	write(rows, f);
	fclose(f);
	return text;
}

/* Each option stands in the help and in the man page, with its default. */
static void test_help_and_man_page(void **state)
{
	char *help = written(options_help), *man = written(options_man);

	assert_non_null(strstr(help, "  -n, --number N              a number [99]\n"));
	assert_non_null(strstr(help, "      --real X                a real number [0.5]\n"));
	assert_non_null(strstr(help, "  -f, --flag                  a flag\n"));
	for (const struct option_row *row = rows; row->name; row++) {
		assert_non_null(strstr(help, row->help));
		assert_non_null(strstr(man, row->help));
	}
	assert_non_null(strstr(man, ".TP\n\\fB\\-n\\fR, \\fB\\-\\-number\\fR \\fIN\\fR\n"));
	assert_non_null(strstr(man, "Default: 99."));
	free(help);
	free(man);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_letters),
		cmocka_unit_test(test_where_options_end),
		cmocka_unit_test(test_help_is_asked_for),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_set_by_name),
		cmocka_unit_test(test_little_room_for_the_reason),
		cmocka_unit_test(test_help_and_man_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
