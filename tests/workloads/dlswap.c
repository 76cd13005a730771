/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlswap [-t seconds] [-m ms] [-i path] a.so b.so: code of two libraries at one address, in turn.
 *
 * Without -i: dlopen a, run it for `ms`, dlclose, the same with b (which lands at the same
 * address; case S-18). With -i: `path` is loaded once and its content overwritten in place with
 * a's and b's, so that the mapping stays and only the file (its mtime) changes.
 * The thread is named after the function that is running: each sample carries its own truth.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "burn.h"

DEFINE_BURN(swap_calibrate)

enum { MAX_LIBRARY_BYTES = 1 << 20 };

static const char *const names[2] = { "swap_in_a", "swap_in_b" };
static uint64_t iters_per_us, took[2], same_address, other_address, turns;

static void run_turn(burn_fn fn, int which, uint64_t ns)
{
	static burn_fn last;

	prctl(PR_SET_NAME, names[which]);
	took[which] += burn_for(fn, iters_per_us, ns);
	prctl(PR_SET_NAME, "dlswap");
	if (last)
		++*(last == fn ? &same_address : &other_address);
	last = fn;
	turns++;
}

static void turn_by_dlopen(const char *path, int which, uint64_t ns)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	burn_fn fn = lib ? (burn_fn)(uintptr_t)dlsym(lib, names[which]) : NULL;

	if (!fn) {
		fprintf(stderr, "dlswap: %s\n", dlerror());
		exit(125);
	}
	run_turn(fn, which, ns);
	dlclose(lib);
}

static void overwrite(const char *path, const char *from)
{
	static char bytes[MAX_LIBRARY_BYTES];
	int in = open(from, O_RDONLY | O_CLOEXEC),
	    out = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	ssize_t n = in < 0 ? -1 : read(in, bytes, sizeof(bytes));

	if (out < 0 || n <= 0 || pwrite(out, bytes, (size_t)n, 0) != n)
		burn_die(path);
	close(in);
	close(out);
}

int main(int argc, char **argv)
{
	const char *in_place = NULL;
	double seconds = 3;
	uint64_t ns = 200000000, end;
	burn_fn fixed = NULL;
	int opt;

	while ((opt = getopt(argc, argv, "t:m:i:")) != -1) {
		if (opt == 't')
			seconds = atof(optarg);
		else if (opt == 'm')
			ns = strtoull(optarg, NULL, 10) * 1000000;
		else if (opt == 'i')
			in_place = optarg;
	}
	if (optind + 2 != argc)
		return 2;
	burn_catch_signals();
	iters_per_us = burn_calibrate(swap_calibrate);
	if (in_place) {
		void *lib;

		overwrite(in_place, argv[optind]);
		lib = dlopen(in_place, RTLD_NOW | RTLD_LOCAL);
		fixed = lib ? (burn_fn)(uintptr_t)dlsym(lib, names[0]) : NULL;
		if (!fixed)
			burn_die("dlopen");
	}
	burn_say_ready();
	end = wall_ns() + (uint64_t)(seconds * 1e9);
	for (int which = 0; !burn_stop && wall_ns() < end; which = !which) {
		if (in_place) {
			overwrite(in_place, argv[optind + which]);
			run_turn(fixed, which, ns);
		} else {
			turn_by_dlopen(argv[optind + which], which, ns);
		}
	}
	printf("{\"event\":\"truth\",\"pid\":%d,\"turns\":%llu,\"same_address\":%llu,"
	       "\"other_address\":%llu,\"functions\":{\"swap_in_a\":%llu,\"swap_in_b\":%llu}}\n",
	       (int)getpid(), (unsigned long long)turns, (unsigned long long)same_address,
	       (unsigned long long)other_address, (unsigned long long)took[0],
	       (unsigned long long)took[1]);
	return 0;
}
