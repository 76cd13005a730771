/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jitdump [-t seconds] [-d dir] [-m] [-w] [-c ms]: runs code it wrote into anonymous memory and
 * records it as a jitdump, <dir>/jit-<its own pid>.dump (default /tmp), mapped as the format wants.
 *
 * Without -c: three functions in the shares 60, 30 and 10. The place of the first had another
 * function before, the third has moved there; both is in the file, which grows while they run.
 * -c: one place for ever new functions, each for `ms`. The thread is named after the function that
 * runs, so that each sample carries its own truth.
 * -m: a perf map, /tmp/perf-<pid>.map, in place of the jitdump; -w: written anew at each turn,
 * in place of growing.
 */
#include <pthread.h>
#include <sys/prctl.h>

#include "template.h"

enum { FUNCTIONS = 3, SPACING = 0x400, MAPPED = 0x1000, PREFIX = 16 };

static const char *const names[FUNCTIONS] = { "jd_hot_60 app.js:10", "Lapp/Main;.hot_30([BI)V",
					      "jd_hot_10" };
static const char *const shown[FUNCTIONS] = { "jd_hot_60 app.js:10", "app.Main.hot_30(byte[], int)",
					      "jd_hot_10" };
static const unsigned int weights[FUNCTIONS] = { 60, 30, 10 };

static FILE *file;
static char path[256];
static bool is_map, is_rewritten;
static uint8_t *code;
static uint64_t seconds_ns, turn_ns, iters;

static void put(const void *bytes, size_t size)
{
	if (fwrite(bytes, 1, size, file) != size)
		burn_die(path);
}

static void put32(uint32_t n)
{
	put(&n, sizeof(n));
}

static void put64(uint64_t n)
{
	put(&n, sizeof(n));
}

static void put_prefix(uint32_t id, size_t size)
{
	put32(id);
	put32((uint32_t)(PREFIX + size));
	put64(wall_ns());
}

static void put_place(const void *addr)
{
	put32((uint32_t)getpid());
	put32((uint32_t)getpid());
	put64((uintptr_t)addr);
}

static void open_file(const char *dir)
{
	snprintf(path, sizeof(path), is_map ? "%s/perf-%d.map" : "%s/jit-%d.dump",
		 is_map ? "/tmp" : dir, (int)getpid());
	file = fopen(path, "w+e");
	if (!file)
		burn_die(path);
	if (is_map)
		return;
	put32(0x4a695444);
	put32(1);
	put32(40);
	put32(TEMPLATE_MACHINE);
	put32(0);
	put32((uint32_t)getpid());
	put64(wall_ns());
	put64(0);
	fflush(file);
	if (mmap(NULL, MAPPED, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file), 0) == MAP_FAILED)
		burn_die("mmap");
}

static void tell_load(const uint8_t *addr, const char *name)
{
	if (is_map && is_rewritten) {
		rewind(file);
		if (ftruncate(fileno(file), 0))
			burn_die(path);
	}
	if (is_map) {
		fprintf(file, "%llx %zx %s\n", (unsigned long long)(uintptr_t)addr, template_size(),
			name);
	} else {
		put_prefix(0, 40 + strlen(name) + 1 + template_size());
		put_place(addr);
		put64((uintptr_t)addr);
		put64(template_size());
		put64(1);
		put(name, strlen(name) + 1);
		put(addr, template_size());
	}
	fflush(file);
}

static void tell_move(const uint8_t *from, const uint8_t *to)
{
	put_prefix(1, 48);
	put_place(to);
	put64((uintptr_t)from);
	put64((uintptr_t)to);
	put64(template_size());
	put64(1);
	fflush(file);
}

static void write_code(void)
{
	code = mmap(NULL, 0x2000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		burn_die("mmap");
	for (int k = 0; k < FUNCTIONS; k++)
		memcpy(code + k * SPACING, __start_burn_code, template_size());
	if (mprotect(code, 0x2000, PROT_READ | PROT_EXEC))
		burn_die("mprotect");
	__builtin___clear_cache((char *)code, (char *)code + 0x2000);
	iters = burn_calibrate((burn_fn)(uintptr_t)code);
}

static bool is_over(uint64_t end)
{
	return burn_stop || (end && wall_ns() >= end);
}

static void run_shares(uint64_t end)
{
	uint64_t took[FUNCTIONS] = { 0 }, seed = 77;

	tell_load(code, "jd_gone");
	tell_load(code, names[0]);
	burn_say_ready();
	tell_load(code + SPACING, names[1]);
	tell_load(code + 0x1800, names[2]);
	if (!is_map)
		tell_move(code + 0x1800, code + 2 * SPACING);
	else
		tell_load(code + 2 * SPACING, names[2]);
	while (!is_over(end)) {
		for (int k = 0; k < FUNCTIONS; k++) {
			uint64_t us = weights[k] * (3 + burn_random(&seed) % 15), start = cpu_ns();

			((burn_fn)(uintptr_t)(code + k * SPACING))(us * iters);
			took[k] += cpu_ns() - start;
		}
	}
	printf("{\"event\":\"truth\",\"pid\":%d,\"functions\":{\"%s\":%llu,\"%s\":%llu,\"%s\":%llu}"
	       "}\n",
	       (int)getpid(), shown[0], (unsigned long long)took[0], shown[1],
	       (unsigned long long)took[1], shown[2], (unsigned long long)took[2]);
}

static void *run_turns(void *end_ptr)
{
	uint64_t end = *(uint64_t *)end_ptr;
	unsigned int turn = 0;
	char name[16]; /* as long as a thread's name */

	burn_say_ready();
	while (!is_over(end)) {
		uint64_t turn_end = wall_ns() + turn_ns;

		snprintf(name, sizeof(name), "turn_%u", turn++);
		tell_load(code, name);
		prctl(PR_SET_NAME, name);
		while (wall_ns() < turn_end && !burn_stop)
			((burn_fn)(uintptr_t)code)(iters * 50);
		prctl(PR_SET_NAME, "jitdump");
	}
	printf("{\"event\":\"truth\",\"pid\":%d,\"turns\":%u}\n", (int)getpid(), turn);
	return NULL;
}

/* Not in the first thread: its name is that of the process. */
static void run_turns_apart(uint64_t end)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_turns, &end))
		burn_die("pthread_create");
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	const char *dir = "/tmp";
	int opt;

	while ((opt = getopt(argc, argv, "t:d:mwc:")) != -1) {
		if (opt == 't')
			seconds_ns = (uint64_t)(atof(optarg) * 1e9);
		else if (opt == 'd')
			dir = optarg;
		else if (opt == 'm')
			is_map = true;
		else if (opt == 'w')
			is_rewritten = true;
		else if (opt == 'c')
			turn_ns = (uint64_t)(atof(optarg) * 1e6);
		else
			return 125;
	}
	burn_catch_signals();
	open_file(dir);
	write_code();
	(turn_ns ? run_turns_apart : run_shares)(seconds_ns ? wall_ns() + seconds_ns : 0);
	unlink(path);
	return 0;
}
