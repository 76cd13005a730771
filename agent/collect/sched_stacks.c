/* SPDX-License-Identifier: Apache-2.0 */
/* Off-CPU stacks beside the accounting: which programs and maps, flips, drains; see sched.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/collect/collect_private.h"
#include "agent/collect/map_each.h"
#include "agent/collect/memory.h"
#include "agent/collect/sched_private.h"
#include "base/clock.h"

enum { FIRST_BATCH = 256 };

/* A map of ours that is the collect's, or (base NULL) only there for stacks. */
struct shared_map {
	struct bpf_map *ours, *base;
};

enum { SHARED_MAPS = 14 };

static void list_maps(const struct sched_collect *c, struct shared_map maps[SHARED_MAPS])
{
	const struct sonde_bpf *b = c->base ? c->base->skel : NULL;
	struct sched_bpf *s = c->skel;
	const struct shared_map all[SHARED_MAPS] = {
		{ s->maps.ring, b ? b->maps.ring : NULL },
		{ s->maps.files, b ? b->maps.files : NULL },
		{ s->maps.exec_files, b ? b->maps.exec_files : NULL },
		{ s->maps.targets, b ? b->maps.targets : NULL },
		{ s->maps.unwind_pages, b ? b->maps.unwind_pages : NULL },
		{ s->maps.unwind_rows, b ? b->maps.unwind_rows : NULL },
		{ s->maps.unwind_rules, b ? b->maps.unwind_rules : NULL },
		{ s->maps.rule_memos, NULL },
		{ s->maps.seen_stacks, NULL },
		{ s->maps.seen_facts, NULL },
		{ s->maps.strata_0, NULL },
		{ s->maps.strata_1, NULL },
		{ s->maps.off_counts_0, NULL },
		{ s->maps.off_counts_1, NULL },
	};

	memcpy(maps, all, sizeof(all));
}

/* What only stacks need stays out of the kernel. */
static int leave_out(struct sched_collect *c)
{
	struct shared_map maps[SHARED_MAPS];
	int err = 0;

	c->thread_bytes = sizeof(struct sonde_sched_thread);
	list_maps(c, maps);
	for (int i = 0; !err && i < SHARED_MAPS; i++)
		err = bpf_map__set_autocreate(maps[i].ours, false);
	if (!err)
		err = bpf_map__set_autocreate(c->skel->maps.off_cpus, false);
	if (!err)
		err = bpf_map__set_value_size(c->skel->maps.threads, sizeof(struct sonde_sched_thread));
	if (!err)
		err = bpf_map__set_value_size(c->skel->maps.blanks, sizeof(struct sonde_sched_thread));
	bpf_program__set_autoload(c->skel->progs.sonde_off_switch, false);
	bpf_program__set_autoload(c->skel->progs.sonde_off_wakeup, false);
	return err;
}

int sched_stacks_prepare(struct sched_collect *c, const struct sched_stacks *stacks)
{
	struct sonde_off_settings *settings = (struct sonde_off_settings *)&c->skel->rodata->off_settings;
	struct shared_map maps[SHARED_MAPS];
	int err = 0;

	if (!stacks)
		return leave_out(c);
	c->thread_bytes = sizeof(struct sonde_off_thread);
	c->base = stacks->collect;
	list_maps(c, maps);
	for (int i = 0; !err && i < SHARED_MAPS; i++)
		err = maps[i].base ? bpf_map__reuse_fd(maps[i].ours, bpf_map__fd(maps[i].base)) : 0;
	bpf_map__set_max_entries(c->skel->maps.rule_memos,
				 bpf_map__max_entries(c->base->skel->maps.rule_memos));
	/* The same ids of files, stacks and processes, and the same targets. */
	memcpy((void *)&c->skel->rodata->settings, (const void *)&c->base->skel->rodata->settings,
	       sizeof(c->skel->rodata->settings));
	*settings = (struct sonde_off_settings){ .min_ns = stacks->min_ns,
						 .states = stacks->states,
						 .thread_names = stacks->thread_names };
	bpf_program__set_autoload(c->skel->progs.sonde_sched_switch, false);
	bpf_program__set_autoload(c->skel->progs.sonde_sched_wakeup, false);
	return err;
}

void sched_stacks_begin(struct sched_collect *c)
{
	if (!c->base)
		return;
	c->skel->bss->off_epoch++;
	c->skel->bss->off_from_ns[c->skel->bss->off_epoch & 1] = clock_monotonic();
}

void sched_stacks_flip(struct sched_collect *c, uint64_t now_ns)
{
	c->retired = c->skel->bss->off_epoch & 1;
	c->skel->bss->off_from_ns[!c->retired] = now_ns;
	c->skel->bss->off_epoch++;
}

void sched_stacks_as_of_flip(const struct sched_collect *c, struct sonde_off_thread *o)
{
	const struct sonde_off_flip *flip = &o->flip;

	/* Not changed since, or it has become another row since: that began after the window. */
	if (o->epoch != c->skel->bss->off_epoch || flip->since < o->t.birth)
		return;
	memcpy(o->t.ns, flip->ns, sizeof(o->t.ns));
	o->t.since = flip->since;
	o->t.exec = flip->exec;
	o->t.state = flip->state;
	o->weight = flip->weight;
	o->process = flip->process;
	o->cgroup = flip->cgroup;
	o->name = flip->name;
	o->user_stack = flip->user_stack;
	o->kernel_stack = flip->kernel_stack;
}

uint64_t sched_stacks_shared_bytes(const struct sched_collect *c)
{
	struct shared_map maps[SHARED_MAPS];
	uint64_t bytes = 0;

	list_maps(c, maps);
	for (int i = 0; c->base && i < SHARED_MAPS; i++)
		bytes += maps[i].base ? memory_of_map(maps[i].base) : 0;
	return bytes;
}

static void handle_stratum(void *context, const void *key, void *value)
{
	struct sched_collect *c = context;

	c->handler.stratum(c->handler.context, key, value);
}

static void handle_stack(void *context, const void *key, void *value)
{
	struct sched_collect *c = context;

	c->handler.stack(c->handler.context, key, value);
}

static int drain_half(struct sched_collect *c)
{
	struct bpf_map *strata = c->retired ? c->skel->maps.strata_1 : c->skel->maps.strata_0;
	struct bpf_map *counts = c->retired ? c->skel->maps.off_counts_1 : c->skel->maps.off_counts_0;
	struct map_each each = {
		.fd = bpf_map__fd(strata),
		.key_size = sizeof(struct sonde_stratum_key),
		.value_size = sizeof(struct sonde_stratum),
		.batch = FIRST_BATCH,
		.take = true,
		.handle = handle_stratum,
		.context = c,
	};
	int err = map_each(&each), more;

	each.fd = bpf_map__fd(counts);
	each.key_size = sizeof(struct sonde_off_key);
	each.value_size = sizeof(struct sonde_off_count);
	each.handle = handle_stack;
	more = map_each(&each);
	return err ? err : more;
}

int sched_collect_stacks(struct sched_collect *c)
{
	int err = collect_wait_for_programs(c->base);

	if (!err)
		err = collect_poll(c->base);
	return err ? err : drain_half(c);
}

void sched_collect_warm(struct sched_collect *c, bool on)
{
	c->skel->bss->off_warming = on;
}

int sched_collect_off_totals(struct sched_collect *c, struct off_totals *ret_totals)
{
	size_t count = (size_t)c->possible_cpus;
	struct sonde_counters *counters = calloc(count, sizeof(*counters));
	struct sonde_off_cpu *cpus = calloc(count, sizeof(*cpus));
	__u32 zero = 0, slot = SONDE_SLOT_TRACEPOINT;
	int err = cpus && counters ? 0 : -ENOMEM;
	struct off_totals t = { 0 };

	if (!err)
		err = bpf_map_lookup_elem(bpf_map__fd(c->skel->maps.off_cpus), &zero, cpus);
	if (!err)
		err = bpf_map_lookup_elem(bpf_map__fd(c->skel->maps.counters), &slot, counters);
	for (size_t cpu = 0; !err && cpu < count; cpu++) {
		for (int i = 0; i < SONDE_OFF_COUNTER_COUNT; i++)
			t.counters[i] += cpus[cpu].counters[i];
		for (int i = 0; i < SONDE_COUNTER_COUNT; i++)
			t.sonde[i] += counters[cpu].n[i];
	}
	if (!err)
		*ret_totals = t;
	free(counters);
	free(cpus);
	return err;
}

void sched_collect_forget_stack(struct sched_collect *c, uint64_t id)
{
	bpf_map_delete_elem(bpf_map__fd(c->skel->maps.seen_stacks), &id);
}

void sched_collect_forget_fact(struct sched_collect *c, uint64_t id)
{
	bpf_map_delete_elem(bpf_map__fd(c->skel->maps.seen_facts), &id);
}
