/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, all in nanoseconds. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

typedef uint64_t nsec_t;

#define NSEC_PER_SEC 1000000000ULL
#define NSEC_PER_MS  1000000ULL

static inline nsec_t clock_read(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (nsec_t)ts.tv_sec * NSEC_PER_SEC + (nsec_t)ts.tv_nsec;
}

static inline nsec_t clock_monotonic(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

/* Time of day, for what leaves the machine. */
static inline nsec_t clock_realtime(void)
{
	return clock_read(CLOCK_REALTIME);
}

#endif
