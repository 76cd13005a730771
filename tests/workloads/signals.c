/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals plain|alt|nested [-t seconds]: burns CPU in signal handlers that interrupt
 * signal_interrupted; on the same stack, on an alternative one, and a handler in a handler there.
 * Only POSIX, so that musl-gcc builds it too (U-04).
 */
#include <string.h>
#include <sys/time.h>

#include "burn.h"

#define APART __attribute__((noipa))

/* Keeps the call before it from being a jump. */
#define NO_TAIL_CALL(x) __asm__ volatile("" ::"r"(x))

static uint64_t end;
static int nested;
static uint8_t alt_stack[1 << 16];

APART uint64_t signal_burn(uint64_t x);
APART uint64_t signal_burn(uint64_t x)
{
	for (int i = 0; i < 20000; i++) {
		x = x * 0x9e3779b97f4a7c15ULL + 1;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

/* About 5 ms. */
APART void signal_work(void);
APART void signal_work(void)
{
	uint64_t until = wall_ns() + 5000000;

	while (wall_ns() < until)
		signal_burn(1);
}

APART void on_inner(int sig);
APART void on_inner(int sig)
{
	signal_work();
	NO_TAIL_CALL(sig);
}

APART void on_outer(int sig);
APART void on_outer(int sig)
{
	if (nested)
		raise(SIGUSR1);
	else
		signal_work();
	NO_TAIL_CALL(sig);
}

/* No function call within: the signal hits this one. */
APART uint64_t signal_interrupted(uint64_t x);
APART uint64_t signal_interrupted(uint64_t x)
{
	for (int i = 0; i < 2000000; i++) {
		x = x * 0x9e3779b97f4a7c15ULL + 1;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

APART void signal_base(void);
APART void signal_base(void)
{
	while (!burn_stop && wall_ns() < end)
		signal_interrupted(1);
}

static void handle(int sig, void (*fn)(int), int flags)
{
	struct sigaction sa = { .sa_handler = fn, .sa_flags = flags | SA_RESTART };

	if (sigaction(sig, &sa, NULL))
		burn_die("sigaction");
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	const struct itimerval each = { { 0, 10000 }, { 0, 10000 } };
	const stack_t stack = { .ss_sp = alt_stack, .ss_size = sizeof(alt_stack) };
	int flags = strcmp(kind, "plain") == 0 ? 0 : SA_ONSTACK;

	nested = strcmp(kind, "nested") == 0;
	end = argc > 3 ? wall_ns() + (uint64_t)(atof(argv[3]) * 1e9) : UINT64_MAX;
	burn_catch_signals();
	if (flags && sigaltstack(&stack, NULL))
		burn_die("sigaltstack");
	handle(SIGPROF, on_outer, flags);
	handle(SIGUSR1, on_inner, flags);
	if (setitimer(ITIMER_PROF, &each, NULL))
		burn_die("setitimer");
	burn_say_ready();
	signal_base();
	printf("{\"event\":\"truth\",\"pid\":%d,\"cpu_ns\":%llu}\n", (int)getpid(),
	       (unsigned long long)cpu_ns());
	return 0;
}
