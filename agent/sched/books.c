/* SPDX-License-Identifier: Apache-2.0 */
/* Rows out of threads' records; see books.h. */
#include "agent/sched/books.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sched/cgroups.h"
#include "base/map.h"

enum { MAX_SHARED_ROWS = 4096 };

struct thread_key {
	uint64_t start_ns;
	uint32_t tid;
	uint32_t segment;
};

struct thread_last {
	struct sched_sums sums;
	uint64_t until_ns; /* its lifetime up to then is in a row */
	uint64_t snapshot; /* in which it was last seen */
};

struct sched_books {
	struct sched_books_options options;
	struct map threads; /* thread_key -> thread_last */
	struct map rows;    /* sched_row_key -> sched_row */
	struct sched_cgroups cgroups;
	uint64_t snapshot; /* number of the one that is being read */
	uint64_t lost;
	struct sched_machine machine, machine_start; /* at the last snapshot, at the last clear */
};

int sched_books_new(const struct sched_books_options *options, struct sched_books **ret_books)
{
	struct sched_books *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->options = *options;
	map_init(&b->threads, sizeof(struct thread_key), sizeof(struct thread_last),
		 options->max_threads);
	map_init(&b->rows, sizeof(struct sched_row_key), sizeof(struct sched_row),
		 options->max_rows + MAX_SHARED_ROWS + 1);
	sched_cgroups_init(&b->cgroups);
	*ret_books = b;
	return 0;
}

void sched_books_free(struct sched_books *b)
{
	if (!b)
		return;
	map_fini(&b->threads);
	map_fini(&b->rows);
	sched_cgroups_fini(&b->cgroups);
	free(b);
}

/* A row that several processes share once there are too many. */
static struct sched_row *shared_row(struct sched_books *b, const struct sonde_sched_thread *t)
{
	struct sched_row_key key = { .cgroup = t->cgroup, .shared = SCHED_SHARED_NAME };
	struct sched_row *row = NULL;
	int err;

	memcpy(key.name, t->comm, strnlen(t->comm, sizeof(t->comm)));
	err = b->rows.count < b->options.max_rows + MAX_SHARED_ROWS ? map_add(&b->rows, &key, &row)
								    : -ENOSPC;
	if (err < 0) {
		row = map_find(&b->rows, &key);
		if (row)
			return row;
		key = (struct sched_row_key){ .shared = SCHED_SHARED_REST };
		err = map_add(&b->rows, &key, &row);
		if (err == 1)
			strcpy(row->comm, "[other]");
	} else if (err == 1) {
		memcpy(row->comm, t->comm, sizeof(row->comm) - 1);
	}
	return err < 0 ? NULL : row;
}

/* The process's name is that of its first thread, if that is seen. */
static void name_row(struct sched_row *row, const struct sonde_sched_thread *t, bool by_thread)
{
	bool leader = t->tid == t->tgid || by_thread;

	if (row->named_by_leader && !leader)
		return;
	if (leader || !row->comm[0]) {
		memcpy(row->comm, t->comm, sizeof(row->comm) - 1);
		row->named_by_leader = leader;
	}
	row->is_kernel = t->flags & SONDE_SCHED_KERNEL_THREAD;
}

static struct sched_row *find_row(struct sched_books *b, const struct sonde_sched_thread *t)
{
	struct sched_row_key key = { .process_start_ns = t->process_start_ns,
				     .cgroup = t->cgroup,
				     .tgid = t->tgid,
				     .exec_id = t->exec_id };
	struct sched_row *row = NULL;

	if (b->options.by_thread) {
		key.tid = t->tid;
		key.thread_start_ns = t->start_ns;
	}
	row = map_find(&b->rows, &key);
	if (!row && (b->rows.count >= b->options.max_rows || map_add(&b->rows, &key, &row) < 0))
		return shared_row(b, t);
	name_row(row, t, b->options.by_thread);
	return row;
}

/* How long it lived since it was last seen: by its birth, its end, and the snapshots' clock. */
static uint64_t lifetime(const struct sonde_sched_thread *t, uint64_t until_ns, uint64_t to_ns)
{
	uint64_t from_ns = until_ns > t->birth ? until_ns : t->birth;

	return to_ns > from_ns ? to_ns - from_ns : 0;
}

void sched_books_thread(void *context, const struct sonde_sched_thread *t, uint64_t now_ns,
			uint32_t epoch)
{
	struct thread_key key = { t->start_ns, t->tid, t->segment };
	bool live = t->head.id == SONDE_SCHED_LIVE;
	struct thread_last *last = NULL, none = { 0 };
	struct sched_books *b = context;
	struct sched_row *row = find_row(b, t);
	uint64_t to_ns = live ? now_ns : t->since;
	struct sched_sums sums;
	int err = live ? map_add(&b->threads, &key, &last) : 0;

	if (!live)
		last = map_find(&b->threads, &key);
	if (err < 0 || !row) {
		b->lost++; /* not remembered it would count twice; the next snapshot tries again */
		return;
	}
	if (!last)
		last = &none;
	sched_cgroups_use(&b->cgroups, t->cgroup, b->snapshot);
	sched_sums_of(t, now_ns, &sums);
	sched_totals_add(&row->totals, &last->sums, &sums);
	row->totals.elapsed_ns += lifetime(t, last->until_ns, to_ns);
	/* One that ends while a snapshot is taken comes twice. */
	row->totals.threads += !(last->until_ns && last->snapshot == b->snapshot);
	if (sched_max_delay(t, epoch) > row->totals.max_delay_ns)
		row->totals.max_delay_ns = sched_max_delay(t, epoch);
	last->sums = sums;
	last->until_ns = to_ns;
	last->snapshot = b->snapshot;
	if (!live)
		map_del(&b->threads, &key);
}

void sched_books_cgroup(void *context, const struct event *event)
{
	char path[PATH_MAX];
	struct sched_books *b = context;
	const struct path_names *names =
		event->cgroup.v1.count ? &event->cgroup.v1 : &event->cgroup.v2;
	size_t len = path_names_join(names, path, sizeof(path));

	sched_cgroups_add(&b->cgroups, event->id, path, len, b->snapshot);
}

/* Threads that are gone although no end was told: their rest is in the overflow row. */
static void forget_unseen(struct sched_books *b)
{
	struct thread_key gone[256];
	size_t count, cursor;

	do {
		struct thread_last *last;
		struct thread_key *key;

		count = 0;
		cursor = 0;
		while (count < sizeof(gone) / sizeof(gone[0]) &&
		       map_next(&b->threads, &cursor, &key, &last)) {
			if (last->snapshot != b->snapshot)
				gone[count++] = *key;
		}
		for (size_t i = 0; i < count; i++)
			map_del(&b->threads, &gone[i]);
	} while (count == sizeof(gone) / sizeof(gone[0]));
}

void sched_books_snapshot(struct sched_books *b, const struct sched_machine *machine)
{
	forget_unseen(b);
	sched_cgroups_sweep(&b->cgroups, b->snapshot, b->options.forget_cgroup, b->options.context);
	b->machine = *machine;
	b->snapshot++;
}

void sched_books_forget(struct sched_books *b)
{
	map_clear(&b->threads);
	map_clear(&b->rows);
	b->machine = b->machine_start = (struct sched_machine){ 0 };
}

void sched_books_clear(struct sched_books *b)
{
	map_clear(&b->rows);
	b->machine_start = b->machine;
}

uint64_t sched_books_duration(const struct sched_books *b)
{
	return b->machine.now_ns - b->machine_start.now_ns;
}

/* Of threads that were found to be none, what was counted is taken back. */
static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

void sched_books_machine(const struct sched_books *b, struct sched_machine *ret_difference)
{
	const struct sched_machine *from = &b->machine_start;
	struct sched_machine m = b->machine;

	m.untracked_ns = since(m.untracked_ns, from->untracked_ns);
	m.untracked_on_cpu_ns = since(m.untracked_on_cpu_ns, from->untracked_on_cpu_ns);
	m.runs -= from->runs;
	m.bpf_ns -= from->bpf_ns;
	for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++)
		m.refused_ns[i] -= from->refused_ns[i];
	for (int i = 0; i < SONDE_SCHED_COUNTER_COUNT; i++)
		m.counters[i] -= from->counters[i];
	m.torn -= from->torn;
	m.read_errors -= from->read_errors;
	*ret_difference = m;
}

size_t sched_books_threads(const struct sched_books *b)
{
	return b->threads.count;
}

uint64_t sched_books_cgroups_refused(const struct sched_books *b)
{
	return b->cgroups.refused;
}

uint64_t sched_books_lost(const struct sched_books *b)
{
	return b->lost;
}

bool sched_books_next(const struct sched_books *b, size_t *cursor,
		      const struct sched_row_key **ret_key, const struct sched_row **ret_row)
{
	return map_next(&b->rows, cursor, ret_key, ret_row);
}

const char *sched_books_cgroup_path(const struct sched_books *b, uint64_t id)
{
	return sched_cgroups_path(&b->cgroups, id);
}
