/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit [-t seconds] [-n]: runs code it wrote into anonymous memory, three functions in the shares
 * 60, 30 and 10, and describes it in /tmp/perf-<its own pid>.map as seen in its own namespaces
 * (-n: writes no map). The names hold what real maps hold: blanks, a semicolon; one start
 * address is written with 0x and one without, one line is damaged.
 */
#include "template.h"

enum { FUNCTIONS = 3, SPACING = 0x400 };

static const char *const names[FUNCTIONS] = { "jit_hot_60 app.js:10", "LJit;::hot_30(int)",
					      "jit_hot_10" };
static const unsigned int weights[FUNCTIONS] = { 60, 30, 10 };

static void write_map(const uint8_t *code)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	f = fopen(path, "we");
	if (!f)
		burn_die(path);
	fprintf(f, "this line is damaged\n");
	for (int k = 0; k < FUNCTIONS; k++)
		fprintf(f, "%s%llx %zx %s%s\n", k == 1 ? "0x" : "",
			(unsigned long long)(uintptr_t)(code + k * SPACING), template_size(),
			names[k], k == 2 ? "\r" : "");
	if (fclose(f))
		burn_die(path);
}

int main(int argc, char **argv)
{
	double seconds = 0;
	bool with_map = true;
	uint64_t took[FUNCTIONS] = { 0 }, seed = 77, iters, end = 0;
	uint8_t *code;
	int opt;

	while ((opt = getopt(argc, argv, "t:n")) != -1) {
		if (opt == 't')
			seconds = atof(optarg);
		else
			with_map = false;
	}
	burn_catch_signals();
	code = mmap(NULL, 0x1000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		burn_die("mmap");
	for (int k = 0; k < FUNCTIONS; k++)
		memcpy(code + k * SPACING, __start_burn_code, template_size());
	if (mprotect(code, 0x1000, PROT_READ | PROT_EXEC))
		burn_die("mprotect");
	__builtin___clear_cache((char *)code, (char *)code + 0x1000);
	if (with_map)
		write_map(code);
	iters = burn_calibrate((burn_fn)(uintptr_t)code);
	burn_say_ready();
	if (seconds > 0)
		end = wall_ns() + (uint64_t)(seconds * 1e9);
	while (!burn_stop && (!end || wall_ns() < end)) {
		for (int k = 0; k < FUNCTIONS; k++) {
			uint64_t us = weights[k] * (3 + burn_random(&seed) % 15), start = cpu_ns();

			((burn_fn)(uintptr_t)(code + k * SPACING))(us * iters);
			took[k] += cpu_ns() - start;
		}
	}
	printf("{\"event\":\"truth\",\"pid\":%d,\"functions\":{\"%s\":%llu,\"%s\":%llu,\"%s\":%llu}"
	       "}\n",
	       (int)getpid(), names[0], (unsigned long long)took[0], names[1],
	       (unsigned long long)took[1], names[2], (unsigned long long)took[2]);
	return 0;
}
