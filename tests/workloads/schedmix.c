/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedmix ROLE SECONDS [ARGUMENT]: one thing that a scheduler sees, for so long, and at the end
 * a line of JSON with what the program itself measured, in nanoseconds:
 *   elapsed  from main() to the end
 *   waited   around the calls that block, less what the thread waited for a CPU or ran meanwhile
 *            (the kernel's schedstat)
 *   cpu, delay   CPU time; time spent waiting for a CPU (schedstat); of all its threads
 *   late     how much later than asked for its naps ended
 *   dropped  time in the call that drops pages, which waits for other CPUs to drop theirs
 * The role is also the name of its threads. Each thread writes its own log; they are added.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* All roles have one shape; few need their log. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

enum { MAX_THREADS = 64, READ_BYTES = 1 << 20, CHILD_US = 300, RT_PRIORITY = 10 };
enum { FAULT_BYTES = 32 << 20, FAULT_STEP = 256 << 10 };

struct log {
	uint64_t cpu, delay, waited, late, dropped;
	int schedstat;
};

static uint64_t end_ns;
static const char *role, *argument;
static struct log logs[MAX_THREADS];

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "schedmix %s: %s: %s\n", role, what, strerror(errno));
	exit(1);
}

/* "CPU_NS DELAY_NS SLICES" of the calling thread. */
static void schedstat(struct log *log, uint64_t *cpu, uint64_t *delay)
{
	unsigned long long a, b;
	char text[128];
	ssize_t n;

	if (!log->schedstat)
		log->schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	n = pread(log->schedstat, text, sizeof(text) - 1, 0);
	if (n <= 0)
		die("schedstat");
	text[n] = 0;
	if (sscanf(text, "%llu %llu", &a, &b) != 2)
		die("schedstat");
	*cpu = a;
	*delay = b;
}

static bool go_on(void)
{
	return now_ns() < end_ns;
}

static uint64_t spin_ns(uint64_t ns)
{
	uint64_t until = now_ns() + ns, n = 0;

	while (now_ns() < until)
		n++;
	return n;
}

static void nap(struct log *log, uint64_t ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / 1000000000u),
			       .tv_nsec = (long)(ns % 1000000000u) };
	uint64_t due = now_ns() + ns, now;

	nanosleep(&ts, NULL);
	now = now_ns();
	log->late += now > due ? now - due : 0;
}

/* ---- what threads do, until the end ---- */

static void busy(struct log *log)
{
	while (go_on())
		spin_ns(1000000);
}

/* As much as the argument says (millions of steps), however long it takes. */
static void worker(struct log *log)
{
	uint64_t left = strtoull(argument, NULL, 10) * 1000000;

	while (left--)
		__asm__ volatile("");
}

/* Wakes up each so many microseconds: two switches each time beside something busy. */
static void pacer(struct log *log)
{
	uint64_t next = now_ns(), step = strtoull(argument, NULL, 10) * 1000;

	prctl(PR_SET_TIMERSLACK, 1);
	while (go_on()) {
		struct timespec ts;

		next += step;
		ts = (struct timespec){ .tv_sec = (time_t)(next / 1000000000u),
					.tv_nsec = (long)(next % 1000000000u) };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	}
}

static void sleeper(struct log *log)
{
	uint64_t ns = strtoull(argument, NULL, 10) * 1000000;

	while (go_on())
		nap(log, ns);
}

static void real_time(struct log *log)
{
	struct sched_param param = { .sched_priority = RT_PRIORITY };

	if (sched_setscheduler(0, SCHED_FIFO, &param))
		die("SCHED_FIFO");
	while (go_on()) {
		nap(log, 9000000);
		spin_ns(1000000);
	}
}

static void reader(struct log *log)
{
	int fd = open(argument, O_RDONLY | O_DIRECT | O_CLOEXEC);
	void *buffer;
	off_t at = 0;

	if (fd < 0 || posix_memalign(&buffer, 4096, READ_BYTES))
		die(argument);
	while (go_on()) {
		ssize_t n = pread(fd, buffer, READ_BYTES, at);

		if (n < 0)
			die("read");
		at = n < READ_BYTES ? 0 : at + n;
	}
}

/* Touches pages that are on the disk only. */
static void faulter(struct log *log)
{
	int fd = open(argument, O_RDONLY | O_CLOEXEC);
	char *map = mmap(NULL, FAULT_BYTES, PROT_READ, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED || madvise(map, FAULT_BYTES, MADV_RANDOM))
		die(argument);
	while (go_on()) {
		uint64_t begin = now_ns();

		if (madvise(map, FAULT_BYTES, MADV_DONTNEED) ||
		    posix_fadvise(fd, 0, FAULT_BYTES, POSIX_FADV_DONTNEED))
			die("dontneed");
		log->dropped += now_ns() - begin;
		for (size_t at = 0; at < FAULT_BYTES && go_on(); at += FAULT_STEP)
			*(volatile char *)(map + at);
	}
}

static int pair_fds[2][2]; /* of each direction */

static void ping(struct log *log)
{
	bool first = log == &logs[0];
	char byte = 0;

	while (first ? go_on() : true) {
		if (first && write(pair_fds[0][1], &byte, 1) != 1)
			return;
		if (read(pair_fds[first][0], &byte, 1) != 1)
			return; /* the other one has ended */
		if (!first && write(pair_fds[1][1], &byte, 1) != 1)
			return;
	}
	close(pair_fds[0][1]);
}

static uint32_t turn;

static void futex_ping(struct log *log)
{
	uint32_t mine = log == &logs[0] ? 0 : 1;
	struct timespec limit = { .tv_sec = 1 };

	while (go_on()) {
		uint32_t seen = __atomic_load_n(&turn, __ATOMIC_ACQUIRE);

		if ((seen & 1) == mine) {
			__atomic_add_fetch(&turn, 1, __ATOMIC_RELEASE);
			syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		} else {
			syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, seen, &limit, NULL, 0);
		}
	}
	__atomic_add_fetch(&turn, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pool_work = PTHREAD_COND_INITIALIZER;

static void idle_pool(struct log *log)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += (time_t)((end_ns - now_ns()) / 1000000000u);
	pthread_mutex_lock(&pool_lock);
	while (pthread_cond_timedwait(&pool_work, &pool_lock, &until) == 0)
		;
	pthread_mutex_unlock(&pool_lock);
}

static void poller(struct log *log)
{
	while (go_on())
		poll(NULL, 0, 20);
}

static void forker(struct log *log)
{
	while (go_on()) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (pid == 0) {
			spin_ns(CHILD_US * 1000);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

/* The parent waits uninterruptibly until the child has ended. */
static void vforker(struct log *log)
{
	while (go_on()) {
		pid_t pid = vfork();

		if (pid == 0) {
			nap(log, 30000000);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

struct role_row {
	const char *name;
	void (*run)(struct log *log);
	int threads;
};

static const struct role_row roles[] = {
	{ "busy", busy, 1 },
	{ "twins", busy, 2 },
	{ "sleep", sleeper, 1 },
	{ "rt", real_time, 1 },
	{ "read", reader, 1 },
	{ "pipe", ping, 2 },
	{ "socket", ping, 2 },
	{ "lock", futex_ping, 2 },
	{ "pool", idle_pool, 32 },
	{ "poll", poller, 1 },
	{ "fault", faulter, 1 },
	{ "work", worker, 1 },
	{ "pace", pacer, 1 },
	{ "child", forker, 1 },
	{ "vfork", vforker, 1 },
	{ NULL, NULL, 0 },
};

/* ---- threads and their logs ---- */

static const struct role_row *chosen;

/* All that is neither running nor waiting for a CPU is waiting for what the role waits for. */
static void *thread_main(void *context)
{
	struct log *log = context;
	uint64_t cpu, delay, cpu_end, delay_end, start = now_ns(), elapsed;

	schedstat(log, &cpu, &delay);
	chosen->run(log);
	schedstat(log, &cpu_end, &delay_end);
	elapsed = now_ns() - start;
	log->cpu = cpu_end - cpu;
	log->delay = delay_end - delay;
	log->waited = elapsed > log->cpu + log->delay ? elapsed - log->cpu - log->delay : 0;
	return NULL;
}

static void open_pair(bool sockets)
{
	for (int i = 0; i < 2; i++) {
		if (sockets ? socketpair(AF_UNIX, SOCK_STREAM, 0, pair_fds[i]) : pipe(pair_fds[i]))
			die("pair");
	}
}

int main(int argc, char **argv)
{
	pthread_t threads[MAX_THREADS];
	uint64_t start = now_ns();
	struct log all = { 0 };

	if (argc < 3)
		return 2;
	role = argv[1];
	argument = argc > 3 ? argv[3] : "0";
	for (chosen = roles; chosen->name && strncmp(chosen->name, role, strlen(chosen->name)); chosen++)
		;
	if (!chosen->name)
		return 2;
	end_ns = start + (uint64_t)(atof(argv[2]) * 1e9);
	prctl(PR_SET_NAME, role);
	open_pair(strcmp(chosen->name, "socket") == 0);
	for (int i = 1; i < chosen->threads; i++) {
		if (pthread_create(&threads[i], NULL, thread_main, &logs[i]))
			die("thread");
	}
	thread_main(&logs[0]);
	for (int i = 1; i < chosen->threads; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < chosen->threads; i++) {
		all.cpu += logs[i].cpu;
		all.delay += logs[i].delay;
		all.waited += logs[i].waited;
		all.late += logs[i].late;
		all.dropped += logs[i].dropped;
	}
	printf("{\"role\": \"%s\", \"pid\": %d, \"threads\": %d, \"elapsed\": %llu, \"cpu\": %llu, "
	       "\"delay\": %llu, \"waited\": %llu, \"late\": %llu, \"dropped\": %llu}\n",
	       role, getpid(), chosen->threads, (unsigned long long)(now_ns() - start),
	       (unsigned long long)all.cpu, (unsigned long long)all.delay,
	       (unsigned long long)all.waited, (unsigned long long)all.late,
	       (unsigned long long)all.dropped);
	return 0;
}
