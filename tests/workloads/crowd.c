/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowd [-t seconds] [-n threads] [-p period in ms] [-m mappings] -f file: a process with very many
 * threads that sleep and wake, each to burn a little in one of very many executable mappings
 * of `file`, which it writes. As many threads and mappings as the machine allows, up to the numbers given.
 */
#include <pthread.h>
#include <sys/resource.h>

#include "template.h"

DEFINE_BURN(crowd_calibrate)

enum { STACK_BYTES = 16 << 10, BURN_US = 50 };

static struct {
	double seconds;
	int threads, period_ms, mappings;
	const char *file;
} opt = { .threads = 1000, .period_ms = 5000, .mappings = 1000, .file = "crowd.so" };

static uint8_t **codes;
static int code_count, thread_count;
static uint64_t iters_per_us, end_ns;

static bool go_on(void)
{
	return !burn_stop && (!end_ns || wall_ns() < end_ns);
}

/* All of the same page: the kernel would merge neighbours if they went on in the file. */
static void make_mappings(void)
{
	int fd;

	tiny_elf_write(opt.file, "crowd_code", 1);
	fd = open(opt.file, O_RDONLY | O_CLOEXEC);
	codes = calloc((size_t)opt.mappings, sizeof(*codes));
	if (fd < 0 || !codes)
		burn_die(opt.file);
	for (code_count = 0; code_count < opt.mappings; code_count++) {
		uint8_t *code = mmap(NULL, 0x1000, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
				     TINY_CODE_OFF);

		if (code == MAP_FAILED)
			break;
		codes[code_count] = code;
	}
	close(fd);
	if (!code_count)
		burn_die("mmap");
}

static void *sleeper_main(void *arg)
{
	uint64_t seed = (uint64_t)(uintptr_t)arg * 0x9e3779b97f4a7c15ULL | 1;

	while (go_on()) {
		uint64_t us = burn_random(&seed) % (2000ULL * (unsigned int)opt.period_ms);
		struct timespec pause = { (time_t)(us / 1000000), (long)(us % 1000000) * 1000 };

		nanosleep(&pause, NULL);
		((burn_fn)(uintptr_t)codes[burn_random(&seed) % (unsigned int)code_count])(
			iters_per_us * BURN_US);
	}
	return NULL;
}

static void make_threads(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	for (thread_count = 0; thread_count < opt.threads && !burn_stop; thread_count++) {
		if (pthread_create(&thread, &attributes, sleeper_main,
				   (void *)(uintptr_t)(thread_count + 1)))
			break;
	}
	pthread_attr_destroy(&attributes);
}

int main(int argc, char **argv)
{
	struct rusage usage;
	int c;

	while ((c = getopt(argc, argv, "t:n:p:m:f:")) != -1) {
		if (c == 't')
			opt.seconds = atof(optarg);
		else if (c == 'n')
			opt.threads = atoi(optarg);
		else if (c == 'p')
			opt.period_ms = atoi(optarg);
		else if (c == 'm')
			opt.mappings = atoi(optarg);
		else if (c == 'f')
			opt.file = optarg;
		else
			return 2;
	}
	burn_catch_signals();
	iters_per_us = burn_calibrate(crowd_calibrate);
	if (opt.seconds > 0)
		end_ns = wall_ns() + (uint64_t)(opt.seconds * 1e9);
	make_mappings();
	make_threads();
	burn_say_ready();
	while (go_on())
		usleep(100000);
	getrusage(RUSAGE_SELF, &usage);
	printf("{\"event\":\"truth\",\"pid\":%d,\"threads\":%d,\"mappings\":%d,\"cpu_ns\":%lld}\n",
	       (int)getpid(), thread_count, code_count,
	       (long long)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000LL +
		       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000LL);
	fflush(stdout);
	_exit(0); /* the sleepers would be long in coming */
}
