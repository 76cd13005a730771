/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaderexit [-t seconds]: main() starts a busy thread and leaves by pthread_exit: the process
 * lives on, but /proc/PID/{maps,exe,root,map_files} of the leader are empty (case S-16).
 */
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>

#include "burn.h"

DEFINE_BURN(orphan_burn)

static uint64_t end_ns;

/* True once the kernel shows the leader as a zombie: only then does the steady state begin. */
static bool leader_is_gone(void)
{
	char text[256] = "";
	FILE *f = fopen("/proc/self/stat", "re");
	const char *state;

	if (!f || !fgets(text, sizeof(text), f))
		burn_die("/proc/self/stat");
	fclose(f);
	state = strrchr(text, ')');
	return state && state[2] == 'Z';
}

static void *orphan_main(void *arg)
{
	uint64_t iters = burn_calibrate(orphan_burn) * 100, start;

	while (!leader_is_gone())
		sched_yield();
	burn_say_ready();
	start = cpu_ns();
	while (!burn_stop && (!end_ns || wall_ns() < end_ns))
		orphan_burn(iters);
	printf("{\"event\":\"truth\",\"pid\":%d,\"tid\":%ld,\"cpu_ns\":%llu}\n", (int)getpid(),
	       syscall(SYS_gettid), (unsigned long long)(cpu_ns() - start));
	fflush(stdout);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc > 2)
		end_ns = wall_ns() + (uint64_t)(atof(argv[2]) * 1e9);
	burn_catch_signals();
	if (pthread_create(&thread, NULL, orphan_main, NULL))
		burn_die("pthread_create");
	pthread_exit(NULL);
}
