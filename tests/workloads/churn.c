/* SPDX-License-Identifier: Apache-2.0 */
/*
 * churn [-t seconds] [-f files] [-d dir]: the truth test for finding the mapping of an address.
 *
 * Two runner threads map one of many look-alike ELF files (each with one function
 * churn_NNNN at the same offset), run its code and unmap it, so that one address belongs to
 * another file a moment later. Before the code runs the thread takes the function's name as its
 * own: a sample in churn_N of a thread not named churn_N is a wrong mapping, beyond doubt.
 * Two more threads map, protect and unmap to keep the kernel's tree of mappings changing, one
 * spins in the program itself, one in the vDSO.
 */
#include <pthread.h>
#include <sys/prctl.h>

#include "template.h"

DEFINE_BURN(churn_spin)

enum { RUNNERS = 2, CHURNERS = 2, MAX_FILES = 256, PATH_BYTES = 512, MAPPING_BYTES = 0x2000 };

static int fds[MAX_FILES], file_count = 64;
static uint64_t end_ns, iters_per_us;
static uint64_t runs[RUNNERS], changes[CHURNERS], runner_ns[RUNNERS], spinner_ns, vdso_ns;

static bool go_on(void)
{
	return !burn_stop && (!end_ns || wall_ns() < end_ns);
}

static void make_files(const char *dir)
{
	char path[PATH_BYTES], name[16];

	for (int i = 0; i < file_count; i++) {
		snprintf(name, sizeof(name), "churn_%04d", i);
		snprintf(path, sizeof(path), "%s/%s.so", dir, name);
		tiny_elf_write(path, name, (unsigned int)i);
		fds[i] = open(path, O_RDONLY | O_CLOEXEC);
		if (fds[i] < 0)
			burn_die(path);
	}
}

/* The caller of foreign code: its frame must be above every churn_NNNN. */
__attribute__((noinline)) static void run_file(burn_fn code)
{
	code(iters_per_us * 30);
	KEEP_FRAME();
}

static void *runner_main(void *arg)
{
	uint64_t *count = arg, seed = 0xabcdef + (uint64_t)(uintptr_t)arg;
	char name[16];

	while (go_on()) {
		int i = (int)(burn_random(&seed) % (unsigned int)file_count);
		uint8_t *map =
			mmap(NULL, MAPPING_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fds[i], 0);

		if (map == MAP_FAILED)
			burn_die("mmap of code");
		snprintf(name, sizeof(name), "churn_%04d", i);
		prctl(PR_SET_NAME, name);
		run_file((burn_fn)(uintptr_t)(map + TINY_CODE_OFF));
		prctl(PR_SET_NAME, "runner");
		munmap(map, MAPPING_BYTES);
		++*count;
	}
	runner_ns[count - runs] = cpu_ns();
	return NULL;
}

static void *churner_main(void *arg)
{
	uint64_t *count = arg, seed = 0x123457 + (uint64_t)(uintptr_t)arg;

	prctl(PR_SET_NAME, "churner");
	while (go_on()) {
		size_t pages = 1 + burn_random(&seed) % 8, bytes = pages * 4096;
		uint8_t *map =
			mmap(NULL, bytes + 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		uint8_t *file = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fds[0], 0);

		if (map == MAP_FAILED || file == MAP_FAILED)
			burn_die("mmap");
		mprotect(map + 4096 * (pages / 2), 4096, PROT_READ | PROT_WRITE);
		munmap(file, 4096);
		munmap(map, bytes + 4096);
		++*count;
	}
	return NULL;
}

static void *spinner_main(void *arg)
{
	prctl(PR_SET_NAME, "spinner");
	while (go_on())
		churn_spin(iters_per_us * 500);
	spinner_ns = cpu_ns();
	return arg;
}

static void *vdso_main(void *arg)
{
	prctl(PR_SET_NAME, "vdso");
	while (go_on())
		for (int i = 0; i < 1000; i++)
			wall_ns();
	vdso_ns = cpu_ns();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t threads[RUNNERS + CHURNERS + 2];
	const char *dir = ".";
	double seconds = 0;
	int n = 0, opt;

	while ((opt = getopt(argc, argv, "t:f:d:")) != -1) {
		if (opt == 't')
			seconds = atof(optarg);
		else if (opt == 'f')
			file_count = atoi(optarg);
		else if (opt == 'd')
			dir = optarg;
	}
	if (file_count < 1 || file_count > MAX_FILES)
		return 2;
	burn_catch_signals();
	iters_per_us = burn_calibrate(churn_spin);
	make_files(dir);
	if (seconds > 0)
		end_ns = wall_ns() + (uint64_t)(seconds * 1e9);
	for (int i = 0; i < RUNNERS; i++)
		pthread_create(&threads[n++], NULL, runner_main, &runs[i]);
	for (int i = 0; i < CHURNERS; i++)
		pthread_create(&threads[n++], NULL, churner_main, &changes[i]);
	pthread_create(&threads[n++], NULL, spinner_main, NULL);
	pthread_create(&threads[n++], NULL, vdso_main, NULL);
	burn_say_ready();
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	printf("{\"event\":\"truth\",\"pid\":%d,\"files\":%d,\"runs\":%llu,\"changes\":%llu,"
	       "\"runner_ns\":%llu,\"spinner_ns\":%llu,\"vdso_ns\":%llu}\n",
	       (int)getpid(), file_count, (unsigned long long)(runs[0] + runs[1]),
	       (unsigned long long)(changes[0] + changes[1]),
	       (unsigned long long)(runner_ns[0] + runner_ns[1]), (unsigned long long)spinner_ns,
	       (unsigned long long)vdso_ns);
	return 0;
}
