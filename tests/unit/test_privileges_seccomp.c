/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/privileges: the filter of system calls. */
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#include "agent/privileges.h"
#include "privileges_lab.h"

static void *thread_body(void *argument)
{
	*(int *)argument = 1;
	return NULL;
}

static void files_work(void)
{
	char dir[] = "/tmp/sonde-priv-XXXXXX", a[64], b[64];
	struct stat st;
	int fd;

	CHECK(mkdtemp(dir));
	snprintf(a, sizeof(a), "%s/a", dir);
	snprintf(b, sizeof(b), "%s/b", dir);
	fd = open(a, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, "x", 1) == 1 && fsync(fd) == 0 && fdatasync(fd) == 0);
	CHECK(flock(fd, LOCK_EX | LOCK_NB) == 0 && ftruncate(fd, 4096) == 0);
	CHECK(pwrite(fd, "y", 1, 7) == 1 && pread(fd, dir, 0, 0) == 0 && fstat(fd, &st) == 0);
	CHECK(rename(a, b) == 0 && unlink(b) == 0 && close(fd) == 0);
	CHECK(mkdir(a, 0700) == 0 && rmdir(a) == 0 && rmdir(dir) == 0);
	CHECK(readlink("/proc/self/exe", a, sizeof(a)) > 0 && access("/proc", R_OK) == 0);
}

static void loop_works(void)
{
	struct itimerspec when = { .it_value.tv_nsec = 1000 };
	struct epoll_event event = { .events = EPOLLIN };
	sigset_t set;
	int epoll = epoll_create1(EPOLL_CLOEXEC), timer, signals;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	CHECK(epoll >= 0 && timer >= 0 && signals >= 0);
	CHECK(timerfd_settime(timer, 0, &when, NULL) == 0);
	CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event) == 0);
	CHECK(epoll_wait(epoll, &event, 1, 1000) == 1);
	close(epoll);
	close(timer);
	close(signals);
}

static void sockets_work(void)
{
	struct sockaddr_un nobody = { .sun_family = AF_UNIX, .sun_path = "/nonexistent" };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK(sendto(fd, "x", 1, 0, (struct sockaddr *)&nobody, sizeof(nobody)) == -1 &&
	      errno == ENOENT);
	close(fd);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && listen(fd, 1) == 0);
	CHECK(accept4(fd, NULL, NULL, SOCK_CLOEXEC) == -1 && errno == EAGAIN);
	close(fd);
}

static void memory_works(void)
{
	void *page =
		mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(page != MAP_FAILED && madvise(page, 1 << 20, MADV_DONTNEED) == 0);
	CHECK(mprotect(page, 4096, PROT_READ) == 0 && munmap(page, 1 << 20) == 0);
}

static void harm_is_refused(void)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_HASH, .key_size = 4, .value_size = 4, .max_entries = 1
	};
	char *const argv[] = { "true", NULL };

	REFUSED(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	REFUSED(mount("none", "/mnt", "tmpfs", 0, NULL));
	REFUSED(execve("/bin/true", argv, NULL));
	REFUSED(fork());
	REFUSED(kill(getppid(), 0));
	REFUSED(syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr)));
	REFUSED(syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0));
	REFUSED(syscall(SYS_init_module, NULL, 0, ""));
	REFUSED(syscall(SYS_setns, -1, 0));
	REFUSED(syscall(SYS_unshare, CLONE_NEWNS));
	REFUSED(syscall(SYS_io_uring_setup, 1, NULL));
	REFUSED(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0));
	REFUSED(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
	REFUSED(ioctl(0, 0x5412 /* TIOCSTI */, "x"));
	REFUSED(prctl(PR_SET_DUMPABLE, 0));
	REFUSED(setuid(getuid()));
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		   0) == MAP_FAILED &&
	      errno == EPERM);
}

static void filter(void)
{
	CHECK(privileges_seccomp() == 0);
	CHECK(caps_of("Seccomp") == 2);
	files_work();
	loop_works();
	sockets_work();
	memory_works();
	harm_is_refused();
	CHECK(privileges_seccomp() != 0); /* for good: no second one either */
}

static void test_filter(void **state)
{
	in_child(filter);
}

static void filter_and_thread(void)
{
	pthread_t thread;
	int ran = 0;

	CHECK(privileges_seccomp() == 0);
	CHECK(pthread_create(&thread, NULL, thread_body, &ran) == 0);
	CHECK(pthread_join(thread, NULL) == 0 && ran);
}

static void test_thread(void **state)
{
	in_child(filter_and_thread);
}

static void *wait_for_byte(void *argument)
{
	int *ends = argument;
	char byte;

	CHECK(read(ends[0], &byte, 1) == 1);
	REFUSED(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	return NULL;
}

/* A thread that ran before is under the filter too. */
static void filter_of_threads(void)
{
	pthread_t thread;
	int ends[2];

	CHECK(pipe2(ends, O_CLOEXEC) == 0);
	CHECK(pthread_create(&thread, NULL, wait_for_byte, ends) == 0);
	CHECK(privileges_seccomp() == 0);
	CHECK(write(ends[1], "x", 1) == 1 && pthread_join(thread, NULL) == 0);
}

static void test_filter_of_threads(void **state)
{
	in_child(filter_of_threads);
}

/* What the agent does for years: its maps, and events of CPUs that come back. */
static void kernel_side(void)
{
	union bpf_attr make = {
		.map_type = BPF_MAP_TYPE_HASH, .key_size = 4, .value_size = 4, .max_entries = 8
	};
	union bpf_attr use = { 0 };
	struct perf_event_attr event = { .size = sizeof(event),
					 .type = PERF_TYPE_SOFTWARE,
					 .config = PERF_COUNT_SW_CPU_CLOCK,
					 .disabled = 1,
					 .sample_freq = 1,
					 .freq = 1 };
	uint32_t key = 1, value = 2;
	int map = (int)syscall(SYS_bpf, BPF_MAP_CREATE, &make, sizeof(make)), fd;

	CHECK(map >= 0);
	CHECK(privileges_drop() == 0 && privileges_seccomp() == 0);
	use.map_fd = (uint32_t)map;
	use.key = (uintptr_t)&key;
	use.value = (uintptr_t)&value;
	CHECK(syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &use, sizeof(use)) == 0);
	value = 0;
	CHECK(syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &use, sizeof(use)) == 0 && value == 2);
	use.value = 0;
	CHECK(syscall(SYS_bpf, BPF_MAP_DELETE_ELEM, &use, sizeof(use)) == 0);
	fd = (int)syscall(SYS_perf_event_open, &event, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	CHECK(fd >= 0 && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	CHECK(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0 && close(fd) == 0);
}

static void test_kernel_side(void **state)
{
	need_root();
	in_child(kernel_side);
}

/* abort() must still end the process with SIGABRT. */
static void test_abort(void **state)
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		signal(SIGABRT, SIG_DFL);
		if (privileges_seccomp() == 0)
			abort();
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_thread),
		cmocka_unit_test(test_filter_of_threads),
		cmocka_unit_test(test_kernel_side),
		cmocka_unit_test(test_abort),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
