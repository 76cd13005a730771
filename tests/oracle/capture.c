/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture -o FILE [-F hz] [-n samples] [-d seconds] {-p PID | COMMAND...}: samples a process and
 * all it starts by cpu-clock, each with its user registers and up to 64 KB of its stack,
 * so that several unwinders can be given the same input.
 */
#include <asm/perf_regs.h>
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/oracle/capture.h"

enum { MAX_CPUS = 256, RING_PAGES = 2048, MAX_PROCESSES = 4096, MAX_MAPS_BYTES = 4 << 20 };

static struct ring {
	int fd;
	uint8_t *base;
} rings[MAX_CPUS];
static int cpus;

static struct process {
	uint32_t tgid;
	bool stale; /* it mapped something since its maps were read */
	char *maps;
} processes[MAX_PROCESSES];
static size_t process_count;

static FILE *out;
static long samples, lost;
static uint8_t event[1 << 16];
static char maps_text[MAX_MAPS_BYTES];

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static void put(uint32_t type, const void *head, size_t head_size, const void *body, size_t size)
{
	const struct capture_head h = { type, (uint32_t)(head_size + size) };

	if (fwrite(&h, sizeof(h), 1, out) != 1 || (head_size && fwrite(head, head_size, 1, out) != 1) ||
	    (size && fwrite(body, size, 1, out) != 1))
		err(1, "write");
}

/* The registers that the kernel has in its own order, in DWARF's. */
static const uint8_t perf_number[CAPTURE_REGS] = {
	PERF_REG_X86_AX,  PERF_REG_X86_DX,  PERF_REG_X86_CX,  PERF_REG_X86_BX,  PERF_REG_X86_SI,
	PERF_REG_X86_DI,  PERF_REG_X86_BP,  PERF_REG_X86_SP,  PERF_REG_X86_R8,  PERF_REG_X86_R9,
	PERF_REG_X86_R10, PERF_REG_X86_R11, PERF_REG_X86_R12, PERF_REG_X86_R13, PERF_REG_X86_R14,
	PERF_REG_X86_R15, PERF_REG_X86_IP,
};

static uint64_t reg_mask(void)
{
	uint64_t mask = 0;

	for (int i = 0; i < CAPTURE_REGS; i++)
		mask |= 1ULL << perf_number[i];
	return mask;
}

static int open_event(pid_t tid, int cpu, uint64_t hz, bool on_exec)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = hz,
		.freq = 1,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_REGS_USER |
			       PERF_SAMPLE_STACK_USER,
		.sample_regs_user = reg_mask(),
		.sample_stack_user = 65528,
		.inherit = 1,
		.mmap = 1,
		.disabled = on_exec,
		.enable_on_exec = on_exec,
		.watermark = 1,
		.wakeup_watermark = 1 << 18,
	};

	return (int)syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* One event a CPU for the thread, all into the CPU's ring. */
static void watch(pid_t tid, uint64_t hz, bool on_exec)
{
	for (int cpu = 0; cpu < cpus; cpu++) {
		struct ring *r = &rings[cpu];
		int fd = open_event(tid, cpu, hz, on_exec);

		if (fd < 0)
			err(1, "perf_event_open");
		if (r->base) {
			if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, r->fd))
				err(1, "PERF_EVENT_IOC_SET_OUTPUT");
			continue;
		}
		r->fd = fd;
		r->base = mmap(NULL, (RING_PAGES + 1) * 4096UL, PROT_READ | PROT_WRITE, MAP_SHARED,
			       fd, 0);
		if (r->base == MAP_FAILED)
			err(1, "mmap");
	}
}

static void watch_threads(pid_t pid, uint64_t hz)
{
	char path[64];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		err(1, "%s", path);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			watch(atoi(entry->d_name), hz, false);
	}
	closedir(dir);
}

static struct process *process_of(uint32_t tgid)
{
	for (size_t i = process_count; i > 0; i--) {
		if (processes[i - 1].tgid == tgid)
			return &processes[i - 1];
	}
	if (process_count == MAX_PROCESSES)
		errx(1, "too many processes");
	processes[process_count] = (struct process){ .tgid = tgid, .stale = true };
	return &processes[process_count++];
}

/* Writes the process's maps if they changed. False if there are none: it has gone. */
static bool put_maps(struct process *p)
{
	const struct capture_maps head = { .tgid = p->tgid };
	char path[64];
	size_t size;
	FILE *f;

	if (!p->stale)
		return p->maps;
	snprintf(path, sizeof(path), "/proc/%u/maps", p->tgid);
	f = fopen(path, "r");
	size = f ? fread(maps_text, 1, sizeof(maps_text) - 1, f) : 0;
	if (f)
		fclose(f);
	maps_text[size] = 0;
	if (!size)
		return p->maps;
	p->stale = false;
	if (p->maps && strcmp(p->maps, maps_text) == 0)
		return true;
	free(p->maps);
	p->maps = strdup(maps_text);
	put(CAPTURE_MAPS, &head, sizeof(head), maps_text, size);
	return true;
}

/* Layout: header, ip, pid/tid, regs: abi and values by bit, stack: size, bytes, size used. */
static void on_sample(const struct perf_event_header *h)
{
	const uint64_t *word = (const uint64_t *)(h + 1);
	struct capture_sample s = { 0 };
	uint64_t mask = reg_mask(), value[64] = { 0 }, room, used;
	const uint8_t *stack;

	word++;
	s.tgid = (uint32_t)*word;
	s.tid = (uint32_t)(*word++ >> 32);
	s.in_kernel = (h->misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_USER;
	if (*word++ != PERF_SAMPLE_REGS_ABI_64)
		return;
	for (int bit = 0; bit < 64; bit++) {
		if (mask >> bit & 1)
			value[bit] = *word++;
	}
	for (int i = 0; i < CAPTURE_REGS; i++)
		s.regs[i] = value[perf_number[i]];
	room = *word++;
	stack = (const uint8_t *)word;
	if (!room)
		return;
	memcpy(&used, stack + room, sizeof(used));
	s.stack_size = (uint32_t)used;
	if (!used || !put_maps(process_of(s.tgid)))
		return;
	put(CAPTURE_SAMPLE, &s, sizeof(s), stack, used);
	samples++;
}

static void on_event(const struct perf_event_header *h)
{
	if (h->type == PERF_RECORD_SAMPLE)
		on_sample(h);
	else if (h->type == PERF_RECORD_MMAP)
		process_of(*(const uint32_t *)(h + 1))->stale = true;
	else if (h->type == PERF_RECORD_LOST)
		lost += (long)((const uint64_t *)(h + 1))[1];
}

static void drain(struct ring *r)
{
	struct perf_event_mmap_page *page = (void *)r->base;
	const uint64_t size = RING_PAGES * 4096ULL;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;

	while (tail < head) {
		const uint8_t *data = r->base + 4096;
		const struct perf_event_header *h = (const void *)(data + tail % size);
		uint64_t first = size - tail % size;

		if (h->size > first) { /* wraps around */
			memcpy(event, h, first);
			memcpy(event + first, data, h->size - first);
			tail += h->size;
			on_event((void *)event);
		} else {
			tail += h->size;
			on_event(h);
		}
	}
	__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

static void put_vdso(void)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);

	if (image)
		put(CAPTURE_VDSO, NULL, 0, image, 8192);
}

/* Starts the command; it waits until the events are there. */
static pid_t start(char **argv, int *ret_go)
{
	int go[2];
	pid_t pid;
	char c;

	if (pipe2(go, 0))
		err(1, "pipe");
	pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &c, 1) != 1)
			_exit(126);
		close(go[0]);
		setpgid(0, 0);
		execvp(argv[0], argv);
		err(127, "%s", argv[0]);
	}
	close(go[0]);
	*ret_go = go[1];
	return pid;
}

int main(int argc, char **argv)
{
	double seconds = 5;
	uint64_t hz = 199, end;
	long max = 2000;
	pid_t pid = 0, child = 0;
	int option, go;
	uint64_t magic = CAPTURE_MAGIC;

	while ((option = getopt(argc, argv, "+o:F:n:d:p:")) != -1) {
		if (option == 'o')
			out = fopen(optarg, "wb");
		else if (option == 'F')
			hz = strtoull(optarg, NULL, 10);
		else if (option == 'n')
			max = atol(optarg);
		else if (option == 'd')
			seconds = atof(optarg);
		else if (option == 'p')
			pid = atoi(optarg);
		else
			return 2;
	}
	if (!out || (!pid && !argv[optind]))
		errx(2, "usage: capture -o FILE [-F hz] [-n samples] [-d s] {-p PID | COMMAND...}");
	fwrite(&magic, sizeof(magic), 1, out);
	put_vdso();
	cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	if (cpus > MAX_CPUS)
		errx(1, "too many CPUs");
	if (pid) {
		watch_threads(pid, hz);
	} else {
		child = start(argv + optind, &go);
		watch(child, hz, true);
		if (write(go, "x", 1) != 1)
			err(1, "write");
	}
	end = now_ns() + (uint64_t)(seconds * 1e9);
	while (samples < max && now_ns() < end && !(child && waitpid(child, NULL, WNOHANG) == child)) {
		poll(NULL, 0, 10);
		for (int i = 0; i < cpus; i++)
			drain(&rings[i]);
	}
	if (child)
		kill(-child, SIGKILL);
	fprintf(stderr, "%ld samples, %ld lost\n", samples, lost);
	return fclose(out) ? 1 : 0;
}
