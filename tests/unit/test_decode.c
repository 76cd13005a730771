/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/collect/decode: no length and no count of a record is believed. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/collect/events.h"

enum { UNTOUCHED = 4711 };

static union {
	struct sonde_record head;
	struct sonde_user_stack user;
	struct sonde_kernel_stack kernel;
	struct sonde_process process;
	struct sonde_thread_name thread;
	struct sonde_cgroup cgroup;
	struct sonde_file file;
} record;

static void begin(enum sonde_record_type type, size_t size)
{
	memset(&record, 0, sizeof(record));
	record.head = (struct sonde_record){ .type = type, .size = (uint32_t)size, .id = 77 };
}

/* Decodes a copy that ends where the record does, so that the sanitizer sees every byte read. */
static int decode(size_t size, struct event *ret_event)
{
	static void *copy;
	struct event event = { .id = UNTOUCHED };
	int err;

	free(copy);
	copy = malloc(size ? size : 1);
	memcpy(copy, &record, size);
	err = event_decode(copy, size, &event);
	if (err)
		assert_int_equal(event.id, UNTOUCHED);
	else
		assert_int_equal(event.id, 77);
	if (ret_event)
		*ret_event = event;
	return err;
}

static void test_user_stack(void **state)
{
	const size_t size = offsetof(struct sonde_user_stack, frames) + 2 * sizeof(struct sonde_frame);
	struct event event;

	begin(SONDE_RECORD_USER_STACK, size);
	record.user.count = 2;
	record.user.frames[1] = (struct sonde_frame){ SONDE_FRAME_ANON, 123 };
	assert_int_equal(decode(size, &event), 0);
	assert_int_equal(event.type, SONDE_RECORD_USER_STACK);
	assert_int_equal(event.user_stack.count, 2);
	assert_int_equal(event.user_stack.frames[1].off, 123);
	record.user.count = 3;
	assert_int_equal(decode(size, NULL), -EBADMSG);
	record.user.count = SONDE_MAX_FRAMES + 1;
	record.head.size = sizeof(record.user);
	assert_int_equal(decode(sizeof(record.user), NULL), -EBADMSG);
	record.user.count = SONDE_MAX_FRAMES;
	assert_int_equal(decode(sizeof(record.user), NULL), 0);
	record.user.count = UINT32_MAX; /* times 16 it is small again in 32 bits */
	assert_int_equal(decode(sizeof(record.user), NULL), -EBADMSG);
	begin(SONDE_RECORD_USER_STACK, 20);
	assert_int_equal(decode(20, NULL), -EBADMSG);
}

static void test_kernel_stack(void **state)
{
	const size_t size = offsetof(struct sonde_kernel_stack, addrs) + 8;
	struct event event;

	begin(SONDE_RECORD_KERNEL_STACK, size);
	record.kernel.count = 1;
	record.kernel.addrs[0] = 99;
	assert_int_equal(decode(size, &event), 0);
	assert_int_equal(event.kernel_stack.count, 1);
	assert_int_equal(event.kernel_stack.addrs[0], 99);
	record.kernel.count = 2;
	assert_int_equal(decode(size, NULL), -EBADMSG);
	record.head.size = sizeof(record.kernel);
	record.kernel.count = SONDE_MAX_KERNEL_FRAMES + 1;
	assert_int_equal(decode(sizeof(record.kernel), NULL), -EBADMSG);
}

/* The kernel may pad: what lies behind the record's own size is no part of it. */
static void test_sizes(void **state)
{
	struct event event;

	begin(SONDE_RECORD_PROCESS, sizeof(struct sonde_process));
	record.process.tgid = 5;
	assert_int_equal(decode(sizeof(struct sonde_process) + 8, &event), 0);
	assert_int_equal(event.process->tgid, 5);
	assert_int_equal(decode(sizeof(struct sonde_process) - 1, NULL), -EBADMSG);
	record.head.size = sizeof(struct sonde_process) - 1;
	assert_int_equal(decode(sizeof(struct sonde_process), NULL), -EBADMSG);
	record.head.size = UINT32_MAX;
	assert_int_equal(decode(sizeof(struct sonde_process), NULL), -EBADMSG);
	record.head.size = 0;
	assert_int_equal(decode(sizeof(struct sonde_process), NULL), -EBADMSG);
	for (size_t size = 0; size < sizeof(struct sonde_record); size++)
		assert_int_equal(decode(size, NULL), -EBADMSG);
}

static void test_types(void **state)
{
	begin(SONDE_RECORD_THREAD_NAME, sizeof(record));
	for (uint32_t type = 0; type < 20; type++) {
		record.head.type = type;
		assert_int_equal(decode(sizeof(record), NULL),
				 type >= SONDE_RECORD_USER_STACK && type <= SONDE_RECORD_FILE
					 ? 0
					 : -EBADMSG);
	}
	record.head.type = UINT32_MAX;
	assert_int_equal(decode(sizeof(record), NULL), -EBADMSG);
}

/* Sizes and counts that a path of these bytes must not have. */
static int decode_names(const char *names, size_t len, uint32_t size, uint32_t count,
			uint32_t v1_count, struct event *ret_event)
{
	const size_t whole = offsetof(struct sonde_cgroup, names) + len;

	begin(SONDE_RECORD_CGROUP, whole);
	memcpy(record.cgroup.names, names, len);
	record.cgroup.names_size = size;
	record.cgroup.v2_count = count;
	record.cgroup.v1_count = v1_count;
	return decode(whole, ret_event);
}

static void test_names(void **state)
{
	struct event event;

	assert_int_equal(decode_names("ab\0c\0", 5, 5, 2, 0, &event), 0);
	assert_int_equal(event.cgroup.v2.count, 2);
	assert_string_equal(event.cgroup.v2.names, "ab");
	assert_int_equal(event.cgroup.v1.count, 0);
	assert_int_equal(event.cgroup.v1.size, 0);
	assert_int_equal(decode_names("ab\0c\0", 5, 5, 3, 0, NULL), -EBADMSG);
	assert_int_equal(decode_names("ab\0c\0", 5, 5, 1, 0, NULL), -EBADMSG);
	assert_int_equal(decode_names("ab\0c\0", 5, 6, 2, 0, NULL), -EBADMSG);
	assert_int_equal(decode_names("ab\0c\0", 5, 4, 2, 0, NULL), -EBADMSG); /* no NUL at the end */
	assert_int_equal(decode_names("abcd", 4, 4, 1, 0, NULL), -EBADMSG);
	assert_int_equal(decode_names("", 0, 0, 0, 0, NULL), 0);
	assert_int_equal(decode_names("", 0, 0, 1, 0, NULL), -EBADMSG);
	assert_int_equal(decode_names("", 0, UINT32_MAX, 0, 0, NULL), -EBADMSG);
	/* Too many names even where they fit. */
	record.head.type = SONDE_RECORD_CGROUP;
	assert_int_equal(decode_names((const char[64]){ 0 }, 64, SONDE_MAX_PATH_NAMES,
				      SONDE_MAX_PATH_NAMES, 0, NULL), 0);
	assert_int_equal(decode_names((const char[64]){ 0 }, 64, SONDE_MAX_PATH_NAMES + 1,
				      SONDE_MAX_PATH_NAMES + 1, 0, NULL), -EBADMSG);
}

/* The names under v1 follow those under v2. */
static void test_two_paths(void **state)
{
	struct event event;

	assert_int_equal(decode_names("ab\0\0c\0d\0", 8, 8, 2, 2, &event), 0);
	assert_int_equal(event.cgroup.v2.size, 4);
	assert_int_equal(event.cgroup.v2.count, 2);
	assert_int_equal(event.cgroup.v1.size, 4);
	assert_int_equal(event.cgroup.v1.count, 2);
	assert_string_equal(event.cgroup.v1.names, "c");
	assert_int_equal(decode_names("ab\0\0c\0d\0", 8, 8, 0, 4, &event), 0);
	assert_int_equal(event.cgroup.v2.count, 0);
	assert_int_equal(event.cgroup.v1.count, 4);
	assert_int_equal(decode_names("ab\0\0c\0d\0", 8, 8, 2, 1, NULL), -EBADMSG);
	assert_int_equal(decode_names("ab\0\0c\0d\0", 8, 8, 2, 3, NULL), -EBADMSG);
	assert_int_equal(decode_names("ab\0\0c\0d\0", 8, 8, UINT32_MAX, 0, NULL), -EBADMSG);
	assert_int_equal(decode_names("ab\0\0c\0d", 7, 7, 2, 2, NULL), -EBADMSG);
	assert_int_equal(decode_names("ab", 2, 2, 1, 0, NULL), -EBADMSG);
}

static void test_file(void **state)
{
	const size_t size = offsetof(struct sonde_file, names) + 4;
	struct event event;

	begin(SONDE_RECORD_FILE, size);
	memcpy(record.file.names, "a\0b", 4);
	record.file.names_size = 4;
	record.file.name_count = 2;
	record.file.ino = 9;
	assert_int_equal(decode(size, &event), 0);
	assert_int_equal(event.file.record->ino, 9);
	assert_int_equal(event.file.path.count, 2);
	assert_int_equal(decode(size - 1, NULL), -EBADMSG);
}

/* ---- joining ---- */

#define PATH(text, n) { .names = text, .size = sizeof(text) - 1, .count = n }

static void check_join(struct path_names path, const char *want)
{
	char out[PATH_MAX];

	memset(out, 'x', sizeof(out));
	assert_int_equal(path_names_join(&path, out, sizeof(out)), strlen(want));
	assert_string_equal(out, want);
}

static void test_join(void **state)
{
	check_join((struct path_names)PATH("sh\0bin\0usr\0", 3), "/usr/bin/sh");
	check_join((struct path_names)PATH("a.service\0system.slice\0\0", 3),
		   "/system.slice/a.service");
	check_join((struct path_names)PATH("a\0\0b\0", 3), "/b//a");
	check_join((struct path_names)PATH("\0", 1), "");
	check_join((struct path_names)PATH("", 0), "");
}

/* Cut at whole names, outermost first, and always ended. */
static void test_join_into_little_room(void **state)
{
	const struct path_names path = PATH("sh\0bin\0usr\0", 3);

	for (size_t size = 0; size < 14; size++) {
		char *out = malloc(size ? size : 1);
		size_t len = path_names_join(&path, out, size);

		if (size) {
			assert_true(len < size);
			assert_int_equal(strlen(out), len);
			assert_memory_equal(out, "/usr/bin/sh", len);
			assert_true(len == 0 || len == 4 || len == 8 || len == 11);
		}
		free(out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_user_stack),
		cmocka_unit_test(test_kernel_stack),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_two_paths),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_join_into_little_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
