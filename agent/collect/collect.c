/* SPDX-License-Identifier: Apache-2.0 */
/* Loading, attaching and stopping the kernel side; see collect.h. */
#include "agent/collect/collect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/collect/collect_private.h"
#include "agent/collect/kernel_quirks.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/proc.h"

enum {
	VERIFIER_LOG_BYTES = 256 << 10,
	VERIFIER_TAIL_LINES = 6,
	MAX_PROGRAMS = 8,
};

/* Of each program, when a load is repeated to learn the cause. */
struct verifier_logs {
	const char *names[MAX_PROGRAMS];
	char *texts[MAX_PROGRAMS];
	size_t count;
};

/* libbpf speaks only through return codes here; its text would bypass the one-line rule. */
static int libbpf_quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return 0;
}

/* The last lines of the verifier's log: they name the fault. */
static const char *log_tail(const char *log)
{
	const char *p = log + strlen(log);
	int lines = 0;

	while (p > log && lines <= VERIFIER_TAIL_LINES) {
		if (*--p == '\n')
			lines++;
	}
	return p;
}

static bool is_privilege_error(int err)
{
	return err == -EPERM || err == -EACCES;
}

static bool has_cap_bpf(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);
	int fd = bpf_map_create(BPF_MAP_TYPE_HASH, "sonde_probe", 4, 4, 1, &opts);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* One line (with the verifier's last words behind it, if it spoke) for a failed load. */
static void explain_load(int err, const struct verifier_logs *logs, char *reason, size_t size)
{
	const char *name = "", *log = "";
	struct utsname kernel;

	/* The verifier speaks only of the program that it refused. */
	for (size_t i = 0; i < logs->count; i++) {
		if (logs->texts[i][0]) {
			name = logs->names[i];
			log = logs->texts[i];
		}
	}

	uname(&kernel);
	if (is_privilege_error(err) && !has_cap_bpf())
		snprintf(reason, size,
			 "bpf: %s; run as root, or with CAP_BPF and CAP_PERFMON (CAP_SYS_ADMIN "
			 "before Linux 5.8)", strerror(-err));
	else if (is_privilege_error(err) && !log[0])
		snprintf(reason, size,
			 "bpf: %s; CAP_PERFMON is missing (CAP_SYS_ADMIN before Linux 5.8), or a "
			 "security module forbids tracing", strerror(-err));
	else if (err == -ESRCH || err == -ENOENT)
		snprintf(reason, size,
			 "bpf: kernel %s has no type information; sonde needs "
			 "/sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF)", kernel.release);
	else
		snprintf(reason, size, "bpf: kernel %s refused %s%s: %s%s%s", kernel.release,
			 name[0] ? "program " : "the programs or maps", name, strerror(-err),
			 log[0] ? "; the verifier's last words:" : "", log_tail(log));
}

static void fill_settings(struct collect *c)
{
	struct sonde_settings *s = (struct sonde_settings *)&c->skel->rodata->settings;
	struct utsname kernel;

	uname(&kernel);
	s->target_mode = c->options.target;
	s->target_cgroup = c->options.cgroup_id;
	s->target_v1 = c->options.cgroup_v1;
	s->keep_idle = c->options.keep_idle;
	s->thread_names = c->options.thread_names;
	s->kernel_stacks = 1;
	s->user_stacks = !kernel_user_reads_may_hang(kernel.release, kernel.version);
	s->page_shift = (__u32)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));
	if (getrandom(&s->seed, sizeof(s->seed), 0) != sizeof(s->seed))
		s->seed = (__u64)getpid() << 32 ^ (__u64)(uintptr_t)s;
}

/* Programs that only serve process targets stay out of the kernel otherwise. */
static void choose_programs(struct collect *c)
{
	bool follow = c->options.target == SONDE_TARGET_PROCESSES;

	bpf_program__set_autoload(c->skel->progs.sonde_fork, follow);
	bpf_program__set_autoload(c->skel->progs.sonde_free, follow);
}

static void take_logs(struct sonde_bpf *skel, struct verifier_logs *logs)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, skel->obj) {
		char *text = logs->count < MAX_PROGRAMS ? calloc(1, VERIFIER_LOG_BYTES) : NULL;

		if (!text)
			return;
		logs->names[logs->count] = bpf_program__name(prog);
		logs->texts[logs->count++] = text;
		bpf_program__set_log_buf(prog, text, VERIFIER_LOG_BYTES);
	}
}

/* Elements of the array of rows: at least one. */
static __u32 row_elements(const struct collect *c)
{
	const size_t element = SONDE_ROWS_PER_ELEMENT * sizeof(struct sonde_row);
	size_t count = (c->options.unwind_bytes + element - 1) / element;

	return count ? (__u32)count : 1;
}

static int load_once(struct collect *c, struct verifier_logs *logs)
{
	c->skel = sonde_bpf__open();
	if (!c->skel)
		return -errno;
	fill_settings(c);
	choose_programs(c);
	bpf_map__set_max_entries(c->skel->maps.unwind_rows, row_elements(c));
	if (logs)
		take_logs(c->skel, logs);
	return sonde_bpf__load(c->skel);
}

/* Loads without a log, since a log costs time and may itself fail; a second try tells why. */
static int load(struct collect *c, char *reason, size_t reason_size)
{
	struct verifier_logs logs = { 0 };
	int err;

	libbpf_set_print(libbpf_quiet);
	err = load_once(c, NULL);
	if (!err)
		return 0;
	sonde_bpf__destroy(c->skel);
	load_once(c, &logs);
	explain_load(err, &logs, reason, reason_size);
	for (size_t i = 0; i < logs.count; i++)
		free(logs.texts[i]);
	return err;
}

static int make_barrier(struct collect *c)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);

	c->barrier_inner_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sonde_inner", 4, 4, 1, NULL);
	if (c->barrier_inner_fd < 0)
		return c->barrier_inner_fd;
	opts.inner_map_fd = (__u32)c->barrier_inner_fd;
	c->barrier_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "sonde_barrier", 4, 4, 1, &opts);
	return c->barrier_fd < 0 ? c->barrier_fd : 0;
}

/* The rows are filled by plain stores. */
static int open_tables(struct collect *c)
{
	__u32 elements = row_elements(c);
	struct unwind_maps maps = {
		.pages_fd = bpf_map__fd(c->skel->maps.unwind_pages),
		.rules_fd = bpf_map__fd(c->skel->maps.unwind_rules),
		.row_capacity = elements * SONDE_ROWS_PER_ELEMENT,
	};
	size_t bytes = (size_t)maps.row_capacity * sizeof(struct sonde_row);
	void *rows = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			  bpf_map__fd(c->skel->maps.unwind_rows), 0);

	if (rows == MAP_FAILED)
		return -errno;
	maps.rows = rows;
	c->rows_mapped = bytes;
	return unwind_tables_init(&c->tables, &maps);
}

static int open_perf(struct collect *c, char *reason, size_t reason_size)
{
	struct perf_events_options options = {
		.frequency_hz = c->options.frequency_hz,
		.no_hardware = c->options.no_hardware,
		.cpu_online = "/sys/devices/system/cpu/online",
		.max_rate = "/proc/sys/kernel/perf_event_max_sample_rate",
	};

	return perf_events_open(&options, bpf_program__fd(c->skel->progs.sonde_on_cpu), &c->perf,
				reason, reason_size);
}

static int open_rest(struct collect *c, char *reason, size_t reason_size)
{
	int err = make_barrier(c);

	if (!err)
		err = cpu_books_open(c);
	if (!err) {
		c->ring = ring_buffer__new(bpf_map__fd(c->skel->maps.ring), drain_record, c, NULL);
		err = c->ring ? 0 : -errno;
	}
	if (!err)
		err = open_tables(c);
	if (!err)
		err = sonde_bpf__attach(c->skel);
	if (err) {
		snprintf(reason, reason_size, "bpf: cannot set up the maps and hooks: %s",
			 strerror(-err));
		return err;
	}
	return open_perf(c, reason, reason_size);
}

int collect_open(const struct collect_options *options, const struct collect_handler *handler,
		 struct collect **ret_collect, char *reason, size_t reason_size)
{
	struct collect *c = calloc(1, sizeof(*c));
	int err;

	if (!c) {
		snprintf(reason, reason_size, "out of memory");
		return -ENOMEM;
	}
	c->options = *options;
	c->handler = *handler;
	c->barrier_fd = c->barrier_inner_fd = -1;
	err = load(c, reason, reason_size);
	if (!err)
		err = open_rest(c, reason, reason_size);
	if (err) {
		collect_close(c);
		return err;
	}
	*ret_collect = c;
	return 0;
}

void collect_close(struct collect *c)
{
	if (!c)
		return;
	perf_events_close(c->perf);
	ring_buffer__free(c->ring);
	cpu_books_close(c);
	unwind_tables_fini(&c->tables);
	if (c->rows_mapped)
		munmap(c->tables.maps.rows, c->rows_mapped);
	if (c->barrier_fd >= 0)
		close(c->barrier_fd);
	if (c->barrier_inner_fd >= 0)
		close(c->barrier_inner_fd);
	sonde_bpf__destroy(c->skel);
	free(c);
}

int collect_start(struct collect *c)
{
	cpu_books_start(c);
	return perf_events_enable(c->perf);
}

void collect_stop(struct collect *c)
{
	perf_events_disable(c->perf);
}

int collect_add_target(struct collect *c, pid_t pid)
{
	__u32 tgid = (__u32)pid;
	uint64_t ticks;
	int err = proc_is_process("/proc", tgid);

	if (!err)
		err = proc_start_ticks("/proc", tgid, &ticks);
	if (err)
		return err;
	return bpf_map__update_elem(c->skel->maps.targets, &tgid, sizeof(tgid), &ticks,
				    sizeof(ticks), BPF_ANY);
}

void collect_set_frequency(struct collect *c, uint32_t hz)
{
	perf_events_set_frequency(c->perf, hz);
}

/* "memlock: N" of a map's fdinfo: what the kernel charges for it. */
static uint64_t map_bytes(int fd)
{
	static const char key[] = "memlock:";
	char path[64];
	struct buf text;
	uint64_t bytes = 0;
	const char *p;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	buf_init(&text, 4096);
	p = file_read_path(path, &text) ? NULL : buf_cstr(&text);
	p = p ? strstr(p, key) : NULL;
	if (p) {
		p += strlen(key);
		p += strspn(p, " \t");
		parse_digits(p, p + strlen(p), 10, &bytes);
	}
	buf_fini(&text);
	return bytes;
}

uint64_t collect_map_bytes(const struct collect *c)
{
	uint64_t bytes = 0;
	struct bpf_map *map;

	bpf_object__for_each_map(map, c->skel->obj)
		bytes += map_bytes(bpf_map__fd(map));
	return bytes;
}

bool collect_is_hardware(const struct collect *c)
{
	return perf_events_is_hardware(c->perf);
}

bool collect_has_user_stacks(const struct collect *c)
{
	return c->skel->rodata->settings.user_stacks;
}

uint32_t collect_frequency(const struct collect *c)
{
	return perf_events_frequency(c->perf);
}

size_t collect_cpu_count(const struct collect *c)
{
	return perf_events_cpu_count(c->perf);
}
