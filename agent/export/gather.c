/* SPDX-License-Identifier: Apache-2.0 */
/* See gather.h. */
#include "agent/export/gather.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "proto/merge.h"

/* As chunks on disk. Accounts have a row for each thread, and shrink when they go together. */
static const uint64_t LIGHT_SAMPLES = 32 << 10, LIGHT_ACCOUNTS = 128 << 10;
/* What goes together; more than that does not wait. */
static const uint64_t MAX_BYTES = 1 << 20;
/* Between the end of a window and the start of the next: the clock may have been slewed. */
static const int64_t MAX_HOLE = NSEC_PER_SEC;

/* What goes together must not be too old for its store by then. */
static nsec_t longest(const struct sender *s)
{
	const struct exporter_options *o = &s->x->options;
	nsec_t max_age = s->type->max_age_ns ? o->max_age_ns : 0;

	return max_age && max_age / 2 < o->gather_ns ? max_age / 2 : o->gather_ns;
}

bool gather_is_light(const struct profile *p, uint64_t bytes)
{
	return bytes <= (series_counts_samples(p) ? LIGHT_SAMPLES : LIGHT_ACCOUNTS);
}

nsec_t gather_due(struct sender *s, const struct spool_chunk *first)
{
	struct exporter *x = s->x;
	/* Windows of two kinds come at the same time. */
	bool newest = first->number + GATHER_KINDS > x->added_number;
	bool at_once = first->number < x->at_once_below || first->number < x->heavy_end ||
		       spool_bytes(x->spool, first->number) >= MAX_BYTES;

	if (s->gather_number != first->number) {
		s->gather_number = first->number;
		s->gather_since = newest ? x->added : clock_monotonic();
	}
	if (!longest(s))
		at_once = true;
	if (x->draining || (at_once && !newest))
		return 0;
	/* The newest ones wait for this node's turn in any case. */
	return s->gather_since + s->spread + (at_once ? 0 : longest(s));
}

static int64_t end_of(const struct profile *p)
{
	return p->time_ns + p->duration_ns;
}

static bool is_kind(const struct profile *p, const struct profile *next)
{
	return next->period == p->period && profile_same_types(p, next);
}

/* Whether `next` goes on where `p` ends, and both together are not too long. */
static bool fits(const struct sender *s, const struct profile *p, const struct profile *next)
{
	return llabs(next->time_ns - end_of(p)) <= MAX_HOLE &&
	       end_of(next) - p->time_ns <= (int64_t)longest(s) + MAX_HOLE;
}

static bool next_chunk(struct sender *s, const struct gathered *g, uint64_t bytes,
		       struct spool_chunk *ret_chunk)
{
	bool there;

	pthread_mutex_lock(&s->x->lock);
	there = spool_next(s->x->spool, g->end, ret_chunk) &&
		bytes + ret_chunk->bytes <= MAX_BYTES;
	pthread_mutex_unlock(&s->x->lock);
	return there;
}

/* To its kind, or as the first of another one: 0, or -errno. Takes the profile if it is that. */
static int add_window(struct sender *s, struct gathered *g, const struct spool_chunk *chunk,
		      struct profile **next)
{
	struct gathered_kind *kind = g->kinds;
	int err;

	while (kind < g->kinds + g->count && !is_kind(kind->p, *next))
		kind++;
	if (kind == g->kinds + GATHER_KINDS ||
	    (g->count && !gather_is_light(*next, chunk->bytes)))
		return -ERANGE;
	if (kind == g->kinds + g->count) {
		*kind = (struct gathered_kind){ .first = *chunk, .p = *next };
		*next = NULL;
		g->count++;
	} else {
		err = fits(s, kind->p, *next) ? profile_merge(kind->p, *next) : -ERANGE;
		if (err)
			return err;
	}
	kind->windows++;
	g->end = chunk->number + 1;
	return 0;
}

static int gather_one(struct sender *s, struct gathered *g, const struct spool_chunk *chunk)
{
	struct profile *next = NULL;
	int err = spool_load(s->x->spool_dir, chunk, &next);

	if (!err)
		err = add_window(s, g, chunk, &next);
	profile_free(next);
	return err;
}

void gathered_fini(struct gathered *g)
{
	for (size_t i = 0; i < g->count; i++)
		profile_free(g->kinds[i].p);
	*g = (struct gathered){ 0 };
}

int gather_load(struct sender *s, const struct spool_chunk *first, struct gathered *ret_gathered)
{
	struct gathered g = { 0 };
	uint64_t bytes = first->bytes;
	struct spool_chunk chunk;
	int more = 0, err = gather_one(s, &g, first);
	bool light = !err && longest(s) && gather_is_light(g.kinds[0].p, first->bytes);

	while (light && !more && next_chunk(s, &g, bytes, &chunk)) {
		more = gather_one(s, &g, &chunk);
		bytes += chunk.bytes;
	}
	if (more == -ENOMEM) {
		/* A profile that a merge has failed on is not whole. */
		gathered_fini(&g);
		err = gather_one(s, &g, first);
	}
	if (err)
		gathered_fini(&g);
	else
		*ret_gathered = g;
	return err;
}
