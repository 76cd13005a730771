/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlrun [-t seconds] [-p] library.so: runs the functions of the library's lay_table in the given
 * shares; the thread bears the name of the function that is running. With -p the page of the
 * second function gets other rights first, so that the text is three mappings.
 */
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "lay.h"

DEFINE_BURN(dlrun_calibrate)

enum { MAX_ENTRIES = 16 };

int main(int argc, char **argv)
{
	uint64_t took[MAX_ENTRIES] = { 0 }, iters, seed = 4711, end = 0;
	const struct lay_entry *table;
	double seconds = 0;
	bool protect = false;
	void *lib;
	int opt;

	while ((opt = getopt(argc, argv, "t:p")) != -1) {
		if (opt == 't')
			seconds = atof(optarg);
		else
			protect = true;
	}
	lib = optind < argc ? dlopen(argv[optind], RTLD_NOW | RTLD_LOCAL) : NULL;
	table = lib ? dlsym(lib, "lay_table") : NULL;
	if (!table) {
		fprintf(stderr, "dlrun: %s\n", dlerror());
		return 125;
	}
	if (protect && mprotect((void *)((uintptr_t)table[1].fn & ~4095UL), 4096,
				PROT_READ | PROT_WRITE | PROT_EXEC))
		burn_die("mprotect");
	burn_catch_signals();
	iters = burn_calibrate(dlrun_calibrate);
	burn_say_ready();
	if (seconds > 0)
		end = wall_ns() + (uint64_t)(seconds * 1e9);
	while (!burn_stop && (!end || wall_ns() < end)) {
		for (int k = 0; table[k].name; k++) {
			uint64_t us = table[k].weight * (3 + burn_random(&seed) % 15),
				 start = cpu_ns();

			prctl(PR_SET_NAME, table[k].name);
			table[k].fn(us * iters);
			prctl(PR_SET_NAME, "dlrun");
			took[k] += cpu_ns() - start;
		}
	}
	printf("{\"event\":\"truth\",\"pid\":%d,\"functions\":{", (int)getpid());
	for (int k = 0; table[k].name; k++)
		printf("%s\"%s\":%llu", k ? "," : "", table[k].name, (unsigned long long)took[k]);
	printf("}}\n");
	return 0;
}
