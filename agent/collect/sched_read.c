/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the scheduler accounting's maps and ring; see sched.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/collect/map_each.h"
#include "agent/collect/sched_private.h"
#include "base/clock.h"

enum { FIRST_BATCH = 256, READ_TRIES = 8 };

int sched_read_record(void *context, void *bytes, size_t size)
{
	struct sched_collect *c = context;
	const struct sonde_sched_thread *thread = bytes;
	struct event event;

	if (size == sizeof(*thread) && thread->head.type == SONDE_RECORD_SCHED_THREAD)
		c->handler.thread(c->handler.context, thread, c->now_ns, c->epoch);
	else if (!event_decode(bytes, size, &event) && event.type == SONDE_RECORD_CGROUP)
		c->handler.cgroup(c->handler.context, &event);
	else
		c->read_errors++;
	return 0;
}

int sched_collect_poll(struct sched_collect *c)
{
	int n = ring_buffer__consume(c->ring);

	return n < 0 ? n : 0;
}

void sched_collect_tick(struct sched_collect *c)
{
	int fd = bpf_program__fd(c->skel->progs.sonde_sched_tick);

	for (int cpu = 0; cpu < c->possible_cpus; cpu++) {
		LIBBPF_OPTS(bpf_test_run_opts, opts, .cpu = (__u32)cpu,
			    .flags = BPF_F_TEST_RUN_ON_CPU);

		bpf_prog_test_run_opts(fd, &opts);
	}
}

/*
 * A record may be written while it is read. One whose buckets are not its age was; it is read
 * again. False: the thread has ended meanwhile, and its last record is in the ring.
 */
static bool read_whole(struct sched_collect *c, __u64 key, struct sonde_sched_thread *thread)
{
	if (c->base)
		sched_stacks_as_of_flip(c, (struct sonde_off_thread *)thread);
	for (int i = 0; !sched_thread_is_whole(thread); i++) {
		if (i == READ_TRIES) {
			c->torn++;
			return true;
		}
		if (bpf_map_lookup_elem(bpf_map__fd(c->skel->maps.threads), &key, thread))
			return false;
		if (c->base)
			sched_stacks_as_of_flip(c, (struct sonde_off_thread *)thread);
	}
	return true;
}

struct reading {
	struct sched_collect *c;
	struct sched_machine *machine;
};

static void handle_thread(void *context, const void *key, void *value)
{
	struct sonde_sched_thread *thread = value;
	struct reading *r = context;

	/* Born just now, the record is not filled yet: the next time will do. */
	if (!thread->birth || !read_whole(r->c, *(const __u64 *)key, thread))
		return;
	r->machine->threads++;
	r->c->handler.thread(r->c->handler.context, thread, r->c->now_ns, r->c->epoch);
	if (r->c->base)
		r->c->handler.open(r->c->handler.context, value, r->c->now_ns,
				   r->c->skel->bss->off_from_ns[r->c->retired]);
}

static int read_threads(struct sched_collect *c, struct sched_machine *machine)
{
	struct reading reading = { c, machine };

	return map_each(&(struct map_each){
		.fd = bpf_map__fd(c->skel->maps.threads),
		.key_size = sizeof(__u64),
		.value_size = c->thread_bytes,
		.batch = FIRST_BATCH,
		.handle = handle_thread,
		.context = &reading,
	});
}

static void sum_cpu(const struct sonde_sched_cpu *cpu, struct sched_machine *m)
{
	m->untracked_threads += cpu->untracked_births - cpu->untracked_deaths;
	m->untracked_ns += cpu->untracked_death_ns - cpu->untracked_birth_ns;
	m->untracked_on_cpu_ns += cpu->untracked_on_cpu_ns;
	for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++)
		m->refused_ns[i] += cpu->refused_ns[i];
	for (int i = 0; i < SONDE_SCHED_COUNTER_COUNT; i++)
		m->counters[i] += cpu->counters[i];
	m->runs += cpu->runs;
	m->bpf_ns += cpu->timed_ns * SONDE_SCHED_TIMED;
}

static int read_cpus(struct sched_collect *c, struct sched_machine *m)
{
	size_t count = (size_t)c->possible_cpus;
	struct sonde_sched_cpu *cpus = calloc(count, sizeof(*cpus));
	struct sonde_counters *counters = calloc(count, sizeof(*counters));
	int err = cpus && counters ? 0 : -ENOMEM;
	__u32 zero = 0;

	if (!err)
		err = bpf_map_lookup_elem(bpf_map__fd(c->skel->maps.sched_cpus), &zero, cpus);
	for (size_t i = 0; !err && i < count; i++)
		sum_cpu(&cpus[i], m);
	for (__u32 slot = 0; !err && slot < SONDE_SLOT_COUNT; slot++) {
		err = bpf_map_lookup_elem(bpf_map__fd(c->skel->maps.counters), &slot, counters);
		for (size_t i = 0; !err && i < count; i++)
			m->counters[SONDE_SCHED_COUNT_CGROUP_RETRY] +=
				counters[i].n[SONDE_COUNT_FACT_RETRY];
	}
	/*
	 * Those that live until now. A thread that was already half gone when the others were seeded
	 * ends without having begun.
	 */
	if ((int64_t)m->untracked_threads < 0)
		m->untracked_threads = m->untracked_ns = m->untracked_on_cpu_ns = 0;
	m->untracked_ns += m->untracked_threads * m->now_ns;
	free(counters);
	free(cpus);
	return err;
}

int sched_collect_snapshot(struct sched_collect *c, struct sched_machine *ret_machine)
{
	struct sched_machine m = { 0 };
	int err;

	c->skel->bss->epoch = c->epoch + 1;
	sched_collect_tick(c);
	m.now_ns = c->now_ns = clock_monotonic();
	c->skel->bss->snapshot_ns = c->now_ns;
	if (c->base)
		sched_stacks_flip(c, m.now_ns);
	/* Living threads first: of one that ends meanwhile the ring's record is the later one. */
	err = read_threads(c, &m);
	if (err)
		c->read_errors++;
	if (!err)
		err = sched_collect_poll(c);
	if (!err)
		err = read_cpus(c, &m);
	if (!err && m.untracked_threads)
		err = sched_collect_seed(c);
	c->epoch++;
	m.torn = c->torn;
	m.read_errors = c->read_errors;
	if (!err)
		*ret_machine = m;
	return err;
}
