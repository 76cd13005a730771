/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all workloads share: functions that burn CPU under a known name, clocks, the way to
 * stop, and one JSON object per line on stdout.
 *
 * A workload prints {"event":"ready","pid":N} when it is in its steady state, runs until its
 * time is over or SIGTERM/SIGINT comes, and ends with {"event":"truth",...}: what it measured of
 * itself. Nothing here sleeps to wait for somebody else.
 */
#ifndef WORKLOADS_BURN_H
#define WORKLOADS_BURN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* gcc gives leaf functions no frame, whatever the options say; asking for its address does. */
#define KEEP_FRAME() __asm__ volatile("" ::"r"(__builtin_frame_address(0)))

#ifdef __clang__
#define BURN_APART __attribute__((noinline))
#else
#define BURN_APART __attribute__((noinline, noclone))
#endif

/* One burning function: `iters` turns of a dependent multiply, no memory, no calls. */
#define DEFINE_BURN(name) \
	BURN_APART uint64_t name(uint64_t iters); \
	BURN_APART uint64_t name(uint64_t iters) \
	{ \
		uint64_t x = iters | 1; \
		KEEP_FRAME(); \
		for (uint64_t i = 0; i < iters; i++) { \
			x *= 0x9e3779b97f4a7c15ULL; \
			__asm__ volatile("" : "+r"(x)); \
		} \
		return x; \
	}

typedef uint64_t (*burn_fn)(uint64_t iters);

static inline uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static inline uint64_t cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static inline uint64_t wall_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Burns about `ns` of CPU in one function by running it in small turns. Returns what it took. */
static inline uint64_t burn_for(burn_fn fn, uint64_t iters_per_us, uint64_t ns)
{
	uint64_t start = cpu_ns(), now = start;

	while (now - start < ns) {
		fn(iters_per_us * 50);
		now = cpu_ns();
	}
	return now - start;
}

/* Best of several tries, so that a preempted try does not count. At least 1. */
static inline uint64_t burn_calibrate(burn_fn fn)
{
	uint64_t best = UINT64_MAX, iters = 200000;

	for (int i = 0; i < 8; i++) {
		uint64_t start = cpu_ns();

		fn(iters);
		start = cpu_ns() - start;
		if (start < best)
			best = start;
	}
	return best / 1000 ? iters / (best / 1000) + 1 : 1;
}

/* Cheap random numbers: turn lengths must not fall in step with a sampling clock. */
static inline uint64_t burn_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static volatile sig_atomic_t burn_stop;

static inline void burn_on_signal(int sig)
{
	(void)sig;
	burn_stop = 1;
}

static inline void burn_catch_signals(void)
{
	struct sigaction sa = { .sa_handler = burn_on_signal };

	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
}

static inline void burn_say_ready(void)
{
	printf("{\"event\":\"ready\",\"pid\":%d}\n", (int)getpid());
	fflush(stdout);
}

static inline _Noreturn void burn_die(const char *what)
{
	perror(what);
	exit(125);
}

#endif
