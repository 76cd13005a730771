/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading side of the store: which profiles overlap a time. The names of the files are what
 * counts, so that a catalogue which is behind, damaged or gone hides nothing; it only saves
 * opening each file for its end.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/store/catalogue.h"
#include "agent/store/store.h"
#include "agent/store/store_files.h"
#include "base/clock.h"

static const int64_t NS = (int64_t)NSEC_PER_SEC;

struct listing {
	const char *profiles_dir;
	int64_t since_ns, until_ns; /* until_ns: INT64_MAX for an open end */
	const char *type;           /* NULL: all */
	struct map rows;
	struct store_list list;
	size_t cap;
};

static void find_times(const struct listing *l, const struct store_name *name, const char *path,
		       struct store_entry *entry)
{
	const struct catalogue_row *row = map_find(&l->rows, name);
	struct store_facts facts;

	entry->start_ns = entry->end_ns = name->start_s * NS;
	if (row) {
		entry->start_ns = row->start_ns;
		entry->end_ns = row->end_ns;
	} else if (!store_facts_read(path, &facts)) {
		entry->start_ns = facts.start_ns;
		entry->end_ns = facts.end_ns;
	}
	/* What cannot be read, or has no duration, is there at its start. */
	if (entry->end_ns <= entry->start_ns &&
	    __builtin_add_overflow(entry->start_ns, 1, &entry->end_ns))
		entry->end_ns = INT64_MAX;
}

static int add_entry(struct listing *l, const struct store_entry *entry)
{
	if (l->list.count == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 64;
		void *bigger = reallocarray(l->list.entries, cap, sizeof(*l->list.entries));

		if (!bigger)
			return -ENOMEM;
		l->list.entries = bigger;
		l->cap = cap;
	}
	l->list.entries[l->list.count++] = *entry;
	return 0;
}

static int visit(void *context, const struct store_name *name, const struct stat *st)
{
	struct listing *l = context;
	char day[STORE_DAY_MAX], file[STORE_NAME_MAX];
	struct store_entry entry = { 0 };
	int err = 0;

	if ((l->type && strcmp(l->type, name->type) != 0) || name->start_s * NS >= l->until_ns ||
	    name->start_s + 1 + STORE_WINDOW_MAX_S < l->since_ns / NS)
		return 0;
	store_name_format(name, day, file);
	if (asprintf(&entry.path, "%s/%s/%s", l->profiles_dir, day, file) < 0)
		return -ENOMEM;
	snprintf(entry.type, sizeof(entry.type), "%s", name->type);
	find_times(l, name, entry.path, &entry);
	if (entry.start_ns < l->until_ns && entry.end_ns > l->since_ns) {
		err = add_entry(l, &entry);
		if (!err)
			entry.path = NULL;
	}
	free(entry.path);
	return err;
}

static int compare_entries(const void *a, const void *b)
{
	const struct store_entry *left = a, *right = b;

	if (left->start_ns != right->start_ns)
		return left->start_ns < right->start_ns ? -1 : 1;
	return strcmp(left->path, right->path);
}

static int is_directory(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

/* Any error leaves the rows that were read, and the files speak for the others. */
static void load_catalogue(struct listing *l, const char *dir, int64_t from_s)
{
	struct catalogue *c = NULL;
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/catalogue.db", dir) < (int)sizeof(path) &&
	    !catalogue_open_readonly(path, &c))
		catalogue_load(c, from_s * NS, l->until_ns, &l->rows);
	catalogue_close(c);
}

static int fill(struct listing *l, const char *dir)
{
	int64_t from_s = l->since_ns / NS - STORE_WINDOW_MAX_S - 1;
	int err = is_directory(dir);

	if (!err)
		err = is_directory(l->profiles_dir);
	if (err)
		return err;
	load_catalogue(l, dir, from_s);
	return store_walk(l->profiles_dir, from_s, l->until_ns / NS, false, visit, l);
}

int store_list(const char *dir, int64_t since_ns, int64_t until_ns, const char *type,
	       struct store_list *ret_list)
{
	struct listing l = { .since_ns = since_ns, .type = type };
	char profiles_dir[PATH_MAX];
	int err;

	if (snprintf(profiles_dir, sizeof(profiles_dir), "%s/profiles", dir) >=
	    (int)sizeof(profiles_dir))
		return -ENAMETOOLONG;
	l.until_ns = until_ns ? until_ns : INT64_MAX;
	l.profiles_dir = profiles_dir;
	catalogue_rows_init(&l.rows);
	err = fill(&l, dir);
	map_fini(&l.rows);
	if (err) {
		store_list_fini(&l.list);
		return err;
	}
	if (l.list.count)
		qsort(l.list.entries, l.list.count, sizeof(*l.list.entries), compare_entries);
	*ret_list = l.list;
	return 0;
}

void store_list_fini(struct store_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->entries[i].path);
	free(list->entries);
	*list = (struct store_list){ 0 };
}
