/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_ab <ms> <turns> <other program>: burns `ms` in its function, then execs the other program,
 * `turns` times: one process, two programs in alternation. Built twice, -DEXEC_BURN=burn_in_a and
 * =burn_in_b; layouts are the same, so that an old mapping gives the other one's name.
 * A turn count of 0 burns once and ends (used as a short program of either kind).
 */
#include <string.h>

#include "burn.h"

#ifndef EXEC_BURN
#define EXEC_BURN burn_in_a
#endif

DEFINE_BURN(EXEC_BURN)

int main(int argc, char **argv)
{
	unsigned long ms, turns;
	char left[24], me[4096];
	ssize_t n;

	if (argc < 4)
		return 2;
	ms = strtoul(argv[1], NULL, 10);
	turns = strtoul(argv[2], NULL, 10);
	burn_for(EXEC_BURN, burn_calibrate(EXEC_BURN), (uint64_t)ms * 1000000);
	if (turns == 0)
		return 0;
	n = readlink("/proc/self/exe", me, sizeof(me) - 1);
	if (n < 0)
		burn_die("readlink");
	me[n] = 0;
	snprintf(left, sizeof(left), "%lu", turns - 1);
	execv(argv[3], (char *[]){ argv[3], argv[1], left, me, NULL });
	burn_die("execv");
}
