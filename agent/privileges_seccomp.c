/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter of system calls, by libseccomp; see privileges.h.
 *
 * What is on the list was seen when the recorder and its server ran under strace on x86-64, and
 * what glibc may use in its place on other kernels and architectures; names that one of
 * these does not have are passed over. A refused call fails with EPERM like any other failure,
 * since an agent that runs for a year must not die of a call that a library took up lately.
 */
#include "agent/privileges.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* clang-format off */
static const char *const allowed[] = {
	/* the loop */
	"epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd2",
	"poll", "ppoll", "pselect6", "select", "signalfd4", "timerfd_create", "timerfd_gettime",
	"timerfd_settime",
	/* time */
	"clock_getres", "clock_gettime", "clock_nanosleep", "gettimeofday", "nanosleep", "time",
	/* files of targets, /proc, the store and its catalogue */
	"access", "close", "close_range", "dup", "dup3", "faccessat", "faccessat2", "fadvise64",
	"fallocate", "fchdir", "fchmod", "fchmodat", "fchown", "fcntl", "fdatasync", "flock",
	"fstat", "fstatfs", "fsync", "ftruncate", "getcwd", "getdents64", "lseek", "lstat",
	"mkdir", "mkdirat", "newfstatat", "open", "openat", "openat2", "pread64", "preadv",
	"pwrite64", "pwritev", "read", "readahead", "readlink", "readlinkat", "readv", "rename",
	"renameat", "renameat2", "rmdir", "sendfile", "stat", "statfs", "statx", "sync_file_range",
	"umask", "unlink", "unlinkat", "utimensat", "write", "writev",
	/* memory */
	"brk", "madvise", "mincore", "mremap", "munmap", "membarrier",
	/* sockets that exist: the server, notifications, uploads; new ones: see limited[] */
	"accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen",
	"recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt",
	"shutdown", "socketpair",
	/* CPUs that come, see limited[] for what is done to an event */
	"perf_event_open",
	/* itself: who it is, its threads, its end */
	"capget", "exit", "exit_group", "futex", "get_robust_list", "getegid", "geteuid", "getgid",
	"getpid", "getppid", "getrandom", "getrlimit", "getrusage", "gettid", "getuid", "getcpu",
	"pipe2", "restart_syscall", "rseq", "rt_sigaction", "rt_sigpending",
	"rt_sigprocmask", "rt_sigreturn", "rt_sigtimedwait", "sched_getaffinity", "sched_getparam",
	"sched_getscheduler", "sched_setaffinity", "sched_yield", "set_robust_list",
	"set_tid_address", "sigaltstack", "sysinfo", "times", "uname",
};
/* clang-format on */

/* Calls that are allowed only if (argument & mask) == value. */
static const struct {
	const char *name;
	unsigned argument;
	uint64_t mask, value;
} limited[] = {
	/* maps by descriptor, and more arrays of unwind rows; loading was done at the start */
	{ "bpf", 0, ~0ULL, BPF_MAP_CREATE },
	{ "bpf", 0, ~0ULL, BPF_MAP_LOOKUP_ELEM },
	{ "bpf", 0, ~0ULL, BPF_MAP_UPDATE_ELEM },
	{ "bpf", 0, ~0ULL, BPF_MAP_DELETE_ELEM },
	{ "bpf", 0, ~0ULL, BPF_MAP_GET_NEXT_KEY },
	{ "bpf", 0, ~0ULL, BPF_MAP_LOOKUP_AND_DELETE_ELEM },
	{ "bpf", 0, ~0ULL, BPF_MAP_LOOKUP_BATCH },
	{ "bpf", 0, ~0ULL, BPF_MAP_LOOKUP_AND_DELETE_BATCH },
	{ "bpf", 0, ~0ULL, BPF_MAP_UPDATE_BATCH },
	{ "bpf", 0, ~0ULL, BPF_MAP_DELETE_BATCH },
	{ "bpf", 0, ~0ULL, BPF_OBJ_GET_INFO_BY_FD },
	/* programs that are loaded: run, attached again after the governor took them off */
	{ "bpf", 0, ~0ULL, BPF_PROG_TEST_RUN },
	{ "bpf", 0, ~0ULL, BPF_RAW_TRACEPOINT_OPEN },
	{ "bpf", 0, ~0ULL, BPF_LINK_CREATE },
	{ "bpf", 0, ~0ULL, BPF_ITER_CREATE },
	/* perf events: all their requests have this letter */
	{ "ioctl", 1, 0xff00, '$' << 8 },
	/* no executable memory */
	{ "mmap", 2, PROT_EXEC, 0 },
	{ "mprotect", 1, PROT_EXEC, 0 },
	/* threads, but no processes */
	{ "clone", 0, CLONE_THREAD, CLONE_THREAD },
	{ "prlimit64", 0, ~0ULL, 0 }, /* its own limits */
	{ "prctl", 0, ~0ULL, PR_SET_NAME },
	{ "prctl", 0, ~0ULL, PR_CAPBSET_READ },
	{ "prctl", 0, ~0ULL, PR_GET_NO_NEW_PRIVS },
	{ "socket", 0, ~0ULL, AF_UNIX },
	{ "socket", 0, ~0ULL, AF_INET },
	{ "socket", 0, ~0ULL, AF_INET6 },
};

/* A failed rule means that this architecture has no such call, or no kernel memory for it. */
static int allow(scmp_filter_ctx filter, const char *name, unsigned count,
		 const struct scmp_arg_cmp *condition)
{
	int number = seccomp_syscall_resolve_name(name), err;

	if (number == __NR_SCMP_ERROR)
		return 0;
	err = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, count, condition);
	return err == -EDOM ? 0 : err;
}

/* Signals to itself only: abort() and raise(). */
static int allow_own_signals(scmp_filter_ctx filter)
{
	struct scmp_arg_cmp self = SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid());
	int err = allow(filter, "tgkill", 1, &self);

	return err ? err : allow(filter, "kill", 1, &self);
}

static int add_rules(scmp_filter_ctx filter)
{
	int err = allow_own_signals(filter), clone3 = seccomp_syscall_resolve_name("clone3");

	for (size_t i = 0; !err && i < sizeof(allowed) / sizeof(allowed[0]); i++)
		err = allow(filter, allowed[i], 0, NULL);
	for (size_t i = 0; !err && i < sizeof(limited) / sizeof(limited[0]); i++) {
		struct scmp_arg_cmp condition = SCMP_CMP(limited[i].argument, SCMP_CMP_MASKED_EQ,
							 limited[i].mask, limited[i].value);

		err = allow(filter, limited[i].name, 1, &condition);
	}
	/* Its flags lie in memory, where no filter can look; glibc then takes clone. */
	if (!err && clone3 != __NR_SCMP_ERROR)
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), clone3, 0);
	return err;
}

int privileges_seccomp(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int err = filter ? 0 : -ENOMEM;

	if (!err)
		err = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
	if (!err)
		err = seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1);
	if (!err)
		err = add_rules(filter);
	if (!err)
		err = seccomp_load(filter);
	seccomp_release(filter);
	return err == -EINVAL ? -ENOSYS : err;
}
