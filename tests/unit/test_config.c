/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/config: good files, bad files with what is said of them, the example. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/config.h"
#include "base/file.h"

struct values {
	uint64_t freq, interval_ns;
	double budget;
	bool idle;
	const char *dir, *host;
};

#define FIELD(name) offsetof(struct values, name)

static const struct option_row rows[] = {
	{ "freq", 'F', OPTION_NUMBER, "HZ", "19", 1, 10000, FIELD(freq), "samples per second" },
	{ "interval", 0, OPTION_DURATION, "TIME", "10s", 1e8, 6e11, FIELD(interval_ns),
	  "how often" },
	{ "cpu-budget", 0, OPTION_REAL, "PERCENT", "1", 0.01, 100, FIELD(budget), "of the node" },
	{ "idle", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(idle), "keep idle samples" },
	{ "dir", 0, OPTION_TEXT, "DIR", "/var/lib/sonde \"x\" \\", 0, 0, FIELD(dir), "the store" },
	{ "host", 0, OPTION_TEXT, "NAME", NULL, 0, 0, FIELD(host), "name of this node" },
	{ 0 },
};

static struct arena memory;
static char reason[512];

static int set_up(void **state)
{
	arena_init(&memory, 1 << 20);
	return 0;
}

static int tear_down(void **state)
{
	arena_fini(&memory);
	return 0;
}

static int parse(const char *text, struct values *v)
{
	*v = (struct values){ .freq = 4711 };
	reason[0] = 0;
	return config_parse("f.yaml", text, strlen(text), rows, v, &memory, reason, sizeof(reason));
}

static void good(const char *text, struct values *v)
{
	if (parse(text, v))
		fail_msg("%s", reason);
}

static void test_all_types(void **state)
{
	struct values v;

	good("# a comment\n"
	     "freq: 99\n"
	     "interval: 1.5m   # behind a value\n"
	     "\n"
	     "cpu-budget: 0.5\n"
	     "idle: true\n"
	     "dir: \"/data/a b\"\n"
	     "host: 'it''s \xc3\xa9'\n",
	     &v);
	assert_int_equal(v.freq, 99);
	assert_int_equal(v.interval_ns, 90000000000);
	assert_true(v.budget == 0.5);
	assert_true(v.idle);
	assert_string_equal(v.dir, "/data/a b");
	assert_string_equal(v.host, "it's \xc3\xa9");
}

static void test_what_is_not_named_stays(void **state)
{
	struct values v;

	good("idle: no\n", &v);
	assert_int_equal(v.freq, 4711);
	assert_null(v.dir);
	good("", &v);
	good("# only a comment\n", &v);
	good("---\n", &v);
	good("--- {}\n", &v);
	good("---\n...\n", &v);
	assert_int_equal(v.freq, 4711);
	good("{ freq: 7, idle: yes }\n", &v);
	assert_int_equal(v.freq, 7);
	good("host: \"\"\n", &v);
	assert_string_equal(v.host, "");
	good("dir: |\n  two\n  lines\n", &v);
	assert_string_equal(v.dir, "two\nlines\n");
}

static void test_texts_are_copied(void **state)
{
	char text[] = "dir: /data\n";
	struct values v;

	good(text, &v);
	memset(text, 'x', sizeof(text) - 1);
	assert_string_equal(v.dir, "/data");
}

static void bad(const char *text, const char *want)
{
	struct values v;
	int err = parse(text, &v);

	if (err != -EINVAL || strncmp(reason, want, strlen(want)) != 0)
		fail_msg("%s: %d, \"%s\" in place of \"%s\"", text, err, reason, want);
	assert_null(strchr(reason, '\n'));
}

static void test_mistakes(void **state)
{
	bad("freq: 99\nfrequency: 5\n", "f.yaml:2: there is no option 'frequency'");
	bad("freq: 99\n\nfreq: 98\n", "f.yaml:3: freq is set twice");
	bad("freq: many\n", "f.yaml:1: freq: 'many' is no number");
	bad("freq: -1\n", "f.yaml:1: freq: '-1' is no number");
	bad("freq: 0\n", "f.yaml:1: freq: 0 is out of range, 1 to 10000 is allowed");
	bad("interval: soon\n", "f.yaml:1: interval: 'soon' is no duration");
	bad("interval: 1ms\n", "f.yaml:1: interval: 1ms is out of range, 0.1s to 600s is allowed");
	bad("cpu-budget: 1e9\n", "f.yaml:1: cpu-budget: 1e9 is out of range");
	bad("cpu-budget: .nan\n", "f.yaml:1: cpu-budget: '.nan' is no number");
	bad("idle: perhaps\n", "f.yaml:1: idle: 'perhaps' is neither yes nor no");
	bad("freq:\nidle: yes\n", "f.yaml:1: freq has no value");
	bad("dir: ~\n", "f.yaml:1: dir has no value");
	bad("dir: null\n", "f.yaml:1: dir has no value");
	bad("dir: \"a\\0b\"\n", "f.yaml:1: the value of dir holds a NUL");
	bad("fr\x1b: 1\n", "f.yaml:1: not YAML");
	bad("\"fr\\e\\n\": 1\n", "f.yaml:1: there is no option 'fr?"
				 "?'");
}

static void test_shapes(void **state)
{
	bad("freq: [1, 2]\n", "f.yaml:1: the value of freq is a list");
	bad("freq: 1\ndir:\n  a: b\n", "f.yaml:3: the value of dir is a mapping");
	bad("dir: &x a\nhost: *x\n", "f.yaml:2: the value of host is an alias");
	bad("? [freq]\n: 1\n", "f.yaml:1: an option's name is wanted");
	bad("- freq\n", "f.yaml:1: lines 'option: value' are wanted");
	bad("just words\n", "f.yaml:1: lines 'option: value' are wanted");
	bad("freq: 1\n---\nfreq: 2\n", "f.yaml:2: a second document");
	bad("freq: 1\n  idle: yes\n", "f.yaml:1: freq: '1 idle' is no number");
	bad("freq: \"1\n", "f.yaml:2: not YAML");
	bad("\tfreq: 1\n", "f.yaml:1: not YAML");
	bad("dir: \xff\xfe\n", "f.yaml:1: not YAML");
	bad("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "f.yaml:1: lines 'option: value' are wanted");
}

static void test_size(void **state)
{
	size_t max = 64 * 1024;
	char *text = malloc(max + 2);
	struct values v = { 0 };

	memset(text, '#', max + 1);
	text[max + 1] = 0;
	assert_int_equal(parse(text, &v), -EFBIG);
	assert_non_null(strstr(reason, "f.yaml: larger than 64 KiB"));
	text[max] = 0;
	assert_int_equal(parse(text, &v), 0);
	free(text);
}

static void test_memory_bound(void **state)
{
	struct arena small;
	struct values v;
	static const char text[] = "dir: 0123456789\n";

	arena_init(&small, 4);
	assert_int_equal(config_parse("f.yaml", text, sizeof(text) - 1, rows, &v, &small, reason,
				      sizeof(reason)),
			 -EINVAL);
	assert_string_equal(reason, "f.yaml:1: out of memory");
	arena_fini(&small);
}

static void test_files(void **state)
{
	char path[] = "/tmp/sonde-config-XXXXXX";
	int fd = mkstemp(path);
	struct values v = { 0 };

	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, "freq: 5\nidle: x\n", 16), 0);
	assert_int_equal(config_load(path, rows, &v, &memory, reason, sizeof(reason)), -EINVAL);
	assert_ptr_equal(strstr(reason, path), reason);
	assert_non_null(strstr(reason, ":2: idle"));
	assert_int_equal(ftruncate(fd, 8), 0);
	assert_int_equal(config_load(path, rows, &v, &memory, reason, sizeof(reason)), 0);
	assert_int_equal(v.freq, 5);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(config_load(path, rows, &v, &memory, reason, sizeof(reason)), 0);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_int_equal(config_load(path, rows, &v, &memory, reason, sizeof(reason)), -EFBIG);
	close(fd);
	unlink(path);
	assert_int_equal(config_load(path, rows, &v, &memory, reason, sizeof(reason)), -ENOENT);
	assert_non_null(strstr(reason, "No such file"));
	assert_int_equal(config_load("/", rows, &v, &memory, reason, sizeof(reason)), -EISDIR);
}

/* Written out and read again, each option has its default. */
static void test_example(void **state)
{
	char text[4096] = "";
	FILE *out = fmemopen(text, sizeof(text), "w");
	struct values v;

	config_example(rows, out);
	fclose(out);
	assert_non_null(strstr(text, "# samples per second\n# from 1 to 10000\nfreq: 19\n"));
	assert_non_null(strstr(text, "# how often\n# from 0.1s to 600s\ninterval: 10s\n"));
	assert_non_null(strstr(text, "\n\n# keep idle samples\nidle: no\n"));
	assert_non_null(strstr(text, "\n# name of this node\n#host: NAME\n"));
	good(text, &v);
	assert_int_equal(v.freq, 19);
	assert_int_equal(v.interval_ns, 10000000000);
	assert_true(v.budget == 1);
	assert_false(v.idle);
	assert_string_equal(v.dir, rows[4].fallback);
	assert_null(v.host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_types, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_not_named_stays, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_texts_are_copied, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_mistakes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_shapes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_size, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_memory_bound, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_example, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
