/* SPDX-License-Identifier: Apache-2.0 */
/*
 * maprun [-m ms] file...: runs the code at TINY_CODE_OFF of each file for `ms` of CPU, by a
 * mapping of its own and not by the loader, so that the ELF headers may be any nonsense. The
 * thread is named mapped_NN after the number of the file.
 */
#include <string.h>
#include <sys/prctl.h>

#include "template.h"

DEFINE_BURN(maprun_calibrate)

static void run_file(const char *path, int number, uint64_t iters_per_us, uint64_t ns)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t *code = fd < 0 ? MAP_FAILED : mmap(NULL, TINY_CODE_OFF, PROT_READ | PROT_EXEC,
						   MAP_PRIVATE, fd, TINY_CODE_OFF);
	char name[16];

	if (code == MAP_FAILED)
		burn_die(path);
	close(fd);
	snprintf(name, sizeof(name), "mapped_%02d", number % 100);
	prctl(PR_SET_NAME, name);
	burn_for((burn_fn)(uintptr_t)code, iters_per_us, ns);
	prctl(PR_SET_NAME, "maprun");
	munmap(code, TINY_CODE_OFF);
}

int main(int argc, char **argv)
{
	uint64_t ns = 100000000, iters_per_us;
	int opt, done = 0;

	while ((opt = getopt(argc, argv, "m:")) != -1) {
		if (opt != 'm')
			return 2;
		ns = (uint64_t)(atof(optarg) * 1e6);
	}
	burn_catch_signals();
	iters_per_us = burn_calibrate(maprun_calibrate);
	burn_say_ready();
	for (; optind + done < argc && !burn_stop; done++)
		run_file(argv[optind + done], done, iters_per_us, ns);
	printf("{\"event\":\"truth\",\"pid\":%d,\"files\":%d,\"cpu_ns\":%llu}\n", (int)getpid(), done,
	       (unsigned long long)cpu_ns());
	return 0;
}
