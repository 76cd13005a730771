/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of base/thread. */
#include "base/thread.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void *own_mask(void *context)
{
	pthread_sigmask(SIG_SETMASK, NULL, context);
	return context;
}

static void test_takes_no_signals(void **state)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD, SIGPIPE };
	sigset_t mask, before, after;
	pthread_t thread;

	sigemptyset(&mask);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(thread_start(&thread, own_mask, &mask), 0);
	pthread_join(thread, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		assert_int_equal(sigismember(&mask, signals[i]), 1);
		/* That of who starts it is as it was. */
		assert_int_equal(sigismember(&after, signals[i]),
				 sigismember(&before, signals[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_takes_no_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
