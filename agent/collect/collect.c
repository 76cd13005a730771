/* SPDX-License-Identifier: Apache-2.0 */
/* Loading, attaching and stopping the kernel side; see collect.h. */
#include "agent/collect/collect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/collect/collect_private.h"
#include "agent/collect/kernel_quirks.h"
#include "agent/collect/memory.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/proc.h"

enum { VERIFIER_LOG_BYTES = 256 << 10 };

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

/* Programs and room that only serve process targets stay out of the kernel otherwise. */
static void choose_programs(struct collect *c)
{
	bool follow = c->options.target == SONDE_TARGET_PROCESSES;

	if (!follow)
		bpf_map__set_max_entries(c->skel->maps.targets, 1);

	bpf_program__set_autoload(c->skel->progs.sonde_fork, follow);
	bpf_program__set_autoload(c->skel->progs.sonde_free, follow);
}

static void take_logs(struct sonde_bpf *skel, struct verifier_logs *logs)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, skel->obj) {
		char *text = logs->count < LOAD_MAX_PROGRAMS ? calloc(1, VERIFIER_LOG_BYTES) : NULL;

		if (!text)
			return;
		logs->names[logs->count] = bpf_program__name(prog);
		logs->texts[logs->count++] = text;
		bpf_program__set_log_buf(prog, text, VERIFIER_LOG_BYTES);
	}
}

static int load_once(struct collect *c, struct verifier_logs *logs)
{
	c->skel = sonde_bpf__open();
	if (!c->skel)
		return -errno;
	fill_settings(c);
	choose_programs(c);
	rows_size(c);
	if (logs)
		take_logs(c->skel, logs);
	return sonde_bpf__load(c->skel);
}

/* Loads without a log, since a log costs time and may itself fail; a second try tells why. */
static int load(struct collect *c, char *reason, size_t reason_size)
{
	struct verifier_logs logs = { 0 };
	int err;

	libbpf_set_print(NULL); /* its text would bypass the rule of one line */
	err = load_once(c, NULL);
	if (!err)
		return 0;
	sonde_bpf__destroy(c->skel);
	load_once(c, &logs);
	load_explain(err, &logs, reason, reason_size);
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
		err = rows_open(c);
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
	rows_close(c);
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

void collect_set_end(struct collect *c, uint64_t end_ns)
{
	c->skel->bss->end_ns = end_ns;
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

bool collect_is_target(const struct collect *c, uint32_t tgid, uint64_t start_ns)
{
	uint64_t ticks;

	return c->options.target == SONDE_TARGET_PROCESSES &&
	       bpf_map_lookup_elem(bpf_map__fd(c->skel->maps.targets), &tgid, &ticks) == 0 &&
	       ticks == start_ns / SONDE_NS_PER_TICK;
}

bool collect_takes_all(const struct collect *c)
{
	return c->options.target == SONDE_TARGET_ALL;
}

void collect_set_frequency(struct collect *c, uint32_t hz)
{
	perf_events_set_frequency(c->perf, hz);
}

/* "memlock: N" of a map's fdinfo: what the kernel charges for it. */
uint64_t collect_map_bytes(const struct collect *c)
{
	return rows_bytes(c) + memory_of_maps(c->skel->obj);
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
