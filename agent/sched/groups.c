/* SPDX-License-Identifier: Apache-2.0 */
/* See groups.h. */
#include "agent/sched/groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

enum {
	SPECIAL_GROUPS = 3, /* beside the bound: [kernel], [other], [overflow] */
	UNUSED_INTERVALS = 30,
};

static const struct sched_owner kernel = { .container = "[kernel]" },
				other = { .container = "[other]" },
				overflow = { .container = "[overflow]" };

struct sched_groups {
	struct map groups; /* sched_owner -> sched_group */
	size_t max_groups;
	uint64_t interval;
	uint64_t folded;
};

int sched_groups_new(size_t max_groups, struct sched_groups **ret_groups)
{
	struct sched_groups *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	g->max_groups = max_groups;
	map_init(&g->groups, sizeof(struct sched_owner), sizeof(struct sched_group),
		 max_groups + SPECIAL_GROUPS);
	*ret_groups = g;
	return 0;
}

void sched_groups_free(struct sched_groups *g)
{
	if (!g)
		return;
	map_fini(&g->groups);
	free(g);
}

static bool is_special(const struct sched_owner *owner)
{
	return memcmp(owner, &kernel, sizeof(kernel)) == 0 ||
	       memcmp(owner, &other, sizeof(other)) == 0 ||
	       memcmp(owner, &overflow, sizeof(overflow)) == 0;
}

/* Makes room: the group that was unused for longest goes, if that was long. */
static bool evict(struct sched_groups *g)
{
	const struct sched_owner *owner, *oldest = NULL;
	const struct sched_group *group;
	uint64_t seen = UINT64_MAX;
	struct sched_owner key;
	size_t cursor = 0;

	while (map_next(&g->groups, &cursor, &owner, &group)) {
		if (group->seen < seen && !is_special(owner)) {
			oldest = owner;
			seen = group->seen;
		}
	}
	if (!oldest || g->interval < seen + UNUSED_INTERVALS)
		return false;
	key = *oldest;
	return map_del(&g->groups, &key);
}

/* The bound is for all that are not special, whether or not these are there yet. */
static bool has_room(const struct sched_groups *g)
{
	size_t special = (map_find(&g->groups, &kernel) != NULL) +
			 (map_find(&g->groups, &other) != NULL) +
			 (map_find(&g->groups, &overflow) != NULL);

	return g->groups.count - special < g->max_groups;
}

static struct sched_group *find_group(struct sched_groups *g, const struct sched_owner *owner)
{
	struct sched_group *group = map_find(&g->groups, owner);

	if (!group && !is_special(owner) && !has_room(g) && !evict(g)) {
		g->folded++;
		owner = &other;
	}
	if (!group && map_add(&g->groups, owner, &group) < 0)
		return NULL;
	group->seen = g->interval;
	return group;
}

static void add_row(struct sched_group *group, const struct sched_totals *row)
{
	int64_t ns[SONDE_SCHED_STATE_COUNT], stolen = sched_stolen_ns(row);
	struct sched_totals *t = &group->totals;

	memcpy(ns, row->ns, sizeof(ns));
	sched_settle(ns, row->exec_ns);
	for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++) {
		t->ns[i] += ns[i];
		t->entries[i] += row->entries[i];
	}
	for (int i = 0; i < SONDE_SCHED_BUCKETS; i++) {
		t->delay[i] += row->delay[i];
		t->off[i] += row->off[i];
	}
	group->stolen_ns += stolen < ns[SONDE_SCHED_RUNNING] ? stolen : ns[SONDE_SCHED_RUNNING];
	t->delay_ns += row->delay_ns > 0 ? row->delay_ns : 0;
	t->off_ns += row->off_ns > 0 ? row->off_ns : 0;
	t->elapsed_ns += row->elapsed_ns;
	t->migrations += row->migrations;
}

/* Threads without room, and those whose end was refused. */
static void add_overflow(struct sched_groups *g, const struct sched_books *b)
{
	struct sched_group *group;
	struct sched_machine m;
	uint64_t refused = 0;

	sched_books_machine(b, &m);
	for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++)
		refused += m.refused_ns[i];
	if (!m.untracked_ns && !refused)
		return;
	group = find_group(g, &overflow);
	if (!group)
		return;
	for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++)
		group->totals.ns[i] += (int64_t)m.refused_ns[i];
	group->totals.ns[SONDE_SCHED_RUNNING] += (int64_t)m.untracked_on_cpu_ns;
	if (m.untracked_ns > m.untracked_on_cpu_ns)
		group->off_ns += (int64_t)(m.untracked_ns - m.untracked_on_cpu_ns);
	group->totals.elapsed_ns += m.untracked_ns + refused;
}

void sched_groups_add(struct sched_groups *g, const struct sched_books *b,
		      void (*owner)(const char *path, struct sched_owner *ret_owner))
{
	const struct sched_row_key *key;
	const struct sched_row *row;
	size_t cursor = 0;

	g->interval++;
	while (sched_books_next(b, &cursor, &key, &row)) {
		struct sched_owner whose = kernel;
		struct sched_group *group;

		if (!row->is_kernel)
			owner(sched_books_cgroup_path(b, key->cgroup), &whose);
		group = find_group(g, &whose);
		if (group)
			add_row(group, &row->totals);
	}
	add_overflow(g, b);
}

uint64_t sched_groups_folded(const struct sched_groups *g)
{
	return g->folded;
}

bool sched_groups_next(const struct sched_groups *g, size_t *cursor,
		       const struct sched_owner **ret_owner, const struct sched_group **ret_group)
{
	return map_next(&g->groups, cursor, ret_owner, ret_group);
}
