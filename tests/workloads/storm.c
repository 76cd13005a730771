/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storm [-t seconds] [-r rate] [-m plain|copies|rewrite] [-k runs] [-d dir] [-f prefix]
 *       child [child_b]
 * starts `rate` processes a second, each of which burns 2 to 4 ms of CPU in a known function.
 * The names of files that it makes begin with the prefix.
 *
 *   plain    runs `child` where it lies
 *   copies   makes a new file of `child` in dir each k runs: seen first during the storm
 *   rewrite  SLOTS files in dir whose content is child or child_b, overwritten in place (same
 *            inode) each k runs of that file, while nobody runs it
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "burn.h"

DEFINE_BURN(storm_calibrate)

enum { SLOTS = 8, MAX_CHILD_BYTES = 4 << 20, PATH_BYTES = 512 };

struct slot {
	pid_t running; /* 0: nobody */
	unsigned int runs;
	int content; /* of children[] */
};

static struct {
	double seconds;
	unsigned int rate, every;
	char mode; /* p, c, r */
	const char *dir, *prefix;
	const char *children[2];
} opt = { .rate = 200, .every = 20, .mode = 'p', .dir = ".", .prefix = "storm" };

static struct slot slots[SLOTS];
static unsigned long launched, finished, failed, files_made, rewrites;

static void copy_file(const char *from, const char *to)
{
	static char bytes[MAX_CHILD_BYTES];
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	ssize_t n = in < 0 ? -1 : read(in, bytes, sizeof(bytes));

	if (out < 0 || n <= 0 || write(out, bytes, (size_t)n) != n)
		burn_die(to);
	close(in);
	close(out);
}

static void reap(bool block)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, block ? 0 : WNOHANG)) > 0) {
		finished++;
		failed += !WIFEXITED(status) || WEXITSTATUS(status);
		for (int i = 0; i < SLOTS; i++)
			if (slots[i].running == pid)
				slots[i].running = 0;
	}
}

/* Waits for one process of its own to end; the slot's next content must not find it busy. */
static void wait_slot(struct slot *s)
{
	while (s->running) {
		siginfo_t info;

		if (waitid(P_PID, (id_t)s->running, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
			continue;
		reap(false);
	}
}

/* The path to run next; *ret_slot is where to note who runs it. */
static const char *next_file(struct slot **ret_slot)
{
	static char path[PATH_BYTES];
	struct slot *s = &slots[launched % SLOTS];

	*ret_slot = s;
	if (opt.mode == 'p')
		return opt.children[0];
	if (opt.mode == 'c') {
		if (launched % opt.every == 0)
			files_made++;
		snprintf(path, sizeof(path), "%s/%s_fresh_%lu", opt.dir, opt.prefix, files_made);
		if (launched % opt.every == 0)
			copy_file(opt.children[0], path);
		return path;
	}
	snprintf(path, sizeof(path), "%s/%s_slot_%d", opt.dir, opt.prefix, (int)(s - slots));
	wait_slot(s);
	if (s->runs++ % opt.every == 0) {
		s->content = !s->content;
		copy_file(opt.children[s->content], path);
		rewrites++;
	}
	return path;
}

static void launch(uint64_t iters_per_us, uint64_t *seed)
{
	struct slot *s;
	const char *path = next_file(&s);
	char iters[32];
	char *argv[] = { (char *)path, iters, NULL };
	uint64_t us = 2000 + burn_random(seed) % 2000;
	pid_t pid;

	snprintf(iters, sizeof(iters), "%llu", (unsigned long long)(us * iters_per_us));
	pid = fork();
	if (pid < 0)
		burn_die("fork");
	if (pid == 0) {
		execv(path, argv);
		_exit(127);
	}
	s->running = pid;
	launched++;
}

static void print_truth(double wall)
{
	struct rusage ru;

	getrusage(RUSAGE_CHILDREN, &ru);
	printf("{\"event\":\"truth\",\"pid\":%d,\"launched\":%lu,\"failed\":%lu,\"files\":%lu,"
	       "\"rewrites\":%lu,\"wall_s\":%.3f,\"cpu_ns\":%llu}\n",
	       (int)getpid(), launched, failed, files_made, rewrites, wall,
	       (unsigned long long)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000000ULL +
		       (unsigned long long)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1000ULL);
}

static void parse_args(int argc, char **argv)
{
	int o;

	while ((o = getopt(argc, argv, "t:r:m:k:d:f:")) != -1) {
		if (o == 't')
			opt.seconds = atof(optarg);
		else if (o == 'r')
			opt.rate = (unsigned int)atoi(optarg);
		else if (o == 'm')
			opt.mode = optarg[0];
		else if (o == 'k')
			opt.every = (unsigned int)atoi(optarg);
		else if (o == 'd')
			opt.dir = optarg;
		else if (o == 'f')
			opt.prefix = optarg;
		else
			exit(2);
	}
	if (optind >= argc || !opt.rate || !opt.every || !strchr("pcr", opt.mode) ||
	    (opt.mode == 'r' && optind + 1 >= argc))
		exit(2);
	opt.children[0] = argv[optind];
	opt.children[1] = argv[optind + 1];
}

int main(int argc, char **argv)
{
	uint64_t iters_per_us, seed = 0x5eed, start, next, step;

	parse_args(argc, argv);
	burn_catch_signals();
	iters_per_us = burn_calibrate(storm_calibrate);
	step = 1000000000ULL / opt.rate;
	start = next = wall_ns();
	burn_say_ready();
	while (!burn_stop &&
	       (opt.seconds <= 0 || wall_ns() - start < (uint64_t)(opt.seconds * 1e9))) {
		struct timespec at = { .tv_sec = (time_t)(next / 1000000000ULL),
				       .tv_nsec = (long)(next % 1000000000ULL) };

		launch(iters_per_us, &seed);
		reap(false);
		next += step;
		if (wall_ns() > next + step * 20) /* the machine is too slow: do not pile up */
			next = wall_ns();
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	}
	while (finished < launched)
		reap(true);
	print_truth((double)(wall_ns() - start) / 1e9);
	return 0;
}
