/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manylibs SECONDS PART... -- LIBRARY...: loads all libraries, then burns CPU under lib_call() of a
 * part of them for some seconds, then of the next part, and so on. A PART is FIRST-LAST, by the
 * place in the list of libraries. Says when each part begins. Built without frame pointers: only each
 * library's own unwind table leads out of it.
 */
#include <dlfcn.h>
#include <string.h>

#include "burn.h"

enum { MAX_LIBRARIES = 1000 };

typedef uint64_t (*lib_call)(uint64_t (*function)(uint64_t), uint64_t argument);

static lib_call calls[MAX_LIBRARIES];

__attribute__((noipa)) static uint64_t lib_burn(uint64_t x)
{
	for (int i = 0; i < 400000; i++) {
		x *= 0x9e3779b97f4a7c15ULL;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

__attribute__((noipa)) static uint64_t run_part(int first, int last, uint64_t end)
{
	uint64_t x = 1;

	while (!burn_stop && wall_ns() < end) {
		for (int i = first; i <= last; i++)
			x += calls[i](lib_burn, x);
	}
	return x;
}

static int load(char **paths, int count)
{
	for (int i = 0; i < count && i < MAX_LIBRARIES; i++) {
		void *library = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);

		calls[i] = library ? (lib_call)dlsym(library, "lib_call") : NULL;
		if (!calls[i]) {
			fprintf(stderr, "manylibs: %s\n", dlerror());
			return -1;
		}
	}
	return count;
}

int main(int argc, char **argv)
{
	int parts = 2, first, last, count;
	uint64_t x = 0;

	while (parts < argc && strcmp(argv[parts], "--") != 0)
		parts++;
	count = argc > parts ? load(argv + parts + 1, argc - parts - 1) : -1;
	if (count < 1)
		return 2;
	burn_catch_signals();
	burn_say_ready();
	for (int i = 2; i < parts && !burn_stop; i++) {
		if (sscanf(argv[i], "%d-%d", &first, &last) != 2 || first < 0 || last >= count)
			return 2;
		printf("{\"event\":\"part\",\"part\":\"%s\"}\n", argv[i]);
		fflush(stdout);
		x += run_part(first, last, wall_ns() + (uint64_t)(atof(argv[1]) * 1e9));
	}
	printf("{\"event\":\"truth\",\"pid\":%d,\"cpu_ns\":%llu,\"x\":%u}\n", (int)getpid(),
	       (unsigned long long)cpu_ns(), (unsigned)(x & 1));
	return 0;
}
