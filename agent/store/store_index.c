/* SPDX-License-Identifier: Apache-2.0 */
/* What files there are, which have to go, and what the catalogue says of them. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/store/store_private.h"
#include "base/clock.h"

enum {
	MAX_FILES = 1 << 18, /* half a year of minutes; 16 MB of index */
	LEAST_GAP_S = 3600,
};

void store_path(const struct store *s, const struct store_name *name, char path[])
{
	char day[STORE_DAY_MAX], file[STORE_NAME_MAX];

	store_name_format(name, day, file);
	snprintf(path, PATH_MAX, "%s/%s/%s", s->profiles_dir, day, file);
}

/* ---- the index ---- */

static int64_t age_key(const struct store_file *f)
{
	return f->written_s > f->name.start_s ? f->written_s : f->name.start_s;
}

static bool same_name(const struct store_name *a, const struct store_name *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static int compare_ages(const void *a, const void *b)
{
	int64_t left = age_key(a), right = age_key(b);

	return left != right
		       ? (left < right ? -1 : 1)
		       : memcmp(&((const struct store_file *)a)->name,
				&((const struct store_file *)b)->name, sizeof(struct store_name));
}

static void count_file(struct store *s, const struct store_file *f, int sign)
{
	s->totals.profiles += (uint64_t)(int64_t)sign;
	s->totals.bytes += sign > 0 ? f->bytes : -f->bytes;
}

static int make_room(struct store *s)
{
	size_t cap = s->cap ? s->cap * 2 : 64;
	void *bigger;

	if (s->count < s->cap)
		return 0;
	bigger = reallocarray(s->files, cap, sizeof(*s->files));
	if (!bigger)
		return -ENOMEM;
	s->files = bigger;
	s->cap = cap;
	return 0;
}

static int append_file(void *context, const struct store_name *name, const struct stat *st)
{
	struct store *s = context;
	int err = make_room(s);

	if (err)
		return err;
	s->files[s->count] = (struct store_file){
		.name = *name,
		.written_s = st->st_mtim.tv_sec,
		.bytes = (uint64_t)st->st_size,
	};
	count_file(s, &s->files[s->count++], 1);
	return 0;
}

int store_index_build(struct store *s)
{
	int err;

	s->count = 0;
	s->totals.profiles = s->totals.bytes = 0;
	err = store_walk(s->profiles_dir, 0, INT64_MAX, true, append_file, s);
	if (s->count)
		qsort(s->files, s->count, sizeof(*s->files), compare_ages);
	return err;
}

const struct store_file *store_index_find(const struct store *s, const struct store_name *name)
{
	/* From the newest: it is nearly always among the last. */
	for (size_t i = s->count; i-- > 0;) {
		if (same_name(&s->files[i].name, name))
			return &s->files[i];
	}
	return NULL;
}

int store_index_put(struct store *s, const struct store_name *name, int64_t written_s,
		    uint64_t bytes)
{
	struct store_file file = { .name = *name, .written_s = written_s, .bytes = bytes };
	const struct store_file *have = store_index_find(s, name);
	size_t at;
	int err;

	if (have) {
		at = (size_t)(have - s->files);
		count_file(s, have, -1);
		memmove(&s->files[at], &s->files[at + 1], (s->count - at - 1) * sizeof(*s->files));
		s->count--;
	}
	err = make_room(s);
	if (err)
		return err;
	for (at = s->count; at > 0 && compare_ages(&file, &s->files[at - 1]) < 0;)
		at--;
	memmove(&s->files[at + 1], &s->files[at], (s->count - at) * sizeof(*s->files));
	s->files[at] = file;
	s->count++;
	count_file(s, &file, 1);
	return 0;
}

/* ---- the catalogue ---- */

/* After an error: without it until the next window, then all is compared again. */
static void give_up_catalogue(struct store *s)
{
	s->catalogue_behind = true;
	s->totals.catalogue_errors++;
	catalogue_close(s->catalogue);
	s->catalogue = NULL;
}

/* A file that cannot be read has a row too, with what its name tells. */
static int put_row(struct store *s, const struct store_file *f)
{
	struct store_facts facts;
	char path[PATH_MAX];

	store_path(s, &f->name, path);
	if (store_facts_read(path, &facts))
		facts = (struct store_facts){
			.start_ns = f->name.start_s * (int64_t)NSEC_PER_SEC,
			.end_ns = f->name.start_s * (int64_t)NSEC_PER_SEC,
		};
	facts.bytes = f->bytes;
	return catalogue_put(s->catalogue, &f->name, &facts);
}

/* Rows that are right leave `rows`; what is left in it at the end has no file. */
static int sync_rows(struct store *s, struct map *rows)
{
	const struct store_name *name;
	size_t cursor = 0;
	int err = 0;

	for (size_t i = 0; !err && i < s->count; i++) {
		const struct store_file *f = &s->files[i];
		const struct catalogue_row *row = map_find(rows, &f->name);

		if (!row || row->bytes != f->bytes)
			err = put_row(s, f);
		if (row)
			map_del(rows, &f->name);
	}
	while (!err && map_next(rows, &cursor, &name, NULL))
		err = catalogue_remove(s->catalogue, name);
	return err;
}

void store_catalogue_sync(struct store *s)
{
	struct map rows;
	int err = 0;

	catalogue_rows_init(&rows);
	if (!s->catalogue)
		err = catalogue_open(s->catalogue_path, &s->catalogue);
	if (!err)
		err = catalogue_begin(s->catalogue);
	if (!err)
		err = catalogue_load(s->catalogue, INT64_MIN, INT64_MAX, &rows);
	if (!err)
		err = sync_rows(s, &rows);
	if (!err)
		err = catalogue_commit(s->catalogue);
	map_fini(&rows);
	s->catalogue_behind = false;
	if (err)
		give_up_catalogue(s);
}

/* ---- caps ---- */

/*
 * The clock may be wrong: set forward by a year it would make every file too old. So a file also
 * needs that much recorded time behind it, in which a hole between two files counts as an hour
 * (two windows, if they are longer) at most. No step of the clock deletes more than that of
 * profiles; the price is that a time in which no agent ran lengthens the life of what was there
 * before.
 */
static int64_t counted_gap(const struct store *s, int64_t older_s, int64_t newer_s)
{
	int64_t gap = newer_s - older_s;

	return gap < 0 ? 0 : gap < s->longest_gap_s ? gap : s->longest_gap_s;
}

static int64_t recorded_time(const struct store *s)
{
	int64_t sum = 0;

	for (size_t i = 1; i < s->count; i++)
		sum += counted_gap(s, age_key(&s->files[i - 1]), age_key(&s->files[i]));
	return sum;
}

/* The counter of the cap that the file is over, or NULL. */
static uint64_t *why_drop(struct store *s, const struct store_file *f, int64_t now_s,
			  int64_t recorded_s)
{
	int64_t max_s = (int64_t)(s->max_age_ns / NSEC_PER_SEC);

	if (max_s && now_s - age_key(f) > max_s && recorded_s > max_s)
		return &s->totals.dropped_age;
	if ((s->max_bytes && s->totals.bytes > s->max_bytes) || s->totals.profiles > MAX_FILES)
		return &s->totals.dropped_size;
	return NULL;
}

static bool delete_file(const struct store *s, const struct store_name *name)
{
	char path[PATH_MAX], *slash;

	store_path(s, name, path);
	if (unlink(path) < 0 && errno != ENOENT)
		return false;
	slash = strrchr(path, '/');
	*slash = 0;
	rmdir(path); /* of the day, if that was the last */
	return true;
}

/* One pass, so that a cap made small does not cost the square of what it drops. */
static int drop_over_caps(struct store *s, const struct store_name *fresh)
{
	int64_t now_s = (int64_t)(clock_realtime() / NSEC_PER_SEC);
	int64_t recorded_s = recorded_time(s), last_key = s->count ? age_key(&s->files[0]) : 0;
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < s->count; i++) {
		struct store_file *f = &s->files[i];
		uint64_t *counter;

		recorded_s -= counted_gap(s, last_key, age_key(f));
		last_key = age_key(f);
		counter = same_name(&f->name, fresh) ? NULL : why_drop(s, f, now_s, recorded_s);
		if (!counter || !delete_file(s, &f->name)) {
			s->files[kept++] = *f;
			continue;
		}
		++*counter;
		s->totals.dropped_bytes += f->bytes;
		count_file(s, f, -1);
		if (s->catalogue && !err)
			err = catalogue_remove(s->catalogue, &f->name);
	}
	s->count = kept;
	return err;
}

void store_settle(struct store *s, const struct store_name *fresh, const struct store_facts *facts)
{
	int64_t two_windows_s = (facts->end_ns - facts->start_ns) / (int64_t)NSEC_PER_SEC * 2;
	int err = 0;

	s->longest_gap_s = two_windows_s > LEAST_GAP_S ? two_windows_s : LEAST_GAP_S;
	if (s->catalogue_behind)
		store_catalogue_sync(s);
	if (s->catalogue) {
		err = catalogue_begin(s->catalogue);
		if (!err)
			err = catalogue_put(s->catalogue, fresh, facts);
		if (err)
			give_up_catalogue(s);
	}
	err = drop_over_caps(s, fresh);
	if (s->catalogue && !err)
		err = catalogue_commit(s->catalogue);
	if (err)
		give_up_catalogue(s);
}
