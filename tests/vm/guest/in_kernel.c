/* SPDX-License-Identifier: Apache-2.0 */
/*
 * in_kernel SECONDS: a program that is nearly always inside a system call, for samples in kernel
 * mode whose user stack must still be main > call_kernel.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static char block[1 << 20];

/* The instruction is here and not in libc, so that this function is the innermost frame. */
static __attribute__((noinline)) long call_kernel(int fd)
{
	long ret = SYS_read;
	char *frame = __builtin_frame_address(0); /* makes gcc set up a frame pointer */

	__asm__ volatile("syscall"
			 : "+a"(ret)
			 : "D"(fd), "S"(block), "d"(sizeof(block)), "b"(frame)
			 : "rcx", "r11", "memory");
	return ret;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 10);
	int fd = open("/dev/zero", O_RDONLY);

	if (fd < 0)
		return 1;
	while (time(NULL) < end) {
		if (call_kernel(fd) < 0)
			return 1;
	}
	return 0;
}
