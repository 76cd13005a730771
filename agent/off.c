/* SPDX-License-Identifier: Apache-2.0 */
/* See off.h. */
#include "agent/off.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sched/strata.h"
#include "base/map.h"

enum {
	MAX_ROWS = 65536,
	MAX_STRATA = 1 << 20,
	MAX_STACKS = 1 << 18,
	MAX_PROCESSES = 1 << 18,
};

/* A process between two execs. */
struct process_key {
	uint64_t start_ns;
	uint32_t tgid, exec_id;
};

struct agent_off {
	struct agent_off_options options;
	struct collect *collect;
	struct sched_collect *sched;
	struct sched_books *books;
	struct strata *strata;
	struct strata_options sharing;
	struct resolver *resolver; /* during a drain */
	struct map processes; /* id of a process record -> process_key */
	struct map on_cpu;    /* sonde_count_key -> sonde_count: samples of the interval */
	struct agent_off_totals totals;
};

/* ---- what the kernel side hands over ---- */

static void on_thread(void *context, const struct sonde_sched_thread *thread, uint64_t now_ns,
		      uint32_t epoch)
{
	struct agent_off *off = context;

	sched_books_thread(off->books, thread, now_ns, epoch);
}

static void on_cgroup(void *context, const struct event *event)
{
	struct agent_off *off = context;

	sched_books_cgroup(off->books, event);
}

static void on_open(void *context, const struct sonde_off_thread *thread, uint64_t now_ns,
		    uint64_t from_ns)
{
	struct agent_off *off = context;

	/* Of a thread that is no target, or not known as one yet, no stratum is made. */
	if (off->sharing.wanted && !thread->is_target)
		return;
	strata_open(off->strata, thread, now_ns, from_ns, &off->sharing);
}

static void on_stratum(void *context, const struct sonde_stratum_key *key,
		       const struct sonde_stratum *stratum)
{
	struct agent_off *off = context;

	strata_add(off->strata, key, stratum);
}

static void on_stack(void *context, const struct sonde_off_key *key,
		     const struct sonde_off_count *count)
{
	struct agent_off *off = context;

	strata_stack(off->strata, key, count);
}

/* ---- what goes to the profile ---- */

static void hand_on(struct agent_off *off, const struct strata_share *share, enum sonde_kind kind,
		    const struct sonde_count *count)
{
	bool runs = share->state == SONDE_SCHED_RUNNING;
	uint32_t detail = share->state |
			  (share->bucket >= SONDE_OFF_LONG_BUCKET ? SONDE_OFF_LONG : 0);
	struct resolver_owner owner = {
		.comm = share->named->comm,
		.tgid = share->row->tgid,
		.cgroup = sched_books_cgroup_path(off->books, share->row->cgroup),
	};
	struct sonde_count_key key = { .kind = runs ? SONDE_KIND_ON_CPU : kind,
				       .detail = runs ? 0 : detail };

	if (!share->stack) {
		resolver_unstacked(off->resolver, &owner, kind, detail, count);
		return;
	}
	key.process = share->stack->process;
	key.cgroup = share->stack->cgroup;
	key.thread = share->stack->thread;
	key.user_stack = share->stack->user_stack;
	key.kernel_stack = share->stack->kernel_stack;
	resolver_count(off->resolver, &key, count);
}

static void on_share(void *context, const struct strata_share *share)
{
	struct agent_off *off = context;
	struct sonde_count count = { .samples = share->count, .weight = share->ns },
			   longest = { .weight = share->max_ns };

	hand_on(off, share, SONDE_KIND_OFF_CPU, &count);
	if (share->max_ns)
		hand_on(off, share, SONDE_KIND_OFF_MAX, &longest);
	off->totals.states_ns[share->state] += share->ns;
	if (!share->stack)
		off->totals.unstacked_ns += share->ns;
}

static bool is_target(void *context, const struct sched_row_key *row)
{
	struct agent_off *off = context;

	return collect_is_target(off->collect, row->tgid, row->process_start_ns);
}

/* ---- the wall clock ---- */

void agent_off_process(struct agent_off *off, const struct event *event)
{
	struct process_key *process;

	/* What is not known here counts as sampled. */
	if (off->options.wall && map_add(&off->processes, &event->id, &process) >= 0)
		*process = (struct process_key){ event->process->start_ns, event->process->tgid,
						 event->process->exec_id };
}

bool agent_off_on_cpu(struct agent_off *off, const struct sonde_count_key *key,
		      const struct sonde_count *count)
{
	struct sonde_count *sum;

	if (!off->options.wall || !map_find(&off->processes, &key->process) ||
	    map_add(&off->on_cpu, key, &sum) < 0)
		return false;
	sum->samples += count->samples;
	sum->weight += count->weight;
	return true;
}

/* Rows of the interval by their process; of one that was in several cgroups, the first. */
static int index_rows(const struct agent_off *off, struct map *rows)
{
	const struct sched_row_key *key;
	size_t cursor = 0;

	map_init(rows, sizeof(struct process_key), sizeof(uint64_t), MAX_ROWS);
	while (sched_books_next(off->books, &cursor, &key, NULL)) {
		struct process_key process = { key->process_start_ns, key->tgid, key->exec_id };
		uint64_t *row;
		int err = map_add(rows, &process, &row);

		if (err < 0)
			return err;
		if (err)
			*row = strata_row(key);
	}
	return 0;
}

static void share_samples(struct agent_off *off)
{
	const struct sonde_count_key *key;
	const struct sonde_count *count;
	size_t cursor = 0;
	struct map rows;
	int err = index_rows(off, &rows);

	while (map_next(&off->on_cpu, &cursor, &key, &count)) {
		const struct process_key *process = map_find(&off->processes, &key->process);
		const uint64_t *row = err || !process ? NULL : map_find(&rows, process);
		struct sonde_off_key at = { .process = key->process,
					    .cgroup = key->cgroup,
					    .thread = key->thread,
					    .user_stack = key->user_stack,
					    .kernel_stack = key->kernel_stack };

		if (!row) {
			resolver_count(off->resolver, key, count);
			continue;
		}
		at.stratum.row = *row;
		strata_on_cpu(off->strata, &at, count->samples, count->weight);
	}
	map_clear(&off->on_cpu);
	map_fini(&rows);
}

int agent_off_drain(struct agent_off *off, struct resolver *resolver)
{
	struct sched_machine machine;
	int err = sched_collect_snapshot(off->sched, &machine);

	if (!err) {
		sched_books_snapshot(off->books, &machine);
		off->totals.duration_ns += sched_books_duration(off->books);
		err = sched_collect_stacks(off->sched);
	}
	off->resolver = resolver;
	share_samples(off);
	if (!err)
		err = strata_distribute(off->strata, off->books, &off->sharing);
	off->resolver = NULL;
	sched_books_clear(off->books);
	if (err)
		off->totals.errors++;
	return err;
}

/* ---- life ---- */

static void forget_cgroup(void *context, uint64_t id)
{
	struct agent_off *off = context;

	sched_collect_forget_cgroup(off->sched, id);
}

static int open_parts(struct agent_off *off, char *reason, size_t size)
{
	struct sched_stacks stacks = { .collect = off->collect,
				       .min_ns = off->options.min_ns,
				       .states = off->options.states,
				       .thread_names = true };
	struct sched_collect_options collect = { .max_threads = off->options.max_threads,
						 .stacks = &stacks };
	struct sched_books_options books = { .max_rows = MAX_ROWS,
					     .max_threads = 2 * (size_t)off->options.max_threads,
					     .forget_cgroup = forget_cgroup,
					     .context = off };
	struct sched_handler handler = { .thread = on_thread,
					 .cgroup = on_cgroup,
					 .context = off,
					 .open = on_open,
					 .stratum = on_stratum,
					 .stack = on_stack };
	struct sched_machine machine;
	int err = strata_new(MAX_STRATA, MAX_STACKS, &off->strata);

	/* What the first two may fail for; the third says more. */
	snprintf(reason, size, "out of memory");
	if (!err)
		err = sched_books_new(&books, &off->books);
	if (!err)
		err = sched_collect_open(&collect, &handler, &off->sched, reason, size);
	/* The first snapshot is where the books begin. */
	if (!err)
		err = sched_collect_snapshot(off->sched, &machine);
	if (err && off->sched)
		snprintf(reason, size, "the scheduler accounting cannot be read: %s", strerror(-err));
	if (!err) {
		sched_books_snapshot(off->books, &machine);
		sched_books_clear(off->books);
	}
	return err;
}

int agent_off_open(const struct agent_off_options *options, struct collect *collect,
		   struct agent_off **ret_off, char *reason, size_t reason_size)
{
	struct agent_off *off = calloc(1, sizeof(*off));
	int err;

	if (!off) {
		snprintf(reason, reason_size, "out of memory");
		return -ENOMEM;
	}
	off->options = *options;
	off->collect = collect;
	map_init(&off->processes, sizeof(uint64_t), sizeof(struct process_key), MAX_PROCESSES);
	map_init(&off->on_cpu, sizeof(struct sonde_count_key), sizeof(struct sonde_count),
		 MAX_STACKS);
	off->sharing = (struct strata_options){
		.states = options->states,
		.running = options->wall,
		.min_ns = options->min_ns,
		.wanted = collect_takes_all(collect) ? NULL : is_target,
		.share = on_share,
		.context = off,
	};
	err = open_parts(off, reason, reason_size);
	if (err) {
		agent_off_close(off);
		return err;
	}
	*ret_off = off;
	return 0;
}

void agent_off_close(struct agent_off *off)
{
	if (!off)
		return;
	sched_collect_close(off->sched);
	sched_books_free(off->books);
	strata_free(off->strata);
	map_fini(&off->processes);
	map_fini(&off->on_cpu);
	free(off);
}

void agent_off_warm(struct agent_off *off, bool on)
{
	sched_collect_warm(off->sched, on);
}

void agent_off_forget(struct agent_off *off, enum collect_thing thing, uint64_t id)
{
	if (thing == COLLECT_STACK)
		sched_collect_forget_stack(off->sched, id);
	else if (thing == COLLECT_FACT)
		sched_collect_forget_fact(off->sched, id);
}

void agent_off_totals(struct agent_off *off, struct agent_off_totals *ret_totals)
{
	if (!off)
		return;
	/* What cannot be read stays as it was. */
	sched_collect_off_totals(off->sched, &off->totals.kernel);
	off->totals.refused = strata_refused(off->strata);
	*ret_totals = off->totals;
}

uint64_t agent_off_map_bytes(const struct agent_off *off)
{
	return sched_collect_map_bytes(off->sched);
}
