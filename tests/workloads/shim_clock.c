/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LD_PRELOAD shim: clock_gettime(CLOCK_REALTIME) is off by as many ns as the 8 bytes at the
 * start of the file $SHIM_CLOCK say, a signed number that a test changes at any time: steps of
 * the clock without touching the machine's (case E-03). The file is mapped at start, so that the
 * shim makes no system call later, whatever filter there is then.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset;
static int (*real)(clockid_t, struct timespec *);

__attribute__((constructor)) static void shim_open(void)
{
	const char *path = getenv("SHIM_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*offset), PROT_READ, MAP_SHARED, fd, 0);

	if (page != MAP_FAILED)
		offset = page;
	if (fd >= 0)
		close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	int64_t ns;
	int err;

	if (!real)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	err = real(clock, ret_time);
	if (err || clock != CLOCK_REALTIME || !offset)
		return err;
	ns = ret_time->tv_sec * 1000000000LL + ret_time->tv_nsec + *offset;
	ret_time->tv_sec = ns / 1000000000LL;
	ret_time->tv_nsec = ns % 1000000000LL;
	return 0;
}
