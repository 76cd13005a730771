/* SPDX-License-Identifier: Apache-2.0 */
/*
 * depth FRAMES [-t seconds]: burns CPU with exactly so many frames on its stack (6 to 100), each of
 * a function of its own, without frame pointers. Those of the C library are among them.
 */
#include <string.h>

#include "burn.h"

enum { LEVELS = 100, LIBRARY = 3 }; /* __libc_start_call_main, __libc_start_main, _start */

#define APART __attribute__((noipa))

typedef uint64_t (*level_fn)(int left, uint64_t x);

static level_fn levels[LEVELS];
static uint64_t end;

APART static uint64_t burn(uint64_t x)
{
	for (uint64_t turns = 0; !burn_stop && (turns % 1024 || wall_ns() < end); turns++) {
		for (int i = 0; i < 1000; i++) {
			x *= 0x9e3779b97f4a7c15ULL;
			__asm__ volatile("" : "+r"(x));
		}
	}
	return x;
}

/* Frames of various sizes: what one frame's rule says does not do for the next. */
#define LEVEL(n)                                                                                   \
	APART static uint64_t level_##n(int left, uint64_t x)                                      \
	{                                                                                          \
		volatile uint8_t room[8 + 16 * (1##n % 7)];                                        \
                                                                                                   \
		room[0] = (uint8_t)x;                                                              \
		x = left ? levels[left - 1](left - 1, x) : burn(x);                                \
		return x + room[0];                                                                \
	}
#define TEN(apply, t)                                                                              \
	apply(t##0) apply(t##1) apply(t##2) apply(t##3) apply(t##4) apply(t##5) apply(t##6)        \
		apply(t##7) apply(t##8) apply(t##9)
#define HUNDRED(apply)                                                                             \
	TEN(apply, 0)                                                                              \
	TEN(apply, 1) TEN(apply, 2) TEN(apply, 3) TEN(apply, 4) TEN(apply, 5) TEN(apply, 6)        \
		TEN(apply, 7) TEN(apply, 8) TEN(apply, 9)

HUNDRED(LEVEL)

#define ENTRY(n) [1##n - 100] = level_##n,

static level_fn levels[LEVELS] = { HUNDRED(ENTRY) };

int main(int argc, char **argv)
{
	int frames = argc > 1 ? atoi(argv[1]) : 0, count = frames - LIBRARY - 2; /* main, burn */
	uint64_t x;

	if (count < 1 || count > LEVELS)
		return 2;
	end = argc > 3 ? wall_ns() + (uint64_t)(atof(argv[3]) * 1e9) : UINT64_MAX;
	burn_catch_signals();
	burn_say_ready();
	x = levels[count - 1](count - 1, 1);
	printf("{\"event\":\"truth\",\"pid\":%d,\"cpu_ns\":%llu,\"x\":%u}\n", (int)getpid(),
	       (unsigned long long)cpu_ns(), (unsigned)(x & 1));
	return 0;
}
