/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for locks by who asked for them, and idle workers in and out of views. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/lock_view.h"
#include "cli/report.h"
#include "proto/compress.h"
#include "proto/pprof.h"
#include "tests/unit/profile_text.h"

#define INPUT "tests/golden/report/off.profile"

static struct buf out;

static int setup(void **state)
{
	buf_init(&out, 1 << 20);
	return 0;
}

static int teardown(void **state)
{
	buf_fini(&out);
	return 0;
}

static const char *view(const struct lock_view *how)
{
	struct profile *p = profile_from_text(INPUT);

	out.len = 0;
	assert_int_equal(lock_view_print(p, how, &out), 0);
	profile_free(p);
	return buf_cstr(&out);
}

static void locks_by_their_callers(void **state)
{
	const char *text = view(&(struct lock_view){ 0 });
	const char *update = strstr(text, "update_row (app.c:42)"),
		   *read = strstr(text, "read_row (app.c:50)");

	assert_non_null(update);
	assert_non_null(read);
	assert_true(update < read); /* the longest time first */
	assert_non_null(strstr(text, "      2.00 s       400     5.00 ms     9.00 ms  app"));
	assert_non_null(strstr(text, "pthread_mutex_lock"));
	assert_non_null(strstr(text, "[no stack]"));
	/* Neither other reasons, nor time on the run queue, nor workers without work. */
	assert_null(strstr(text, "wait_for_work"));
	assert_null(strstr(text, "loop"));
	assert_non_null(strstr(view(&(struct lock_view){ .idle = true }), "wait_for_work"));
}

static void rows_and_filters(void **state)
{
	const char *text = view(&(struct lock_view){ .rows = 1 });

	assert_non_null(strstr(text, "update_row"));
	assert_null(strstr(text, "read_row"));
	assert_non_null(strstr(text, "2 more"));
	text = view(&(struct lock_view){ .comm = "other" });
	assert_null(strstr(text, "update_row"));
	assert_non_null(strstr(view(&(struct lock_view){ .pid = "100" }), "update_row"));
	assert_null(strstr(view(&(struct lock_view){ .pid = "101" }), "update_row"));
}

static void other_profiles_are_refused(void **state)
{
	struct profile *p = profile_from_text("tests/golden/report/node.profile");

	assert_int_equal(lock_view_print(p, &(struct lock_view){ 0 }, &out), -EINVAL);
	profile_free(p);
}

static char *report(const struct report_options *options)
{
	char path[] = "/tmp/sonde-lock-view-XXXXXX", *text = NULL;
	struct profile *p = profile_from_text(INPUT);
	struct report_options how = *options;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);
	int fd = mkstemp(path);

	assert_true(fd >= 0 && file);
	out.len = 0;
	assert_int_equal(pprof_write(p, buf_sink(&out)), 0);
	assert_int_equal(write(fd, out.data, out.len), (ssize_t)out.len);
	close(fd);
	how.path = path;
	assert_int_equal(report_run(&how, file, stderr), 0);
	fclose(file);
	unlink(path);
	profile_free(p);
	return text;
}

static void idle_workers_are_hidden_and_told(void **state)
{
	char *text = report(&(struct report_options){ .sort = "reason" });

	assert_null(strstr(text, " poll"));
	assert_non_null(strstr(text, "2.02 s  lock"));
	assert_non_null(strstr(text, "without waits of idle workers"));
	free(text);
	text = report(&(struct report_options){ .sort = "reason", .idle = true });
	assert_non_null(strstr(text, " poll"));
	assert_non_null(strstr(text, "8.02 s  lock"));
	assert_null(strstr(text, "without waits of idle workers"));
	free(text);
	text = report(&(struct report_options){ .sort = "state", .reason = "woken" });
	assert_non_null(strstr(text, "runnable"));
	assert_null(strstr(text, "blocked"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(locks_by_their_callers, setup, teardown),
		cmocka_unit_test_setup_teardown(rows_and_filters, setup, teardown),
		cmocka_unit_test_setup_teardown(other_profiles_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(idle_workers_are_hidden_and_told, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
