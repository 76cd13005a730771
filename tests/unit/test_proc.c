/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of base/proc. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/proc.h"

enum { UNTOUCHED = 4711 };

#define REST " S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654321 2 3\n"

static void check(const char *text, int want_err, uint64_t want)
{
	uint64_t ticks = UNTOUCHED;

	assert_int_equal(proc_stat_start_ticks(text, strlen(text), &ticks), want_err);
	assert_int_equal(ticks, want_err ? UNTOUCHED : want);
}

static void test_field_22(void **state)
{
	check("17 (sh)" REST, 0, 987654321);
}

static void test_names_that_look_like_fields(void **state)
{
	check("17 (a) S 1 2 3 (b) c)" REST, 0, 987654321);
	check("17 ())" REST, 0, 987654321);
	check("17 (new\nline)" REST, 0, 987654321);
	check("17 (\xff\xfe)" REST, 0, 987654321);
	check("17 ()" REST, 0, 987654321);
}

static void test_nonsense(void **state)
{
	check("", -EBADMSG, 0);
	check("17 sh" REST, -EBADMSG, 0);
	check("17 (sh)", -EBADMSG, 0);
	check("17 (sh) S 1 1 1 0", -EBADMSG, 0);
	check("17 (sh) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 ", -EBADMSG, 0);
	check("17 (sh) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 x", -EBADMSG, 0);
}

static void test_own_process(void **state)
{
	uint64_t first = 0, again = 0;

	assert_int_equal(proc_start_ticks("/proc", (uint32_t)getpid(), &first), 0);
	assert_int_equal(proc_start_ticks("/proc", (uint32_t)getpid(), &again), 0);
	assert_true(first > 0);
	assert_int_equal(first, again);
}

static void test_no_such_process(void **state)
{
	uint64_t ticks = UNTOUCHED;
	char root[400];

	assert_int_equal(proc_start_ticks("/proc", 0x7fffffff, &ticks), -ESRCH);
	assert_int_equal(proc_start_ticks("/nonexistent", 1, &ticks), -ESRCH);
	/* Cut at the size of a path this would name the file of another process. */
	memset(root, '/', sizeof(root));
	memcpy(root + sizeof(root) - 5, "proc", 5);
	assert_int_equal(proc_start_ticks(root, 1, &ticks), -ENAMETOOLONG);
	assert_int_equal(ticks, UNTOUCHED);
}

static void *own_tid(void *tid)
{
	*(uint32_t *)tid = (uint32_t)gettid();
	assert_int_equal(proc_is_process("/proc", (uint32_t)gettid()), -ECHILD);
	return NULL;
}

static void test_process_or_thread(void **state)
{
	pthread_t thread;
	uint32_t tid = 0;

	assert_int_equal(proc_is_process("/proc", (uint32_t)getpid()), 0);
	assert_int_equal(proc_is_process("/proc", 0x7fffffff), -ESRCH);
	assert_int_equal(proc_is_process("/nonexistent", 1), -ESRCH);
	assert_int_equal(pthread_create(&thread, NULL, own_tid, &tid), 0);
	pthread_join(thread, NULL);
	assert_int_not_equal(tid, getpid());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_field_22),
		cmocka_unit_test(test_names_that_look_like_fields),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_own_process),
		cmocka_unit_test(test_no_such_process),
		cmocka_unit_test(test_process_or_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
