/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storm_child <iters>: the program that a storm runs: burns in one known function and exits.
 * Built several times: -DSTORM_BURN names the function; with -DSTORM_MARK=x the thread calls itself
 * <8 bytes of the file's name>-x, so that each sample says by itself which content of a rewritten
 * file was running.
 */
#include <string.h>
#include <sys/prctl.h>

#include "burn.h"

#ifndef STORM_BURN
#define STORM_BURN storm_burn
#endif

DEFINE_BURN(STORM_BURN)

int main(int argc, char **argv)
{
	uint64_t iters = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;

#ifdef STORM_MARK
	char name[16];

	snprintf(name, sizeof(name), "%.8s-%s", basename(argv[0]), STORM_MARK);
	prctl(PR_SET_NAME, name);
#endif
	STORM_BURN(iters);
	return 0;
}
