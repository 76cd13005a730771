/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waits ROLE SECONDS: threads that wait in functions of their own, and log by their own clock how
 * often, how long and how long at most; one line of JSON at the end, {"event": "truth", "sites":
 * {function: {"count", "total", "longest"}}, "threads": N}, nanoseconds.
 *
 *   lock   a mutex that one thread holds for 5 ms in hold_five_ms and three ask for in ask_for_lock
 *   sleep  a thread that sleeps 1, 10 and 100 ms by turns
 *   pipe   a reader of a pipe into which something is written each 7 ms
 *   mixed  one thread with very many short waits, 70 % in short_a and 30 % in short_b, and six long
 *          sleeps, four in long_a and two in long_b
 *
 * How often: by the kernel's count of voluntary switches, since a lock may be waited for twice; the
 * longest is of waits that were one. What a thread ran, or waited for a CPU (the kernel's schedstat), is
 * taken off.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "burn.h"

/* All threads have one shape; few need their argument. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

enum { WAITERS = 3, MAX_SITES = 16, SHORT_US = 20 };

struct site {
	const char *name;
	uint64_t count, total, longest;
};

static struct site sites[MAX_SITES];
static atomic_int site_count;
static uint64_t end_ns;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int pipe_fds[2];
static atomic_int turn; /* of the two that wait for each other */
static _Thread_local uint64_t began, switches, used;
static _Thread_local int schedstat_fd;

static struct site *site_new(const char *name)
{
	struct site *site = &sites[atomic_fetch_add(&site_count, 1)];

	site->name = name;
	return site;
}

static uint64_t voluntary(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (uint64_t)usage.ru_nvcsw;
}

/* "CPU_NS DELAY_NS SLICES" of the calling thread: the second. */
static uint64_t delay(void)
{
	unsigned long long cpu, ns = 0;
	char text[128] = "";

	if (!schedstat_fd)
		schedstat_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	if (pread(schedstat_fd, text, sizeof(text) - 1, 0) > 0)
		sscanf(text, "%llu %llu", &cpu, &ns);
	return ns;
}

static void begin(void)
{
	switches = voluntary();
	began = wall_ns();
	used = delay() + cpu_ns(); /* within what is measured, as at the end: never more than that */
}

static void end(struct site *site)
{
	uint64_t less = delay() + cpu_ns() - used, ns = wall_ns() - began;
	uint64_t more = voluntary() - switches;

	if (!more)
		return; /* it did not wait */
	ns = ns > less ? ns - less : 0;
	site->count += more;
	site->total += ns;
	if (more == 1 && ns > site->longest)
		site->longest = ns;
}

static bool go_on(void)
{
	return wall_ns() < end_ns;
}

static void nap(uint64_t ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / 1000000000u),
			       .tv_nsec = (long)(ns % 1000000000u) };

	nanosleep(&ts, NULL);
}

/* ---- locks ---- */

__attribute__((noinline)) static void let_go(void)
{
	pthread_mutex_unlock(&mutex);
	KEEP_FRAME();
}

__attribute__((noinline)) static void hold_five_ms(void)
{
	pthread_mutex_lock(&mutex);
	nap(5000000);
	let_go();
	KEEP_FRAME();
}

__attribute__((noinline)) static void ask_for_lock(struct site *site)
{
	begin();
	pthread_mutex_lock(&mutex);
	end(site);
	pthread_mutex_unlock(&mutex);
	KEEP_FRAME();
}

static void *holder(void *unused)
{
	prctl(PR_SET_NAME, "holder");
	while (go_on()) {
		hold_five_ms();
		nap(3000000);
	}
	return NULL;
}

static void *waiter(void *unused)
{
	struct site *site = site_new("ask_for_lock");

	prctl(PR_SET_NAME, "waiter");
	while (go_on()) {
		ask_for_lock(site);
		nap(1000000);
	}
	return NULL;
}

#define DEFINE_NAP(function, ms)                                                                   \
	__attribute__((noinline)) static void function(struct site *site)                          \
	{                                                                                          \
		begin();                                                                           \
		nap((ms) * 1000000u);                                                              \
		end(site);                                                                         \
		KEEP_FRAME();                                                                      \
	}

DEFINE_NAP(nap_1, 1)
DEFINE_NAP(nap_10, 10)
DEFINE_NAP(nap_100, 100)

static void *sleeper(void *unused)
{
	struct site *one = site_new("nap_1"), *ten = site_new("nap_10"),
		    *hundred = site_new("nap_100");

	prctl(PR_SET_NAME, "sleeper");
	while (go_on()) {
		nap_1(one);
		nap_10(ten);
		nap_100(hundred);
	}
	return NULL;
}

__attribute__((noinline)) static bool read_slow_pipe(struct site *site)
{
	char byte;
	bool more;

	begin();
	more = read(pipe_fds[0], &byte, 1) == 1;
	end(site);
	KEEP_FRAME();
	return more;
}

static void *reader(void *unused)
{
	struct site *site = site_new("read_slow_pipe");

	prctl(PR_SET_NAME, "reader");
	while (read_slow_pipe(site))
		;
	return NULL;
}

static void *writer(void *unused)
{
	prctl(PR_SET_NAME, "writer");
	while (go_on()) {
		nap(7000000);
		if (write(pipe_fds[1], "x", 1) != 1)
			break;
	}
	close(pipe_fds[1]);
	return NULL;
}

/* ---- mixed ---- */

/* Hands over to the other and waits until it has handed back. */
static inline __attribute__((always_inline)) void hand_over(int mine)
{
	atomic_store(&turn, !mine);
	syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	while (atomic_load(&turn) != mine)
		syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, !mine, NULL, NULL, 0);
}

#define DEFINE_SHORT(function)                                                                     \
	__attribute__((noinline)) static void function(struct site *site)                          \
	{                                                                                          \
		hand_over(0);                                                                      \
		site->count++;                                                                     \
		KEEP_FRAME();                                                                      \
	}

DEFINE_SHORT(short_a)
DEFINE_SHORT(short_b)

#define DEFINE_LONG(function)                                                                      \
	__attribute__((noinline)) static void function(struct site *site, uint64_t ns)             \
	{                                                                                          \
		begin();                                                                           \
		nap(ns);                                                                           \
		end(site);                                                                         \
		KEEP_FRAME();                                                                      \
	}

DEFINE_LONG(long_a)
DEFINE_LONG(long_b)

static void *partner(void *unused)
{
	prctl(PR_SET_NAME, "partner");
	while (atomic_load(&turn) >= 0) {
		while (atomic_load(&turn) == 0)
			syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
		if (atomic_load(&turn) < 0)
			break;
		atomic_store(&turn, 0);
		syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	return NULL;
}

static void *mixed(void *argument)
{
	struct site *a = site_new("short_a"), *b = site_new("short_b"), *la = site_new("long_a"),
		    *lb = site_new("long_b");
	uint64_t length = *(uint64_t *)argument, seed = 88172645463325252ull;

	prctl(PR_SET_NAME, "mixed");
	for (int i = 0; i < 6; i++) {
		uint64_t until = wall_ns() + length / 12, counts = a->count + b->count, of_a = a->count;
		struct site both = { 0 };

		/* A log of each would take longer than the wait; they are alike, so their number tells. */
		begin();
		while (wall_ns() < until) {
			uint64_t pace = wall_ns() + SHORT_US * 1000;

			if (burn_random(&seed) % 10 < 7)
				short_a(a);
			else
				short_b(b);
			while (wall_ns() < pace)
				;
		}
		end(&both);
		counts = a->count + b->count - counts;
		of_a = a->count - of_a;
		a->total += both.total * of_a / (counts ? counts : 1);
		b->total += both.total * (counts - of_a) / (counts ? counts : 1);
		if (i % 3 < 2)
			long_a(la, length / 12);
		else
			long_b(lb, length / 12);
	}
	atomic_store(&turn, -1);
	syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	return NULL;
}

/* ---- all ---- */

static void print_truth(int threads)
{
	printf("{\"event\": \"truth\", \"pid\": %d, \"threads\": %d, \"sites\": {", getpid(), threads);
	for (int i = 0; i < site_count; i++) {
		struct site sum = sites[i];
		bool again = false;

		for (int k = 0; k < i; k++)
			again |= strcmp(sites[k].name, sum.name) == 0;
		if (again)
			continue;
		for (int k = i + 1; k < site_count; k++) {
			if (strcmp(sites[k].name, sum.name))
				continue;
			sum.count += sites[k].count;
			sum.total += sites[k].total;
			if (sites[k].longest > sum.longest)
				sum.longest = sites[k].longest;
		}
		printf("%s\"%s\": {\"count\": %llu, \"total\": %llu, \"longest\": %llu}", i ? ", " : "",
		       sum.name, (unsigned long long)sum.count, (unsigned long long)sum.total,
		       (unsigned long long)sum.longest);
	}
	printf("}}\n");
}

typedef void *(*thread_fn)(void *argument);

static const struct role {
	const char *name;
	thread_fn threads[WAITERS + 2]; /* NULL ends them */
} roles[] = {
	{ "lock", { holder, waiter, waiter, waiter } },
	{ "sleep", { sleeper } },
	{ "pipe", { reader, writer } },
	{ "mixed", { mixed, partner } },
	{ 0 },
};

/* On one CPU, and none pushes another from it: a hand-over is then a wait, as short as one can be. */
static void share_a_cpu(void)
{
	struct sched_param param = { 0 };
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	sched_setscheduler(0, SCHED_BATCH, &param);
}

int main(int argc, char **argv)
{
	const struct role *role = roles;
	pthread_t threads[WAITERS + 1];
	uint64_t length;
	int count = 0;

	while (argc == 3 && role->name && strcmp(role->name, argv[1]))
		role++;
	if (argc != 3 || !role->name || pipe(pipe_fds))
		return 2;
	length = (uint64_t)(atof(argv[2]) * 1e9);
	end_ns = wall_ns() + length;
	if (strcmp(role->name, "mixed") == 0)
		share_a_cpu();
	for (; role->threads[count]; count++) {
		if (pthread_create(&threads[count], NULL, role->threads[count], &length))
			return 1;
	}
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	print_truth(count);
	return 0;
}
