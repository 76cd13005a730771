/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults [-t seconds]: touches fresh pages as fast as it can, for tracers that hang on page faults:
 * a program of theirs is then running during much of each CPU's time.
 */
#include <sys/mman.h>

#include "burn.h"

enum { REGION_BYTES = 4 << 20, PAGE_BYTES = 4096 };

int main(int argc, char **argv)
{
	uint64_t end = argc > 2 ? wall_ns() + (uint64_t)(atof(argv[2]) * 1e9) : 0, faults = 0;
	volatile uint8_t *region = mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (region == MAP_FAILED || madvise((void *)region, REGION_BYTES, MADV_NOHUGEPAGE))
		burn_die("mmap");
	burn_catch_signals();
	burn_say_ready();
	while (!burn_stop && (!end || wall_ns() < end)) {
		for (size_t at = 0; at < REGION_BYTES; at += PAGE_BYTES, faults++)
			region[at] = 1;
		madvise((void *)region, REGION_BYTES, MADV_DONTNEED);
	}
	printf("{\"event\":\"truth\",\"pid\":%d,\"faults\":%llu,\"cpu_ns\":%llu}\n", (int)getpid(),
	       (unsigned long long)faults, (unsigned long long)cpu_ns());
	return 0;
}
