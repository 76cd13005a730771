/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threadnames <ms> <hex name>...: for each name (bytes in hex) one thread that takes it by prctl
 * and burns `ms` of CPU in odd_name_burn. The main thread's own name stays. What a name may hold:
 * blanks, quotes, newlines, semicolons, bytes that are not UTF-8.
 */
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>

#include "burn.h"

DEFINE_BURN(odd_name_burn)

static uint64_t burn_ns, iters_per_us;

static void *named_main(void *hex)
{
	char name[17] = "";
	unsigned int byte;

	for (int i = 0; i < 15 && sscanf((const char *)hex + 2 * i, "%2x", &byte) == 1; i++)
		name[i] = (char)byte;
	if (prctl(PR_SET_NAME, name))
		burn_die("prctl");
	burn_for(odd_name_burn, iters_per_us, burn_ns);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	int n = argc - 2;

	if (n < 1 || n > 64)
		return 2;
	burn_ns = strtoull(argv[1], NULL, 10) * 1000000;
	iters_per_us = burn_calibrate(odd_name_burn);
	burn_say_ready();
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, named_main, argv[i + 2]))
			burn_die("pthread_create");
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	printf("{\"event\":\"truth\",\"pid\":%d,\"threads\":%d,\"each_ns\":%llu}\n", (int)getpid(),
	       n, (unsigned long long)burn_ns);
	return 0;
}
