/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What names cost in this library itself: loads kallsyms and the ELF files given as arguments, and
 * looks up addresses of named code in random order, with and without demangling.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbolizer/symbolizer.h"

enum { MAX_FILES = 512, LOOKUPS = 2000000, TRIES = 1 << 16 };

struct target {
	struct sym_file *file;
	uint64_t addr;
};

static uint64_t state = 88172645463325252ULL;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static size_t load(int argc, char **argv, bool no_demangle, struct sym_file **files)
{
	const struct sym_file_options options = { .debug_dir = "/usr/lib/debug",
						  .no_demangle = no_demangle };
	size_t count = 0;

	for (int i = 1; i < argc && count < MAX_FILES; i++) {
		int fd = open(argv[i], O_RDONLY | O_CLOEXEC);

		if (fd >= 0 && sym_file_load(fd, &options, &files[count]) == 0)
			count++;
		if (fd >= 0)
			close(fd);
	}
	return count;
}

/* Addresses that have names, found by trying. */
static size_t choose(struct sym_file **files, size_t count, struct target *targets)
{
	struct sym_hit hit;
	size_t n = 0;

	for (size_t i = 0; i < TRIES; i++) {
		struct sym_file *file = files[next_random() % count];
		uint64_t addr = sym_file_code_start(file) + next_random() % (32 << 20);

		if (sym_file_find(file, addr, &hit) == SYM_OK)
			targets[n++] = (struct target){ file, addr };
	}
	return n;
}

/* One line of figures. */
static void measure(int argc, char **argv, bool no_demangle)
{
	static struct sym_file *files[MAX_FILES];
	static struct target targets[TRIES];
	nsec_t start = clock_monotonic(), ended;
	size_t bytes = 0, count = load(argc, argv, no_demangle, files), n;
	uint64_t found = 0;
	struct sym_hit hit;

	ended = clock_monotonic();
	for (size_t i = 0; i < count; i++)
		bytes += sym_file_bytes(files[i]);
	printf("%zu files read in %.1f ms, %.1f MB held", count, (double)(ended - start) / 1e6,
	       (double)bytes / 1e6);
	n = count ? choose(files, count, targets) : 0;
	start = clock_monotonic();
	for (uint64_t i = 0; n && i < LOOKUPS; i++) {
		const struct target *t = &targets[next_random() % n];

		found += sym_file_find(t->file, t->addr, &hit) == SYM_OK;
	}
	ended = clock_monotonic();
	printf("; %.2f million look-ups a second %s\n",
	       (double)found * 1e3 / (double)(ended - start + 1),
	       no_demangle ? "without demangling" : "with demangling");
	for (size_t i = 0; i < count; i++)
		sym_file_free(files[i]);
}

int main(int argc, char **argv)
{
	const struct sym_kernel_options any = { 0 };
	nsec_t start = clock_monotonic();
	struct sym_kernel *kernel;

	if (sym_kernel_load("/proc/kallsyms", &any, &kernel) == 0) {
		printf("kallsyms read in %.1f ms, %.1f MB held\n",
		       (double)(clock_monotonic() - start) / 1e6,
		       (double)sym_kernel_bytes(kernel) / 1e6);
		sym_kernel_free(kernel);
	}
	measure(argc, argv, false);
	measure(argc, argv, true);
	return 0;
}
