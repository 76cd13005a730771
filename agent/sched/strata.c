/* SPDX-License-Identifier: Apache-2.0 */
/* See strata.h. */
#include "agent/sched/strata.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

struct stratum_entry {
	struct sonde_stratum_key key;
	struct sonde_stratum value;
};

struct stack_entry {
	struct sonde_off_key key;
	struct sonde_off_count value;
};

struct strata {
	struct map strata; /* sonde_stratum_key -> sonde_stratum */
	struct map stacks; /* sonde_off_key -> sonde_off_count */
	uint64_t refused;
	/* Sorted by stratum, while shares are made. */
	struct stratum_entry *sorted;
	struct stack_entry *sorted_stacks;
};

int strata_new(size_t max_strata, size_t max_stacks, struct strata **ret_strata)
{
	struct strata *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	map_init(&s->strata, sizeof(struct sonde_stratum_key), sizeof(struct sonde_stratum),
		 max_strata);
	map_init(&s->stacks, sizeof(struct sonde_off_key), sizeof(struct sonde_off_count),
		 max_stacks);
	*ret_strata = s;
	return 0;
}

void strata_free(struct strata *s)
{
	if (!s)
		return;
	map_fini(&s->strata);
	map_fini(&s->stacks);
	free(s);
}

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void strata_add(struct strata *s, const struct sonde_stratum_key *key,
		const struct sonde_stratum *stratum)
{
	struct sonde_stratum *sum;

	if (map_add(&s->strata, key, &sum) < 0) {
		s->refused++;
		return;
	}
	sum->count += stratum->count;
	sum->ns += stratum->ns;
	sum->max_ns = max(sum->max_ns, stratum->max_ns);
}

void strata_stack(struct strata *s, const struct sonde_off_key *key,
		  const struct sonde_off_count *count)
{
	struct sonde_off_count *sum;

	if (map_add(&s->stacks, key, &sum) < 0) {
		s->refused++;
		return;
	}
	sum->captures += count->captures;
	sum->count += count->count;
	sum->ns += count->ns;
	sum->max_ns = max(sum->max_ns, count->max_ns);
}

/* As the kernel side does it. */
static uint32_t bucket_of(uint64_t ns)
{
	uint32_t bucket = 0;

	while (bucket < SONDE_SCHED_BUCKETS - 1 && sched_bucket_start((int)bucket + 1) <= ns)
		bucket++;
	return bucket;
}

void strata_open(struct strata *s, const struct sonde_off_thread *o, uint64_t now_ns,
		 uint64_t from_ns, const struct strata_options *options)
{
	uint64_t begin = o->t.since > from_ns ? o->t.since : from_ns, ns, whole;
	uint32_t state = o->t.state;

	if (state == SONDE_SCHED_RUNNING || state >= SONDE_SCHED_STATE_COUNT || now_ns <= begin ||
	    !(options->states >> state & 1))
		return;
	ns = now_ns - begin;
	whole = now_ns - o->t.since;
	if (whole < options->min_ns)
		return;
	struct sonde_off_key key = { .stratum = { sonde_off_row(&o->t), state, bucket_of(whole) },
				     .process = o->process,
				     .cgroup = o->cgroup,
				     .thread = o->name,
				     .user_stack = o->user_stack,
				     .kernel_stack = o->kernel_stack };

	strata_add(s, &key.stratum, &(struct sonde_stratum){ 0, ns, whole });
	if (o->weight)
		strata_stack(s, &key, &(struct sonde_off_count){ 0, 0, ns * o->weight, whole });
}

void strata_on_cpu(struct strata *s, const struct sonde_off_key *key, uint64_t samples, uint64_t ns)
{
	_Static_assert(SONDE_SCHED_RUNNING == 0, "the stratum of samples is that of state 0");
	strata_add(s, &key->stratum, &(struct sonde_stratum){ samples, ns, 0 });
	strata_stack(s, key, &(struct sonde_off_count){ samples, samples, ns, 0 });
}

uint64_t strata_refused(const struct strata *s)
{
	return s->refused;
}

uint64_t strata_part(uint64_t whole, uint64_t before, uint64_t weight, uint64_t all)
{
	unsigned __int128 from, to;

	if (!all)
		return 0;
	from = (unsigned __int128)whole * before / all;
	to = (unsigned __int128)whole * (before + weight) / all;
	return (uint64_t)(to - from);
}

/* ---- sorted ---- */

static int compare_keys(const struct sonde_stratum_key *a, const struct sonde_stratum_key *b)
{
	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	if (a->state != b->state)
		return a->state < b->state ? -1 : 1;
	return (a->bucket > b->bucket) - (a->bucket < b->bucket);
}

static int compare_strata(const void *a, const void *b)
{
	return compare_keys(&((const struct stratum_entry *)a)->key,
			    &((const struct stratum_entry *)b)->key);
}

/* All of the key, so that shares do not depend on the order of maps. */
static int compare_stacks(const void *a, const void *b)
{
	const struct stack_entry *x = a, *y = b;
	int order = compare_keys(&x->key.stratum, &y->key.stratum);

	return order ? order : memcmp(&x->key, &y->key, sizeof(x->key));
}

static int sort(struct strata *s)
{
	const void *key, *value;
	size_t cursor = 0, n = 0;

	s->sorted = calloc(s->strata.count + 1, sizeof(*s->sorted));
	s->sorted_stacks = calloc(s->stacks.count + 1, sizeof(*s->sorted_stacks));
	if (!s->sorted || !s->sorted_stacks)
		return -ENOMEM;
	while (map_next(&s->strata, &cursor, &key, &value)) {
		memcpy(&s->sorted[n].key, key, sizeof(s->sorted[n].key));
		memcpy(&s->sorted[n++].value, value, sizeof(s->sorted[n].value));
	}
	qsort(s->sorted, n, sizeof(*s->sorted), compare_strata);
	cursor = n = 0;
	while (map_next(&s->stacks, &cursor, &key, &value)) {
		memcpy(&s->sorted_stacks[n].key, key, sizeof(s->sorted_stacks[n].key));
		memcpy(&s->sorted_stacks[n++].value, value, sizeof(s->sorted_stacks[n].value));
	}
	qsort(s->sorted_stacks, n, sizeof(*s->sorted_stacks), compare_stacks);
	return 0;
}

/* The first stratum that is not before `key`. */
static size_t find_stratum(const struct strata *s, const struct sonde_stratum_key *key)
{
	size_t low = 0, high = s->strata.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_keys(&s->sorted[middle].key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static size_t find_stack(const struct strata *s, const struct sonde_stratum_key *key)
{
	size_t low = 0, high = s->stacks.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_keys(&s->sorted_stacks[middle].key.stratum, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- shares ---- */

/* A row's time in a state, as it is handed on. */
struct sharing {
	const struct strata *s;
	const struct strata_options *options;
	struct strata_share share;
};

static void hand_on(struct sharing *sharing, const struct sonde_off_key *stack, uint64_t count,
		    uint64_t ns, uint64_t max_ns)
{
	struct strata_share *share = &sharing->share;

	if (!count && !ns)
		return;
	share->stack = stack;
	share->count = count;
	share->ns = ns;
	share->max_ns = max_ns;
	sharing->options->share(sharing->options->context, share);
}

/* A stratum's `ns` among its stacks, by the time and the number that each stands for. */
static void share_stratum(struct sharing *sharing, const struct stratum_entry *stratum, uint64_t ns)
{
	const struct strata *s = sharing->s;
	uint64_t all_ns = 0, all_counts = 0, before_ns = 0, before_counts = 0;
	size_t first = find_stack(s, &stratum->key), end;

	for (end = first; end < s->stacks.count &&
			  compare_keys(&s->sorted_stacks[end].key.stratum, &stratum->key) == 0;
	     end++) {
		all_ns += s->sorted_stacks[end].value.ns;
		all_counts += s->sorted_stacks[end].value.count;
	}
	sharing->share.bucket = stratum->key.bucket;
	if (!all_ns) {
		hand_on(sharing, NULL, stratum->value.count, ns, stratum->value.max_ns);
		return;
	}
	for (size_t i = first; i < end; i++) {
		const struct sonde_off_count *stack = &s->sorted_stacks[i].value;
		/* Where only waits that go on have stacks, those that ended are as they are. */
		uint64_t count = all_counts ? strata_part(stratum->value.count, before_counts,
							  stack->count, all_counts)
					    : strata_part(stratum->value.count, before_ns, stack->ns,
							  all_ns);

		hand_on(sharing, &s->sorted_stacks[i].key, count,
			strata_part(ns, before_ns, stack->ns, all_ns), stack->max_ns);
		before_ns += stack->ns;
		before_counts += stack->count;
	}
}

/* What the books say of a row in a state, by strata. */
static void share_state(struct sharing *sharing, uint64_t row, uint64_t whole)
{
	struct sonde_stratum_key key = { .row = row, .state = sharing->share.state };
	const struct strata *s = sharing->s;
	size_t first = find_stratum(s, &key), end;
	uint64_t all = 0, before = 0;

	for (end = first; end < s->strata.count && s->sorted[end].key.row == row &&
			  s->sorted[end].key.state == key.state;
	     end++)
		all += s->sorted[end].value.ns;
	/* Samples are what they are by chance, also as many: all of the time is theirs. */
	if (key.state == SONDE_SCHED_RUNNING && end > first) {
		share_stratum(sharing, &s->sorted[first], whole);
		return;
	}
	for (size_t i = first; i < end; i++) {
		uint64_t ns = s->sorted[i].value.ns;

		share_stratum(sharing, &s->sorted[i],
			      all > whole && !sharing->options->min_ns
				      ? strata_part(whole, before, ns, all)
				      : ns);
		before += ns;
	}
	sharing->share.bucket = 0;
	if (whole > all && !sharing->options->min_ns)
		hand_on(sharing, NULL, 0, whole - all, 0);
}

uint64_t strata_row(const struct sched_row_key *key)
{
	struct sonde_sched_thread t = { .process_start_ns = key->process_start_ns,
					.cgroup = key->cgroup,
					.exec_id = key->exec_id,
					.tgid = key->tgid };

	return sonde_off_row(&t);
}

static bool has_strata(const struct strata *s, uint64_t row)
{
	size_t at = find_stratum(s, &(struct sonde_stratum_key){ .row = row });

	return at < s->strata.count && s->sorted[at].key.row == row;
}

static void share_row(const struct strata *s, const struct strata_options *options,
		      const struct sched_row_key *key, const struct sched_row *row)
{
	struct sharing sharing = { s, options, { .row = key, .named = row } };
	int64_t ns[SONDE_SCHED_STATE_COUNT];
	uint64_t id = strata_row(key);

	if (options->wanted && !has_strata(s, id) && !options->wanted(options->context, key))
		return;
	memcpy(ns, row->totals.ns, sizeof(ns));
	sched_settle(ns, row->totals.exec_ns);
	for (uint32_t state = 0; state < SONDE_SCHED_STATE_COUNT; state++) {
		sharing.share.state = state;
		bool wanted = state == SONDE_SCHED_RUNNING ? options->running
							     : options->states >> state & 1;

		if (wanted && ns[state] > 0)
			share_state(&sharing, id, (uint64_t)ns[state]);
	}
}

int strata_distribute(struct strata *s, const struct sched_books *books,
		      const struct strata_options *options)
{
	const struct sched_row_key *key;
	const struct sched_row *row;
	size_t cursor = 0;
	int err = sort(s);

	while (!err && sched_books_next(books, &cursor, &key, &row))
		share_row(s, options, key, row);
	map_clear(&s->strata);
	map_clear(&s->stacks);
	free(s->sorted);
	free(s->sorted_stacks);
	s->sorted = NULL;
	s->sorted_stacks = NULL;
	return err;
}
