/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split [-t seconds] [-c CPU seconds] [-g] [-n threads] [-w a,b,c] [-x status]: three functions
 * that burn 60, 30 and 10 % (or a:b:c) of each thread's CPU time, in turns of a millisecond or so,
 * and measure what they really took by the thread's own CPU clock. Ends after so many seconds, or
 * when the first thread has had so much CPU; exits with `status`. -g: is ready before it begins,
 * and begins when its standard input ends.
 */
#include <pthread.h>
#include <string.h>

#include "burn.h"

DEFINE_BURN(hot_60)
DEFINE_BURN(hot_30)
DEFINE_BURN(hot_10)

enum { FUNCTIONS = 3, MAX_THREADS = 64 };

static const burn_fn functions[FUNCTIONS] = { hot_60, hot_30, hot_10 };
static const char *const names[FUNCTIONS] = { "hot_60", "hot_30", "hot_10" };
static unsigned int weights[FUNCTIONS] = { 60, 30, 10 };
static uint64_t iters_per_us, end_ns, end_cpu_ns;

struct worker {
	pthread_t thread;
	uint64_t took[FUNCTIONS]; /* ns of CPU */
	uint64_t total;
};

/* A turn of function k lasts weight * 3..17 us: in step with nothing. */
__attribute__((noinline)) static void take_turns(struct worker *w, uint64_t seed)
{
	while (!burn_stop && (!end_ns || wall_ns() < end_ns) &&
	       (!end_cpu_ns || cpu_ns() < end_cpu_ns)) {
		for (int k = 0; k < FUNCTIONS; k++) {
			uint64_t us = weights[k] * (3 + burn_random(&seed) % 15);
			uint64_t start = cpu_ns();

			functions[k](us * iters_per_us);
			w->took[k] += cpu_ns() - start;
		}
	}
	burn_stop = burn_stop || end_cpu_ns;
	w->total = cpu_ns();
	KEEP_FRAME();
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	take_turns(w, 0x1234567 + (uint64_t)(uintptr_t)w);
	return NULL;
}

static void print_truth(const struct worker *workers, int count)
{
	uint64_t total = 0;

	printf("{\"event\":\"truth\",\"pid\":%d,\"threads\":%d,\"functions\":{", (int)getpid(),
	       count);
	for (int k = 0; k < FUNCTIONS; k++) {
		uint64_t sum = 0;

		for (int i = 0; i < count; i++)
			sum += workers[i].took[k];
		printf("%s\"%s\":%llu", k ? "," : "", names[k], (unsigned long long)sum);
	}
	for (int i = 0; i < count; i++)
		total += workers[i].total;
	printf("},\"cpu_ns\":%llu}\n", (unsigned long long)total);
}

int main(int argc, char **argv)
{
	static struct worker workers[MAX_THREADS];
	double seconds = 0;
	bool gate = false;
	char byte;
	int threads = 1, status = 0, opt;

	while ((opt = getopt(argc, argv, "t:c:gn:w:x:")) != -1) {
		if (opt == 't')
			seconds = atof(optarg);
		else if (opt == 'c')
			end_cpu_ns = (uint64_t)(atof(optarg) * 1e9);
		else if (opt == 'g')
			gate = true;
		else if (opt == 'n')
			threads = atoi(optarg);
		else if (opt == 'x')
			status = atoi(optarg);
		else if (opt != 'w' ||
			 sscanf(optarg, "%u,%u,%u", &weights[0], &weights[1], &weights[2]) != 3)
			return 2;
	}
	if (threads < 1 || threads > MAX_THREADS)
		return 2;
	burn_catch_signals();
	iters_per_us = burn_calibrate(hot_60);
	burn_say_ready();
	while (gate && read(STDIN_FILENO, &byte, 1) > 0)
		;
	if (seconds > 0)
		end_ns = wall_ns() + (uint64_t)(seconds * 1e9);
	for (int i = 1; i < threads; i++)
		if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]))
			burn_die("pthread_create");
	worker_main(&workers[0]);
	for (int i = 1; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	print_truth(workers, threads);
	return status;
}
