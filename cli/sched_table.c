/* SPDX-License-Identifier: Apache-2.0 */
/* Rows out of a profile of the scheduler accounting: read, filtered, grouped; see sched.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report_private.h"
#include "cli/sched.h"

enum { MAX_GROUPS = 4 << 20 };

/* What of a sample's labels makes a line of its own. */
struct grouping {
	const char *name;
	bool comm, pid, thread, cgroup;
};

static const struct grouping groupings[] = {
	{ "process", .comm = true, .pid = true },
	{ "thread", .comm = true, .pid = true, .thread = true },
	{ "cgroup", .cgroup = true },
	{ "comm", .comm = true },
	{ "all" },
};

struct reader {
	const struct profile *p;
	const struct sched_view *view;
	const struct grouping *grouping;
	struct map groups; /* sched_group_key -> sched_group */
	struct sched_table *table;
};

/* A sample's labels. */
struct labels {
	struct sched_group_key key;
	int64_t bucket_ns, max_ns;
};

static const struct grouping *find_grouping(const char *name)
{
	for (size_t i = 0; i < sizeof(groupings) / sizeof(groupings[0]); i++) {
		if (strcmp(groupings[i].name, name) == 0)
			return &groupings[i];
	}
	return NULL;
}

int sched_view_check(const struct sched_view *view, char *reason, size_t size)
{
	const char *h = view->histogram;

	if (!find_grouping(view->by))
		snprintf(reason, size, "--by: '%s' is none of process, thread, cgroup, comm, all",
			 view->by);
	else if (!sched_sort_knows(view->sort))
		snprintf(reason, size, "--sort: '%s' is no column; see --help", view->sort);
	else if (h && strcmp(h, "delay") != 0 && strcmp(h, "off") != 0)
		snprintf(reason, size, "--histogram: '%s' is neither delay nor off", h);
	else
		return 0;
	return -EINVAL;
}

static bool is_wanted(const struct reader *r, const struct labels *l)
{
	char pid[24];

	snprintf(pid, sizeof(pid), "%lld", (long long)l->key.pid);
	return report_matches(r->view->comm, profile_text(r->p, l->key.comm), false) &&
	       report_matches(r->view->pid, pid, false) &&
	       report_matches(r->view->cgroup, profile_text(r->p, l->key.cgroup), false);
}

static void read_labels(const struct profile *p, const struct profile_sample *s,
			struct labels *ret_labels)
{
	struct labels l = { 0 };

	for (uint32_t i = 0; i < s->label_count; i++) {
		const struct profile_label *label = &s->labels[i];
		const char *key = profile_text(p, label->key);
		const struct {
			const char *name;
			uint32_t *str;
			int64_t *num;
		} rows[] = {
			{ "comm", &l.key.comm, NULL },
			{ "thread", &l.key.thread, NULL },
			{ "cgroup", &l.key.cgroup, NULL },
			{ "pid", NULL, &l.key.pid },
			{ "tid", NULL, &l.key.tid },
			{ SCHED_LABEL_BUCKET, NULL, &l.bucket_ns },
			{ SCHED_LABEL_MAX, NULL, &l.max_ns },
		};

		for (size_t j = 0; j < sizeof(rows) / sizeof(rows[0]); j++) {
			if (strcmp(key, rows[j].name) != 0)
				continue;
			if (rows[j].str)
				*rows[j].str = label->str;
			else
				*rows[j].num = label->num;
		}
		if (strcmp(key, "kernel") == 0)
			l.key.kernel = 1;
	}
	*ret_labels = l;
}

/* The name of a sample's frame, from the leaf on; "" if there is none. */
static const char *frame_name(const struct profile *p, const struct profile_sample *s, uint32_t i)
{
	const struct profile_location *l;

	if (i >= s->location_count)
		return "";
	l = &p->locations[s->locations[i] - 1];
	return l->line_count ? profile_text(p, p->functions[l->lines[0].function_id - 1].name) : "";
}

static int bucket_of(int64_t from_ns)
{
	for (int i = SONDE_SCHED_BUCKETS - 1; i > 0; i--) {
		if (from_ns >= (int64_t)sched_bucket_start(i))
			return i;
	}
	return 0;
}

/* Time and entries of a state: two frames, or one where there is but one reason. */
static void add_state(struct sched_group *g, const char *leaf, const char *outer, const int64_t *v)
{
	struct sched_totals *t = &g->totals;

	if (strcmp(leaf, SCHED_FRAME_STOLEN) == 0) {
		t->ns[SONDE_SCHED_RUNNING] += v[SCHED_WALL];
		return;
	}
	if (strcmp(outer, SCHED_FRAME_OFF_CPU) == 0)
		g->off_ns += (uint64_t)v[SCHED_WALL];
	for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++) {
		if (strcmp(outer, sched_state_names[i]) != 0 ||
		    (i != SONDE_SCHED_RUNNING && strcmp(leaf, sched_reason_names[i]) != 0))
			continue;
		t->ns[i] += v[SCHED_WALL];
		t->entries[i] += (uint64_t)v[SCHED_ENTRIES];
		if (i == SONDE_SCHED_RUNNING)
			t->exec_ns += v[SCHED_WALL];
	}
}

static void add_sample(struct sched_group *g, const struct profile *p,
		       const struct profile_sample *s, const struct labels *l)
{
	const char *leaf = frame_name(p, s, 0);
	const char *outer = s->location_count > 1 ? frame_name(p, s, 1) : leaf;
	struct sched_totals *t = &g->totals;
	const int64_t *v = s->values;

	t->elapsed_ns += (uint64_t)v[SCHED_LIFETIME];
	t->threads += (uint64_t)v[SCHED_THREADS];
	t->migrations += (uint64_t)v[SCHED_MIGRATIONS];
	t->delay_ns += v[SCHED_DELAY];
	if ((uint64_t)l->max_ns > t->max_delay_ns)
		t->max_delay_ns = (uint64_t)l->max_ns;
	if (v[SCHED_DELAYS])
		t->delay[bucket_of(l->bucket_ns)] += (uint64_t)v[SCHED_DELAYS];
	else if (v[SCHED_OFF])
		t->off[bucket_of(l->bucket_ns)] += (uint64_t)v[SCHED_OFF];
	else
		add_state(g, leaf, outer, v);
}

static int read_sample(struct reader *r, const struct profile_sample *s)
{
	struct sched_group_key key;
	struct sched_group *group;
	struct labels l;
	int err;

	read_labels(r->p, s, &l);
	if (!is_wanted(r, &l))
		return 0;
	add_sample(&r->table->all, r->p, s, &l);
	if (l.key.kernel && !r->view->kernel) {
		add_sample(&r->table->kernel, r->p, s, &l);
		return 0;
	}
	key = (struct sched_group_key){
		.comm = r->grouping->comm ? l.key.comm : 0,
		.pid = r->grouping->pid ? l.key.pid : 0,
		.thread = r->grouping->thread ? l.key.thread : 0,
		.tid = r->grouping->thread ? l.key.tid : 0,
		.cgroup = r->grouping->cgroup ? l.key.cgroup : 0,
		.kernel = r->grouping->comm ? l.key.kernel : 0,
	};
	err = map_add(&r->groups, &key, &group);
	if (err < 0)
		return err;
	group->key = key;
	add_sample(group, r->p, s, &l);
	return 0;
}

static bool is_sched_profile(const struct profile *p)
{
#define X(id, type, unit) type,
	static const char *const types[] = { SCHED_VALUES(X) };
#undef X

	if (p->type_count != SCHED_VALUE_COUNT)
		return false;
	for (int i = 0; i < SCHED_VALUE_COUNT; i++) {
		if (strcmp(profile_text(p, p->types[i].type), types[i]) != 0)
			return false;
	}
	return true;
}

/* All sums of the rows are sums of some of these numbers: none of them can overflow. */
static bool sums_fit(const struct profile *p)
{
	int64_t sums[SCHED_VALUE_COUNT] = { 0 };

	for (size_t i = 0; i < p->sample_count; i++) {
		for (int v = 0; v < SCHED_VALUE_COUNT; v++) {
			int64_t value = p->samples[i].values[v];

			if (value == INT64_MIN ||
			    __builtin_add_overflow(sums[v], value < 0 ? -value : value, &sums[v]))
				return false;
		}
	}
	return true;
}

static int take_groups(struct reader *r)
{
	struct sched_table *table = r->table;
	struct sched_group *group;
	const void *key;
	size_t cursor = 0;

	table->groups = calloc(r->groups.count + 1, sizeof(*table->groups));
	if (!table->groups)
		return -ENOMEM;
	while (map_next(&r->groups, &cursor, &key, &group))
		table->groups[table->count++] = *group;
	return sched_sort(table->groups, table->count, r->p, r->view->sort);
}

int sched_table_make(const struct profile *p, const struct sched_view *view,
		     struct sched_table *ret_table)
{
	struct sched_table table = { .p = p };
	struct reader r = { .p = p, .view = view, .grouping = find_grouping(view->by),
			    .table = &table };
	int err = is_sched_profile(p) && r.grouping ? 0 : -EINVAL;

	if (!err && !sums_fit(p))
		err = -EOVERFLOW;
	map_init(&r.groups, sizeof(struct sched_group_key), sizeof(struct sched_group), MAX_GROUPS);
	for (size_t i = 0; !err && i < p->sample_count; i++)
		err = read_sample(&r, &p->samples[i]);
	if (!err)
		err = take_groups(&r);
	map_fini(&r.groups);
	if (err)
		sched_table_fini(&table);
	else
		*ret_table = table;
	return err;
}

void sched_table_fini(struct sched_table *table)
{
	free(table->groups);
	table->groups = NULL;
	table->count = 0;
}
