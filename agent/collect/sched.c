/* SPDX-License-Identifier: Apache-2.0 */
/* Loading, attaching and seeding of the scheduler accounting; see sched.h. */
#include "agent/collect/sched.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "agent/collect/memory.h"
#include "agent/collect/sched_private.h"
#include "base/clock.h"

/* How many arguments a tracepoint hands to its programs; 0 if the kernel does not tell. */
static int tracepoint_arguments(const char *type_name)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *type;
	int n = 0, id;

	if (!btf)
		return 0;
	id = btf__find_by_name_kind(btf, type_name, BTF_KIND_TYPEDEF);
	type = id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL;
	type = type ? btf__type_by_id(btf, type->type) : NULL;
	if (type && btf_is_ptr(type))
		type = btf__type_by_id(btf, type->type);
	if (type && btf_is_func_proto(type))
		n = btf_vlen(type) - 1; /* the first is the tracepoint's own */
	btf__free(btf);
	return n;
}

static void fill_settings(struct sched_bpf *skel)
{
	struct sonde_settings *settings = (struct sonde_settings *)&skel->rodata->settings;

	if (getrandom(&settings->seed, sizeof(settings->seed), 0) != sizeof(settings->seed))
		settings->seed = (__u64)getpid() << 32 ^ clock_monotonic();
	skel->rodata->switch_tells_state = tracepoint_arguments("btf_trace_sched_switch") > 3;
	sched_syscalls_fill((__u8 *)skel->rodata->syscall_reasons);
}

static int load(struct sched_collect *c, const struct sched_collect_options *options)
{
	int err;

	libbpf_set_print(NULL); /* its text would bypass the rule of one line */
	c->skel = sched_bpf__open();
	if (!c->skel)
		return -errno;
	fill_settings(c->skel);
	bpf_map__set_max_entries(c->skel->maps.threads, options->max_threads);
	err = sched_stacks_prepare(c, options->stacks);
	if (err)
		return err;
	/* These two are run from here. */
	bpf_program__set_autoattach(c->skel->progs.sonde_sched_seed, false);
	bpf_program__set_autoattach(c->skel->progs.sonde_sched_tick, false);
	return sched_bpf__load(c->skel);
}

int sched_collect_seed(struct sched_collect *c)
{
	int fd = bpf_iter_create(bpf_link__fd(c->seed)), err = fd < 0 ? fd : 0;
	char none[64];
	ssize_t n;

	while (!err) {
		n = read(fd, none, sizeof(none));
		if (n == 0)
			break;
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			err = -errno;
	}
	if (fd >= 0)
		close(fd);
	return err;
}

/* No program runs: nothing is added meanwhile. */
static void delete_threads(struct sched_collect *c)
{
	int fd = bpf_map__fd(c->skel->maps.threads);
	__u64 key, next;
	int err = bpf_map_get_next_key(fd, NULL, &next);

	while (!err) {
		key = next;
		err = bpf_map_get_next_key(fd, &key, &next);
		bpf_map_delete_elem(fd, &key);
	}
}

/* All counts begin at 0 again, too. */
static int clear(struct sched_collect *c)
{
	size_t count = (size_t)c->possible_cpus;
	struct sonde_sched_cpu *cpus = calloc(count, sizeof(*cpus));
	struct sonde_counters *counters = calloc(count, sizeof(*counters));
	__u32 zero = 0;
	int err = cpus && counters ? 0 : -ENOMEM;

	if (!err) {
		delete_threads(c);
		err = bpf_map_update_elem(bpf_map__fd(c->skel->maps.sched_cpus), &zero, cpus,
					  BPF_ANY);
	}
	for (__u32 slot = 0; !err && slot < SONDE_SLOT_COUNT; slot++)
		err = bpf_map_update_elem(bpf_map__fd(c->skel->maps.counters), &slot, counters,
					  BPF_ANY);
	c->torn = c->read_errors = 0;
	free(counters);
	free(cpus);
	return err;
}

static int attach(struct sched_collect *c)
{
	int err;

	sched_stacks_begin(c);
	err = sched_bpf__attach(c->skel);
	if (err)
		return err;
	c->skel->bss->attached_ns = clock_read(CLOCK_BOOTTIME);
	err = sched_collect_seed(c);
	sched_collect_tick(c);
	c->skel->bss->seeded = 1;
	return err;
}

void sched_collect_stop(struct sched_collect *c)
{
	sched_bpf__detach(c->skel);
}

int sched_collect_restart(struct sched_collect *c)
{
	int err;

	sched_collect_stop(c);
	/* Ends that wait in the ring are those of the time before. */
	err = sched_collect_poll(c);
	if (!err)
		err = clear(c);
	c->skel->bss->seeded = 0;
	c->skel->bss->seed_was_full = 0;
	return err ? err : attach(c);
}

static int start(struct sched_collect *c)
{
	c->possible_cpus = libbpf_num_possible_cpus();
	if (c->possible_cpus < 0)
		return c->possible_cpus;
	c->ring = ring_buffer__new(bpf_map__fd(c->skel->maps.sched_ring), sched_read_record, c, NULL);
	if (!c->ring)
		return -errno;
	c->seed = bpf_program__attach_iter(c->skel->progs.sonde_sched_seed, NULL);
	return c->seed ? attach(c) : -errno;
}

static void explain(int err, char *reason, size_t size)
{
	if (err == -EPERM || err == -EACCES)
		snprintf(reason, size,
			 "bpf: %s; run as root, or with CAP_BPF and CAP_PERFMON "
			 "(CAP_SYS_ADMIN before Linux 5.8)",
			 strerror(-err));
	else
		snprintf(reason, size,
			 "bpf: the kernel refused the scheduler accounting: %s; "
			 "sonde doctor tells what is missing",
			 strerror(-err));
}

int sched_collect_open(const struct sched_collect_options *options,
		       const struct sched_handler *handler, struct sched_collect **ret_collect,
		       char *reason, size_t reason_size)
{
	struct sched_collect *c = calloc(1, sizeof(*c));
	int err;

	if (!c) {
		snprintf(reason, reason_size, "out of memory");
		return -ENOMEM;
	}
	c->handler = *handler;
	err = load(c, options);
	if (!err)
		err = start(c);
	if (err) {
		explain(err, reason, reason_size);
		sched_collect_close(c);
		return err;
	}
	*ret_collect = c;
	return 0;
}

void sched_collect_close(struct sched_collect *c)
{
	if (!c)
		return;
	bpf_link__destroy(c->seed);
	ring_buffer__free(c->ring);
	sched_bpf__destroy(c->skel);
	free(c);
}

uint64_t sched_collect_map_bytes(const struct sched_collect *c)
{
	return memory_of_maps(c->skel->obj) - sched_stacks_shared_bytes(c);
}

void sched_collect_forget_cgroup(void *collect, uint64_t id)
{
	struct sched_collect *c = collect;

	bpf_map_delete_elem(bpf_map__fd(c->skel->maps.sched_facts), &id);
}

int sched_collect_fd(const struct sched_collect *c)
{
	return ring_buffer__epoll_fd(c->ring);
}
