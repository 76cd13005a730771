/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LD_PRELOAD shim: perf_event_open of a hardware event fails with errno $SHIM_ERRNO (a number), as
 * on a virtual machine without a PMU; all other system calls pass. Says so once on fd 2 at the end
 * of the process, so that a test knows that the shim was in the way (case K-05).
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <dlfcn.h>

long syscall(long number, ...);

static unsigned long refused;

long syscall(long number, ...)
{
	static long (*real)(long, ...);
	const char *want = getenv("SHIM_ERRNO");
	long a[6];
	va_list ap;

	if (!real)
		real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (number == SYS_perf_event_open && want &&
	    ((const struct perf_event_attr *)a[0])->type == PERF_TYPE_HARDWARE) {
		refused++;
		errno = atoi(want);
		return -1;
	}
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

__attribute__((destructor)) static void shim_say(void)
{
	if (refused)
		fprintf(stderr, "shim_perf: refused %lu\n", refused);
}
