/* SPDX-License-Identifier: Apache-2.0 */
/* See series.h. */
#include "agent/export/series.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

static const struct {
	const char *key, *name, *attribute;
} names[SERIES_LABEL_COUNT] = {
#define X(id, key, name, attribute) [SERIES_##id] = { key, name, attribute },
	SERIES_LABELS(X)
#undef X
};

/* Labels that go first when there are too many series, and those that never go. */
enum fold { FOLD_NOTHING, FOLD_PROGRAM, FOLD_ALL };

struct key {
	uint32_t labels[SERIES_LABEL_COUNT];
};

const char *series_label_name(enum series_label label)
{
	return names[label].name;
}

const char *series_label_attribute(enum series_label label)
{
	return names[label].attribute;
}

bool series_counts_samples(const struct profile *p)
{
	return p->type_count && strcmp(profile_text(p, p->types[0].type), "samples") == 0;
}

/* The strings of the keys in this profile; UINT32_MAX for a key that it has not. */
static void find_keys(const struct profile *p, uint32_t keys[SERIES_LABEL_COUNT])
{
	for (int i = 0; i < SERIES_LABEL_COUNT; i++)
		keys[i] = UINT32_MAX;
	for (uint32_t s = 1; s < p->strings.count; s++) {
		for (int i = 0; i < SERIES_LABEL_COUNT; i++) {
			if (strcmp(profile_text(p, s), names[i].key) == 0)
				keys[i] = s;
		}
	}
}

static struct key key_of(const struct profile_sample *sample,
			 const uint32_t keys[SERIES_LABEL_COUNT])
{
	struct key key = { 0 };

	for (size_t n = 0; n < sample->label_count; n++) {
		for (int i = 0; i < SERIES_LABEL_COUNT; i++) {
			if (sample->labels[n].key == keys[i])
				key.labels[i] = sample->labels[n].str;
		}
	}
	/* The path says no more than the id that was found in it, and changes more often. */
	if (key.labels[SERIES_CONTAINER_ID] || key.labels[SERIES_UNIT])
		key.labels[SERIES_CGROUP] = 0;
	return key;
}

/* Makes or finds the series of a key: its number, or -errno. */
static int64_t find_series(struct series_list *list, struct map *index, const struct key *key)
{
	uint32_t *number;
	int added = map_add(index, key, &number);
	struct series *grown;

	if (added < 0)
		return -ENOMEM;
	if (!added)
		return *number;
	/* A power of two is where it grows. */
	if ((list->count & (list->count - 1)) == 0) {
		grown = reallocarray(list->series, list->count ? list->count * 2 : 1,
				     sizeof(*list->series));
		if (!grown)
			return -ENOMEM;
		list->series = grown;
	}
	list->series[list->count] = (struct series){ 0 };
	memcpy(list->series[list->count].labels, key->labels, sizeof(key->labels));
	*number = (uint32_t)list->count;
	return (int64_t)list->count++;
}

/* Weights decide who keeps an identity; ties by first appearance, for equal output. */
static int heavier_first(const void *a, const void *b)
{
	const struct series *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

static void fold_key(struct key *key, enum fold fold)
{
	if (fold == FOLD_ALL)
		*key = (struct key){ 0 };
	else if (fold == FOLD_PROGRAM)
		key->labels[SERIES_PROGRAM] = 0;
}

/* Which series each sample is in: of[sample]. Series are new; samples keep their order. */
static int assign(const struct profile *p, struct series_list *list, uint32_t *of)
{
	uint32_t keys[SERIES_LABEL_COUNT];
	struct map index;
	int err = 0;

	find_keys(p, keys);
	map_init(&index, sizeof(struct key), sizeof(uint32_t), UINT32_MAX);
	for (size_t i = 0; !err && i < p->sample_count; i++) {
		struct key key = key_of(&p->samples[i], keys);
		int64_t number = find_series(list, &index, &key);

		if (number < 0) {
			err = (int)number;
			break;
		}
		of[i] = (uint32_t)number;
		list->series[number].count++;
		if (__builtin_add_overflow(list->series[number].weight, p->samples[i].values[0],
					   &list->series[number].weight))
			list->series[number].weight = INT64_MAX;
	}
	map_fini(&index);
	return err;
}

/* Series after the heaviest `keep` lose identity; their samples move to the folded ones. */
static int fold_lightest(struct series_list *list, uint32_t *of, size_t samples, size_t keep,
			 enum fold fold)
{
	struct series_list folded = { .folded = list->folded };
	struct series *ranked = calloc(list->count, sizeof(*ranked));
	uint32_t *to = calloc(list->count, sizeof(*to));
	struct map index;
	int err = ranked && to ? 0 : -ENOMEM;

	map_init(&index, sizeof(struct key), sizeof(uint32_t), UINT32_MAX);
	for (size_t i = 0; !err && i < list->count; i++) {
		ranked[i] = list->series[i];
		ranked[i].first = i;
	}
	if (!err)
		qsort(ranked, list->count, sizeof(*ranked), heavier_first);
	for (size_t i = 0; !err && i < list->count; i++) {
		struct key key;
		int64_t number;

		memcpy(key.labels, ranked[i].labels, sizeof(key.labels));
		if (i >= keep) {
			fold_key(&key, fold);
			folded.folded++;
		}
		number = find_series(&folded, &index, &key);
		if (number < 0) {
			err = (int)number;
			break;
		}
		to[ranked[i].first] = (uint32_t)number;
		folded.series[number].count += ranked[i].count;
		if (__builtin_add_overflow(folded.series[number].weight, ranked[i].weight,
					   &folded.series[number].weight))
			folded.series[number].weight = INT64_MAX;
	}
	for (size_t i = 0; !err && i < samples; i++)
		of[i] = to[of[i]];
	map_fini(&index);
	free(ranked);
	free(to);
	free(list->series);
	*list = folded;
	return err;
}

static int sort(struct series_list *list, const uint32_t *of, size_t samples)
{
	size_t at = 0;

	list->order = calloc(samples + 1, sizeof(*list->order));
	if (!list->order)
		return -ENOMEM;
	list->sample_count = samples;
	for (size_t i = 0; i < list->count; i++) {
		list->series[i].first = at;
		at += list->series[i].count;
		list->series[i].count = 0;
	}
	for (size_t i = 0; i < samples; i++) {
		struct series *series = &list->series[of[i]];

		list->order[series->first + series->count++] = (uint32_t)i;
	}
	return 0;
}

int series_split(const struct profile *p, size_t max_series, struct series_list *ret_list)
{
	uint32_t *of = calloc(p->sample_count + 1, sizeof(*of));
	struct series_list list = { 0 };
	int err = of ? assign(p, &list, of) : -ENOMEM;

	if (!err && list.count > max_series)
		err = fold_lightest(&list, of, p->sample_count, max_series / 2, FOLD_PROGRAM);
	if (!err && list.count > max_series)
		err = fold_lightest(&list, of, p->sample_count, max_series - 1, FOLD_ALL);
	if (!err)
		err = sort(&list, of, p->sample_count);
	free(of);
	if (err)
		series_list_fini(&list);
	else
		*ret_list = list;
	return err;
}

void series_list_fini(struct series_list *list)
{
	free(list->series);
	free(list->order);
	*list = (struct series_list){ 0 };
}

size_t series_at(const struct series_list *list, size_t at)
{
	size_t low = 0, high = list->count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (list->series[middle].first <= at)
			low = middle;
		else
			high = middle;
	}
	return low;
}

const char *series_service(const struct profile *p, const struct series *series,
			   char buffer[SERIES_SERVICE_BYTES])
{
	const uint32_t *l = series->labels;
	const char *dot, *unit;

	if (l[SERIES_NAMESPACE] && l[SERIES_CONTAINER]) {
		snprintf(buffer, SERIES_SERVICE_BYTES, "%s/%s",
			 profile_text(p, l[SERIES_NAMESPACE]),
			 profile_text(p, l[SERIES_CONTAINER]));
		return buffer;
	}
	if (l[SERIES_CONTAINER])
		return profile_text(p, l[SERIES_CONTAINER]);
	if (l[SERIES_PROGRAM])
		return profile_text(p, l[SERIES_PROGRAM]);
	if (!l[SERIES_UNIT])
		return "other";
	unit = profile_text(p, l[SERIES_UNIT]);
	dot = strrchr(unit, '.');
	snprintf(buffer, SERIES_SERVICE_BYTES, "%.*s", (int)(dot ? dot - unit : (long)strlen(unit)),
		 unit);
	return buffer;
}
