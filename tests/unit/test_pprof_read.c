/* SPDX-License-Identifier: Apache-2.0 */
/* The reader on files of other writers, and on those that must be refused with a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>

#include "base/file.h"
#include "proto/compress.h"
#include "proto/pprof.h"
#include "proto/pprof_fields.h"
#include "proto/wire.h"

enum { ROOMY = 64 << 20, BIG_ID = 5000000 };

/*
 * A file made by hand. Numbers of fields come in pairs (field, value), ended by 0.
 */
struct file {
	struct buf bytes;
};

static void put(struct file *f, uint32_t number, const struct buf *message)
{
	wire_put_bytes(&f->bytes, number, message->data, message->len);
}

static void put_numbers(struct file *f, uint32_t number, ...)
{
	struct buf message;
	va_list args;
	uint32_t field;

	buf_init(&message, 4096);
	va_start(args, number);
	while ((field = va_arg(args, uint32_t)) != 0)
		wire_put_uint(&message, field, va_arg(args, uint64_t));
	va_end(args);
	put(f, number, &message);
	buf_fini(&message);
}

#define NUMBERS(f, number, ...) put_numbers(f, number, __VA_ARGS__, 0)
#define U(x) ((uint64_t)(x))

static void put_string(struct file *f, const char *text)
{
	wire_put_bytes(&f->bytes, PROFILE_STRING_TABLE, text, strlen(text));
}

enum { S_EMPTY, S_CPU, S_NS, S_NAME, S_FILE, S_KEY };

static void put_strings(struct file *f)
{
	static const char *const strings[] = { "", "cpu", "nanoseconds", "ma\nin", "/bin/app", "key" };

	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		put_string(f, strings[i]);
}

/* A valid file with one sample: sparse ids, numbers not packed, strings at the end. */
static void put_body(struct file *f)
{
	struct buf location, line;

	NUMBERS(f, PROFILE_SAMPLE_TYPE, VALUE_TYPE_TYPE, U(S_CPU), VALUE_TYPE_UNIT, U(S_NS));
	NUMBERS(f, PROFILE_SAMPLE, SAMPLE_LOCATION_ID, U(BIG_ID), SAMPLE_VALUE, U(7));
	buf_init(&location, 100);
	buf_init(&line, 100);
	wire_put_uint(&line, LINE_FUNCTION_ID, 99);
	wire_put_uint(&line, LINE_LINE, 12);
	wire_put_uint(&line, 3, 5); /* a column: not kept */
	wire_put_uint(&location, LOCATION_ID, BIG_ID);
	wire_put_uint(&location, LOCATION_MAPPING_ID, 7);
	wire_put_uint(&location, LOCATION_ADDRESS, 0x1234);
	wire_put_bytes(&location, LOCATION_LINE, line.data, line.len);
	put(f, PROFILE_LOCATION, &location);
	buf_fini(&location);
	buf_fini(&line);
	NUMBERS(f, PROFILE_MAPPING, MAPPING_ID, U(7), MAPPING_FILENAME, U(S_FILE), 9, U(1));
	NUMBERS(f, PROFILE_FUNCTION, FUNCTION_ID, U(99), FUNCTION_NAME, U(S_NAME));
	wire_put_uint(&f->bytes, PROFILE_COMMENT, S_KEY); /* not packed */
	wire_put_uint(&f->bytes, 200, 1);                 /* unknown field */
	wire_put_uint(&f->bytes, PROFILE_TIME_NANOS, 5);
}

static void file_init(struct file *f)
{
	buf_init(&f->bytes, ROOMY);
}

static void expect_refused(struct file *f, const char *why)
{
	struct profile *p = NULL;
	char reason[256] = "";
	int err = pprof_read(f->bytes.data, f->bytes.len, ROOMY, &p, reason, sizeof(reason));

	assert_int_equal(err, -EBADMSG);
	assert_null(p);
	if (!strstr(reason, why))
		fail_msg("expected '%s', got '%s'", why, reason);
	assert_null(strchr(reason, '\n'));
	buf_fini(&f->bytes);
}

static struct profile *expect_read(struct file *f)
{
	struct profile *p = NULL;
	char reason[256];

	if (pprof_read(f->bytes.data, f->bytes.len, ROOMY, &p, reason, sizeof(reason)))
		fail_msg("%s", reason);
	buf_fini(&f->bytes);
	return p;
}

static void a_foreign_file_is_read(void **state)
{
	struct file f;
	struct profile *p;

	file_init(&f);
	put_body(&f);
	put_strings(&f);
	p = expect_read(&f);
	assert_int_equal(p->sample_count, 1);
	assert_int_equal(p->samples[0].locations[0], 1);
	assert_int_equal(p->samples[0].values[0], 7);
	assert_int_equal(p->locations[0].mapping_id, 1);
	assert_int_equal(p->locations[0].address, 0x1234);
	assert_int_equal(p->locations[0].lines[0].line, 12);
	assert_string_equal(profile_text(p, p->functions[0].name), "ma\\x0ain");
	assert_string_equal(profile_text(p, p->mappings[0].filename), "/bin/app");
	assert_string_equal(profile_text(p, p->comments[0]), "key");
	assert_int_equal(p->time_ns, 5);
	profile_free(p);
}

/* One row per way to be wrong: what is put behind a valid file. */
static void broken_parts_are_refused(void **state)
{
	struct file f;

#define REFUSED(why, ...)                                                                          \
	do {                                                                                       \
		file_init(&f);                                                                     \
		put_body(&f);                                                                      \
		put_strings(&f);                                                                   \
		__VA_ARGS__;                                                                       \
		expect_refused(&f, why);                                                           \
	} while (0)

	REFUSED("location 3", NUMBERS(&f, PROFILE_SAMPLE, SAMPLE_LOCATION_ID, U(3), SAMPLE_VALUE, U(7)));
	REFUSED("2 values for 1", NUMBERS(&f, PROFILE_SAMPLE, SAMPLE_VALUE, U(7), SAMPLE_VALUE, U(7)));
	REFUSED("0 values for 1", NUMBERS(&f, PROFILE_SAMPLE, SAMPLE_LOCATION_ID, U(BIG_ID)));
	REFUSED("negative", NUMBERS(&f, PROFILE_SAMPLE, SAMPLE_VALUE, UINT64_MAX));
	REFUSED("mapping id 7 comes twice", NUMBERS(&f, PROFILE_MAPPING, MAPPING_ID, U(7)));
	REFUSED("a mapping has id 0", NUMBERS(&f, PROFILE_MAPPING, MAPPING_START, U(7)));
	REFUSED("function id 99 comes twice", NUMBERS(&f, PROFILE_FUNCTION, FUNCTION_ID, U(99)));
	REFUSED("a function has id 0", NUMBERS(&f, PROFILE_FUNCTION, FUNCTION_NAME, U(1)));
	REFUSED("location id 5000000 comes twice", NUMBERS(&f, PROFILE_LOCATION, LOCATION_ID, U(BIG_ID)));
	REFUSED("a location has id 0", NUMBERS(&f, PROFILE_LOCATION, LOCATION_ADDRESS, U(1)));
	REFUSED("string 6 of 6", NUMBERS(&f, PROFILE_FUNCTION, FUNCTION_ID, U(5), FUNCTION_NAME, U(6)));
	REFUSED("string 1844", NUMBERS(&f, PROFILE_MAPPING, MAPPING_ID, U(5), MAPPING_BUILD_ID, UINT64_MAX));
	REFUSED("function 0", buf_put(&f.bytes, "\x22\x04\x08\x05\x22\x00", 6));
	REFUSED("function 3", buf_put(&f.bytes, "\x22\x06\x08\x05\x22\x02\x08\x03", 8));
	REFUSED("several profiles", wire_put_uint(&f.bytes, PROFILE_TIME_NANOS, 6));
	REFUSED("wrong wire type", wire_put_uint(&f.bytes, PROFILE_SAMPLE, 6));
	REFUSED("wrong wire type", wire_put_bytes(&f.bytes, PROFILE_PERIOD, "", 0));
	REFUSED("damaged", buf_put(&f.bytes, "\x12\x7f\x01", 3));
	REFUSED("sample 2 is damaged", wire_put_bytes(&f.bytes, PROFILE_SAMPLE, "\x0a\x05\x01", 3));
	REFUSED("damaged stack", wire_put_bytes(&f.bytes, PROFILE_SAMPLE, "\x0a\x01\x80", 3));
	REFUSED("damaged label", wire_put_bytes(&f.bytes, PROFILE_SAMPLE, "\x18\x01", 2));
	REFUSED("damaged comment", wire_put_bytes(&f.bytes, PROFILE_COMMENT, "\x80", 1));
#undef REFUSED
}

static void what_is_no_profile_is_refused(void **state)
{
	struct file f;

	file_init(&f);
	expect_refused(&f, "empty");
	file_init(&f);
	buf_put_str(&f.bytes, "hello, world\n");
	expect_refused(&f, "not a pprof profile");
	file_init(&f);
	buf_put_str(&f.bytes, "PERFILE2");
	expect_refused(&f, "not a pprof profile");
	file_init(&f);
	put_body(&f);
	expect_refused(&f, "no string table");
	file_init(&f);
	put_string(&f, "cpu");
	put_body(&f);
	expect_refused(&f, "string 0 is not empty");
	file_init(&f);
	put_string(&f, "");
	wire_put_bytes(&f.bytes, PROFILE_SAMPLE, NULL, 0);
	expect_refused(&f, "no sample types");
	file_init(&f);
	put_strings(&f);
	for (int i = 0; i < 9; i++)
		NUMBERS(&f, PROFILE_SAMPLE_TYPE, VALUE_TYPE_TYPE, U(S_CPU));
	expect_refused(&f, "more than 8 sample types");
}

/* Accepted by pprof, so by us. */
static void odd_but_valid_files_are_read(void **state)
{
	struct file f;
	struct profile *p;

	file_init(&f);
	put_string(&f, "");
	p = expect_read(&f);
	assert_int_equal(p->sample_count, 0);
	profile_free(p);

	/* A mapping that does not exist is none; an empty stack; strings that repeat. */
	file_init(&f);
	put_body(&f);
	put_strings(&f);
	put_string(&f, "cpu");
	NUMBERS(&f, PROFILE_LOCATION, LOCATION_ID, U(1), LOCATION_MAPPING_ID, U(55));
	NUMBERS(&f, PROFILE_SAMPLE, SAMPLE_VALUE, U(1));
	p = expect_read(&f);
	assert_int_equal(p->locations[1].mapping_id, 0);
	assert_int_equal(p->samples[1].location_count, 0);
	profile_free(p);
}

static void a_cut_file_is_refused_or_shorter(void **state)
{
	char reason[256];
	struct file f;

	file_init(&f);
	put_strings(&f);
	put_body(&f);
	for (size_t cut = 0; cut < f.bytes.len; cut++) {
		struct profile *p = NULL;
		uint8_t *copy = malloc(cut + 1); /* so that ASan sees reads past the end */

		assert_non_null(copy);
		memcpy(copy, f.bytes.data, cut);
		reason[0] = 0;
		if (pprof_read(copy, cut, ROOMY, &p, reason, sizeof(reason)) == 0)
			profile_free(p);
		else
			assert_true(reason[0] != 0);
		free(copy);
	}
	buf_fini(&f.bytes);
}

static void memory_is_bounded(void **state)
{
	struct profile *p = NULL;
	char reason[256];
	struct file f;

	file_init(&f);
	put_strings(&f);
	put_body(&f);
	for (unsigned i = 1; i < 100000; i++)
		NUMBERS(&f, PROFILE_LOCATION, LOCATION_ID, U(i), LOCATION_ADDRESS, U(i));
	assert_int_equal(pprof_read(f.bytes.data, f.bytes.len, 4 << 20, &p, reason, sizeof(reason)),
			 -EFBIG);
	assert_string_equal(reason, "needs more than 4 MiB of memory");
	assert_int_equal(pprof_read(f.bytes.data, f.bytes.len, 1000, &p, reason, sizeof(reason)),
			 -EFBIG);
	assert_int_equal(pprof_read(f.bytes.data, f.bytes.len, ROOMY, &p, reason, sizeof(reason)), 0);
	profile_free(p);
	buf_fini(&f.bytes);
}

static const char GO_PROGRAM[] =
	"package main\n"
	"import (\"os\"; \"runtime/pprof\"; \"time\")\n"
	"//go:noinline\n"
	"func burn(n int) (s int) { for i := 0; i < n; i++ { s += i * i % 7 }; return }\n"
	"func main() { f, _ := os.Create(os.Args[1]); pprof.StartCPUProfile(f)\n"
	" for t := time.Now(); time.Since(t) < 600*time.Millisecond; { burn(100000) }\n"
	" pprof.StopCPUProfile(); f.Close() }\n";

static bool make_go_profile(const char *dir)
{
	char command[512], path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/main.go", dir);
	f = fopen(path, "w");
	if (!f)
		return false;
	fputs(GO_PROGRAM, f);
	fclose(f);
	snprintf(command, sizeof(command),
		 "cd %s && HOME=%s GOCACHE=${GOCACHE:-$(go env GOCACHE 2>/dev/null)} "
		 "go run main.go out.pb.gz >/dev/null 2>&1", dir, dir);
	return system(command) == 0;
}

static void a_real_go_profile_is_read(void **state)
{
	char dir[] = "/tmp/test_pprof_read_XXXXXX", path[128], command[128], reason[256];
	struct profile *p = NULL;
	struct buf file, plain;
	bool found = false, made;

	assert_non_null(mkdtemp(dir));
	made = make_go_profile(dir);
	buf_init(&file, ROOMY);
	buf_init(&plain, ROOMY);
	snprintf(path, sizeof(path), "%s/out.pb.gz", dir);
	if (made)
		assert_int_equal(file_read_path(path, &file), 0);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
	if (!made) {
		print_message("# skip: no `go` here that can run a program\n");
		skip();
	}
	assert_int_equal(compress_detect(file.data, file.len), COMPRESS_GZIP);
	assert_int_equal(decompress(COMPRESS_GZIP, file.data, file.len, &plain), 0);
	if (pprof_read(plain.data, plain.len, ROOMY, &p, reason, sizeof(reason)))
		fail_msg("%s", reason);
	assert_int_equal(p->type_count, 2);
	assert_string_equal(profile_text(p, p->types[1].unit), "nanoseconds");
	assert_true(p->duration_ns > 500000000);
	for (size_t i = 0; i < p->function_count; i++)
		found |= strcmp(profile_text(p, p->functions[i].name), "main.burn") == 0;
	assert_true(found);
	profile_free(p);
	buf_fini(&file);
	buf_fini(&plain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_foreign_file_is_read),
		cmocka_unit_test(broken_parts_are_refused),
		cmocka_unit_test(what_is_no_profile_is_refused),
		cmocka_unit_test(odd_but_valid_files_are_read),
		cmocka_unit_test(a_cut_file_is_refused_or_shorter),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(a_real_go_profile_is_read),
	};

	return cmocka_run_group_tests_name("pprof_read", tests, NULL, NULL);
}
