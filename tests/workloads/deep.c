/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deep [-t seconds]: burns CPU under 30 functions, deep_30 to deep_01, each with DEEP_ROOM bytes of
 * its own on the stack. Made for compilers told to leave out frame pointers.
 */
#include "burn.h"

#ifndef DEEP_ROOM
#define DEEP_ROOM 8
#endif

#define APART __attribute__((noipa))

static uint64_t end;

/* The work is in each function, so that samples lie at all depths. */
static inline uint64_t turn(uint64_t x)
{
	for (int i = 0; i < 40; i++) {
		x *= 0x9e3779b97f4a7c15ULL;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

APART uint64_t deep_00(uint64_t x);
APART uint64_t deep_00(uint64_t x)
{
	for (int i = 0; i < 50; i++)
		x = turn(x);
	return x;
}

#define LEVEL(n, below) \
	APART uint64_t deep_##n(uint64_t x); \
	APART uint64_t deep_##n(uint64_t x) \
	{ \
		volatile uint8_t room[DEEP_ROOM]; \
\
		room[x % DEEP_ROOM] = (uint8_t)x; \
		x = turn(deep_##below(turn(x))); \
		return x + room[0]; \
	}

LEVEL(01, 00) LEVEL(02, 01) LEVEL(03, 02) LEVEL(04, 03) LEVEL(05, 04)
LEVEL(06, 05) LEVEL(07, 06) LEVEL(08, 07) LEVEL(09, 08) LEVEL(10, 09)
LEVEL(11, 10) LEVEL(12, 11) LEVEL(13, 12) LEVEL(14, 13) LEVEL(15, 14)
LEVEL(16, 15) LEVEL(17, 16) LEVEL(18, 17) LEVEL(19, 18) LEVEL(20, 19)
LEVEL(21, 20) LEVEL(22, 21) LEVEL(23, 22) LEVEL(24, 23) LEVEL(25, 24)
LEVEL(26, 25) LEVEL(27, 26) LEVEL(28, 27) LEVEL(29, 28) LEVEL(30, 29)

int main(int argc, char **argv)
{
	uint64_t x = 1;

	end = argc > 2 ? wall_ns() + (uint64_t)(atof(argv[2]) * 1e9) : UINT64_MAX;
	burn_catch_signals();
	burn_say_ready();
	for (uint64_t turns = 0; !burn_stop && (turns % 64 || wall_ns() < end); turns++)
		x = deep_30(x);
	printf("{\"event\":\"truth\",\"pid\":%d,\"cpu_ns\":%llu,\"x\":%u}\n", (int)getpid(),
	       (unsigned long long)cpu_ns(), (unsigned)(x & 1));
	return 0;
}
