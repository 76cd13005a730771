/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy2of10 [-t seconds]: 2 ms of CPU at the start of each 10 ms, on a fixed grid: the program that
 * a sampling clock in step with it shows at 0 % or 100 % (case C-01).
 */
#include "burn.h"

DEFINE_BURN(busy_2ms)

int main(int argc, char **argv)
{
	double seconds = argc > 2 ? atof(argv[2]) : 0;
	uint64_t iters_per_us, start, next, wall;

	burn_catch_signals();
	iters_per_us = burn_calibrate(busy_2ms);
	start = next = wall_ns();
	burn_say_ready();
	while (!burn_stop && (seconds <= 0 || wall_ns() - start < (uint64_t)(seconds * 1e9))) {
		struct timespec at;

		busy_2ms(iters_per_us * 2000);
		next += 10000000;
		at.tv_sec = (time_t)(next / 1000000000ULL);
		at.tv_nsec = (long)(next % 1000000000ULL);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	}
	wall = wall_ns() - start;
	printf("{\"event\":\"truth\",\"pid\":%d,\"cpu_ns\":%llu,\"wall_ns\":%llu}\n", (int)getpid(),
	       (unsigned long long)cpu_ns(), (unsigned long long)wall);
	return 0;
}
