/* SPDX-License-Identifier: Apache-2.0 */
/* Per-CPU perf events; see perf_events.h. */
#include "agent/collect/perf_events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"

enum { MAX_CPUS = 8192, CPU_LIST_BYTES = 64 * 1024 };

struct cpu_event {
	int cpu;
	int fd;
	uint64_t last_value;
};

struct perf_events {
	struct perf_events_options options;
	struct perf_event_attr attr;
	struct perf_totals retired; /* of closed events */
	uint64_t *retired_expected; /* of closed events, by CPU: samples */
	struct cpu_event *events;
	size_t count;
	int prog_fd;
	bool enabled;
	uint64_t failed_cpus;
};

struct read_format {
	uint64_t value, enabled, running;
};

/* All ways in which kernels and hypervisors say that there is no hardware counter. */
static bool means_no_pmu(int err)
{
	return err == -ENOENT || err == -ENODEV || err == -ENXIO || err == -EOPNOTSUPP;
}

static int event_open(struct perf_event_attr *attr, int cpu)
{
	long fd = syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static void attr_init(struct perf_event_attr *attr, bool hardware, uint32_t hz)
{
	*attr = (struct perf_event_attr){
		.size = sizeof(*attr),
		.type = hardware ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
		.config = hardware ? PERF_COUNT_HW_CPU_CYCLES : PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = hz,
		.freq = 1,
		.disabled = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
}

static int online_cpus(const char *path, int *ret_cpus, size_t *ret_count)
{
	struct buf text;
	const char *list;
	int err;

	buf_init(&text, CPU_LIST_BYTES);
	err = file_read_path(path, &text);
	list = err ? NULL : buf_cstr(&text);
	if (list)
		err = parse_cpu_list(list, ret_cpus, MAX_CPUS, ret_count);
	else if (!err)
		err = buf_error(&text);
	buf_fini(&text);
	return err;
}

static uint32_t rate_limit(const char *path)
{
	struct buf text;
	uint64_t limit = 0;

	buf_init(&text, 64);
	if (file_read_path(path, &text) == 0 && text.len)
		parse_digits((const char *)text.data, (const char *)text.data + text.len, 10, &limit);
	buf_fini(&text);
	return limit > 0 && limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX;
}

/* Opens and attaches the event of one CPU; -ENODEV when the CPU has just gone. */
static int cpu_add(struct perf_events *e, int cpu)
{
	int fd = event_open(&e->attr, cpu);
	int err = 0;

	if (fd < 0)
		return fd;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, e->prog_fd) < 0 ||
	    (e->enabled && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0))
		err = -errno;
	if (err) {
		close(fd);
		return err;
	}
	e->events[e->count++] = (struct cpu_event){ .cpu = cpu, .fd = fd };
	return 0;
}

static void add_value(struct perf_totals *totals, int fd)
{
	struct read_format now;

	if (read(fd, &now, sizeof(now)) != sizeof(now))
		return;
	totals->value += now.value;
	totals->enabled_ns += now.enabled;
	totals->running_ns += now.running;
}

/* Not by the value: a throttled cpu-clock stands still, its running time does not. */
static uint64_t expected_of(const struct perf_events *e, int fd)
{
	struct read_format now;

	if (perf_events_is_hardware(e) || read(fd, &now, sizeof(now)) != sizeof(now))
		return 0;
	return now.running / (NSEC_PER_SEC / perf_events_frequency(e));
}

static void cpu_remove(struct perf_events *e, size_t i)
{
	add_value(&e->retired, e->events[i].fd);
	e->retired_expected[e->events[i].cpu] += expected_of(e, e->events[i].fd);
	close(e->events[i].fd);
	e->events[i] = e->events[--e->count];
}

/* The kind of event that this machine has: tries the first CPU. */
static int choose_event(struct perf_events *e, int cpu)
{
	int fd = -ENOENT;

	if (!e->options.no_hardware) {
		attr_init(&e->attr, true, e->options.frequency_hz);
		fd = event_open(&e->attr, cpu);
	}
	if (means_no_pmu(fd)) {
		attr_init(&e->attr, false, e->options.frequency_hz);
		fd = event_open(&e->attr, cpu);
	}
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static void explain(int err, char *reason, size_t size)
{
	if (err == -EACCES || err == -EPERM)
		snprintf(reason, size,
			 "perf_event_open: %s; run as root, or with CAP_PERFMON "
			 "(CAP_SYS_ADMIN before Linux 5.8); in a container its seccomp profile "
			 "must allow the call, too", strerror(-err));
	else if (err == -EMFILE || err == -ENFILE)
		snprintf(reason, size, "perf_event_open: %s; raise the limit of open files (ulimit -n)",
			 strerror(-err));
	else
		snprintf(reason, size, "perf_event_open: %s", strerror(-err));
}

static int open_all(struct perf_events *e, char *reason, size_t reason_size)
{
	int cpus[MAX_CPUS], err;
	size_t count = 0;

	err = online_cpus(e->options.cpu_online, cpus, &count);
	if (err || count == 0) {
		snprintf(reason, reason_size, "%s: %s", e->options.cpu_online,
			 err ? strerror(-err) : "no CPU is online");
		return err ? err : -ENODEV;
	}
	err = choose_event(e, cpus[0]);
	for (size_t i = 0; !err && i < count; i++) {
		err = cpu_add(e, cpus[i]);
		if (err == -ENODEV) /* went offline since we read the list */
			err = 0;
	}
	if (err)
		explain(err, reason, reason_size);
	return err;
}

int perf_events_open(const struct perf_events_options *options, int prog_fd,
		     struct perf_events **ret_events, char *reason, size_t reason_size)
{
	struct perf_events *e = calloc(1, sizeof(*e));
	uint32_t limit;
	int err = -ENOMEM;

	if (e) {
		e->events = calloc(MAX_CPUS, sizeof(*e->events));
		e->retired_expected = calloc(MAX_CPUS, sizeof(*e->retired_expected));
	}
	if (!e || !e->events || !e->retired_expected) {
		snprintf(reason, reason_size, "out of memory");
		goto out;
	}
	e->options = *options;
	e->prog_fd = prog_fd;
	limit = rate_limit(options->max_rate);
	if (e->options.frequency_hz > limit)
		e->options.frequency_hz = limit;
	err = open_all(e, reason, reason_size);
	if (err)
		goto out;
	*ret_events = e;
	return 0;
out:
	perf_events_close(e);
	return err;
}

void perf_events_close(struct perf_events *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->count; i++)
		close(e->events[i].fd);
	free(e->events);
	free(e->retired_expected);
	free(e);
}

int perf_events_enable(struct perf_events *e)
{
	e->enabled = true;
	for (size_t i = 0; i < e->count; i++) {
		if (ioctl(e->events[i].fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
			return -errno;
	}
	return 0;
}

void perf_events_disable(struct perf_events *e)
{
	e->enabled = false;
	for (size_t i = 0; i < e->count; i++)
		ioctl(e->events[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

static bool is_listed(int cpu, const int *cpus, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (cpus[i] == cpu)
			return true;
	}
	return false;
}

static bool is_sampled(const struct perf_events *e, int cpu)
{
	for (size_t i = 0; i < e->count; i++) {
		if (e->events[i].cpu == cpu)
			return true;
	}
	return false;
}

/*
 * An event whose CPU went away and came back between two looks is dead without saying so; its
 * value stands still. An idle CPU counts no cycles either: opening its event anew does no harm.
 */
static bool stands_still(struct cpu_event *event)
{
	struct read_format now;
	bool still;

	if (read(event->fd, &now, sizeof(now)) != sizeof(now))
		return true;
	still = now.value == event->last_value;
	event->last_value = now.value;
	return still;
}

void perf_events_follow(struct perf_events *e)
{
	int cpus[MAX_CPUS];
	size_t count;

	if (online_cpus(e->options.cpu_online, cpus, &count))
		return;
	for (size_t i = e->count; i-- > 0;) {
		if (!is_listed(e->events[i].cpu, cpus, count) || stands_still(&e->events[i]))
			cpu_remove(e, i);
	}
	for (size_t i = 0; i < count; i++) {
		if (is_sampled(e, cpus[i]))
			continue;
		if (cpu_add(e, cpus[i]))
			e->failed_cpus++;
	}
}

void perf_events_totals(struct perf_events *e, struct perf_totals *ret_totals)
{
	*ret_totals = e->retired;
	for (size_t i = 0; i < e->count; i++)
		add_value(ret_totals, e->events[i].fd);
}

void perf_events_expected(struct perf_events *e, uint64_t *expected, size_t cpu_count)
{
	for (size_t cpu = 0; cpu < cpu_count; cpu++)
		expected[cpu] = cpu < MAX_CPUS ? e->retired_expected[cpu] : 0;
	for (size_t i = 0; i < e->count; i++) {
		if ((size_t)e->events[i].cpu < cpu_count)
			expected[e->events[i].cpu] += expected_of(e, e->events[i].fd);
	}
}

void perf_events_set_frequency(struct perf_events *e, uint32_t hz)
{
	uint32_t limit = rate_limit(e->options.max_rate);

	while (e->count)
		cpu_remove(e, e->count - 1);
	e->options.frequency_hz = hz < limit ? hz : limit;
	e->attr.sample_freq = e->options.frequency_hz;
	perf_events_follow(e);
}

bool perf_events_is_hardware(const struct perf_events *e)
{
	return e->attr.type == PERF_TYPE_HARDWARE;
}

uint32_t perf_events_frequency(const struct perf_events *e)
{
	return e->options.frequency_hz;
}

size_t perf_events_cpu_count(const struct perf_events *e)
{
	return e->count;
}

uint64_t perf_events_failed_cpus(const struct perf_events *e)
{
	return e->failed_cpus;
}
