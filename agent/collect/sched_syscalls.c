/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread waits for in a system call, as a table of numbers; those of this architecture.
 * Calls that are not listed block for "other".
 */
#include <string.h>
#include <sys/syscall.h>

#include "agent/collect/sched_private.h"

struct row {
	long number;
	__u8 reason;
};

static const struct row rows[] = {
	{ SYS_futex, SONDE_SCHED_LOCK },
	{ 449 /* futex_waitv */, SONDE_SCHED_LOCK },
	{ 455 /* futex_wait */, SONDE_SCHED_LOCK },
	{ SYS_flock, SONDE_SCHED_LOCK },
	{ SYS_fcntl, SONDE_SCHED_LOCK },
	{ SYS_semop, SONDE_SCHED_LOCK },
	{ SYS_semtimedop, SONDE_SCHED_LOCK },
	{ SYS_epoll_pwait, SONDE_SCHED_POLL },
	{ 441 /* epoll_pwait2 */, SONDE_SCHED_POLL },
	{ SYS_ppoll, SONDE_SCHED_POLL },
	{ SYS_pselect6, SONDE_SCHED_POLL },
	{ SYS_io_getevents, SONDE_SCHED_POLL },
	{ SYS_io_pgetevents, SONDE_SCHED_POLL },
	{ SYS_io_uring_enter, SONDE_SCHED_POLL },
#ifdef SYS_epoll_wait /* older architectures have both */
	{ SYS_epoll_wait, SONDE_SCHED_POLL },
	{ SYS_poll, SONDE_SCHED_POLL },
	{ SYS_select, SONDE_SCHED_POLL },
	{ SYS_vfork, SONDE_SCHED_CHILD },
#endif
	{ SYS_accept, SONDE_SCHED_SOCKET },
	{ SYS_accept4, SONDE_SCHED_SOCKET },
	{ SYS_connect, SONDE_SCHED_SOCKET },
	{ SYS_recvfrom, SONDE_SCHED_SOCKET },
	{ SYS_recvmsg, SONDE_SCHED_SOCKET },
	{ SYS_recvmmsg, SONDE_SCHED_SOCKET },
	{ SYS_sendto, SONDE_SCHED_SOCKET },
	{ SYS_sendmsg, SONDE_SCHED_SOCKET },
	{ SYS_sendmmsg, SONDE_SCHED_SOCKET },
	{ SYS_read, SONDE_SCHED_BY_FILE },
	{ SYS_readv, SONDE_SCHED_BY_FILE },
	{ SYS_preadv2, SONDE_SCHED_BY_FILE },
	{ SYS_write, SONDE_SCHED_BY_FILE },
	{ SYS_writev, SONDE_SCHED_BY_FILE },
	{ SYS_pwritev2, SONDE_SCHED_BY_FILE },
	{ SYS_splice, SONDE_SCHED_BY_FILE },
	{ SYS_vmsplice, SONDE_SCHED_BY_FILE },
	{ SYS_sendfile, SONDE_SCHED_BY_FILE },
	{ SYS_nanosleep, SONDE_SCHED_SLEEP },
	{ SYS_clock_nanosleep, SONDE_SCHED_SLEEP },
	{ SYS_wait4, SONDE_SCHED_CHILD },
	{ SYS_waitid, SONDE_SCHED_CHILD },
	{ SYS_clone, SONDE_SCHED_CHILD },  /* with CLONE_VFORK */
	{ 435 /* clone3 */, SONDE_SCHED_CHILD },
	{ SYS_restart_syscall, SONDE_SCHED_RESTART },
};

void sched_syscalls_fill(__u8 reasons[SONDE_SCHED_SYSCALLS])
{
	memset(reasons, SONDE_SCHED_OTHER, SONDE_SCHED_SYSCALLS);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		reasons[rows[i].number & (SONDE_SCHED_SYSCALLS - 1)] = rows[i].reason;
}
