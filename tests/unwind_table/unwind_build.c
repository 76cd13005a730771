/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind_build FILE: builds its unwind table once, and prints what that took as one line of JSON:
 * CPU time of the thread, rows, rules, the table's bytes, and the most memory held beyond it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "symbolizer/unwind.h"

static long long thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* The most memory held since the process was started; what rusage says is also its parent's. */
static long long peak_bytes(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	long long kib = 0;
	char line[200];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "VmHWM: %lld", &kib) == 1)
			break;
	}
	if (f)
		fclose(f);
	return kib * 1024;
}

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1, err;
	struct unwind_table *table = NULL;
	long long memory = peak_bytes(), ns = thread_ns();

	if (fd < 0) {
		fprintf(stderr, "usage: unwind_build FILE\n");
		return 2;
	}
	err = unwind_table_build(fd, NULL, &table);
	if (err) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-err));
		return 1;
	}
	printf("{\"cpu_ns\":%lld,\"rows\":%zu,\"rules\":%zu,\"bytes\":%zu,\"beyond\":%lld}\n",
	       thread_ns() - ns, table->row_count, table->rule_count, table->bytes,
	       peak_bytes() - memory - (long long)table->bytes);
	unwind_table_free(table);
	return 0;
}
