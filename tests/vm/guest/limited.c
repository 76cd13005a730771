/* SPDX-License-Identifier: Apache-2.0 */
/* limited KIB PROGRAM ARG...: with so much memory to lock, and no right to raise it. */
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	rlim_t bytes = argc > 2 ? strtoull(argv[1], NULL, 10) << 10 : 0;
	struct rlimit limit = { bytes, bytes };

	if (argc < 3 || setrlimit(RLIMIT_MEMLOCK, &limit) < 0 ||
	    prctl(PR_CAPBSET_DROP, CAP_SYS_RESOURCE, 0, 0, 0) < 0) {
		perror("limited");
		return 125;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
