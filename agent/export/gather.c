/* SPDX-License-Identifier: Apache-2.0 */
/* See gather.h. */
#include "agent/export/gather.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "proto/merge.h"

/* Windows are light as long as all that wait are less than this, as chunks on disk. */
static const uint64_t LIGHT_BYTES = 64 << 10;
/* Between the end of a window and the start of the next: the clock may have been slewed. */
static const int64_t MAX_HOLE = NSEC_PER_SEC;

/* What goes together must not be too old for its store by then. */
static nsec_t longest(const struct sender *s)
{
	const struct exporter_options *o = &s->x->options;
	nsec_t max_age = s->type->max_age_ns ? o->max_age_ns : 0;

	return max_age && max_age / 2 < o->gather_ns ? max_age / 2 : o->gather_ns;
}

nsec_t gather_due(struct sender *s, const struct spool_chunk *first)
{
	struct exporter *x = s->x;
	bool newest = first->number == x->added_number;
	bool at_once = first->number < x->at_once_below ||
		       spool_bytes(x->spool, first->number) >= LIGHT_BYTES;

	if (s->gather_number != first->number) {
		s->gather_number = first->number;
		s->gather_since = newest ? x->added : clock_monotonic();
	}
	if (!longest(s))
		at_once = true;
	if (x->draining || (at_once && !newest))
		return 0;
	/* The newest one waits for this node's turn in any case. */
	return s->gather_since + s->spread + (at_once ? 0 : longest(s));
}

static int64_t end_of(const struct profile *p)
{
	return p->time_ns + p->duration_ns;
}

/* Whether `next` goes on where `p` ends, and both together are not too long. */
static bool fits(const struct sender *s, const struct profile *p, const struct profile *next)
{
	return next->period == p->period && llabs(next->time_ns - end_of(p)) <= MAX_HOLE &&
	       end_of(next) - p->time_ns <= (int64_t)longest(s) + MAX_HOLE;
}

static bool next_light(struct sender *s, const struct gathered *g, uint64_t bytes,
		       struct spool_chunk *ret_chunk)
{
	bool there;

	pthread_mutex_lock(&s->x->lock);
	there = spool_next(s->x->spool, g->end, ret_chunk) &&
		bytes + ret_chunk->bytes <= LIGHT_BYTES;
	pthread_mutex_unlock(&s->x->lock);
	return there;
}

/* Adds one more window: 0, or anything else if it has to go by itself. */
static int gather_one(struct sender *s, struct gathered *g, const struct spool_chunk *chunk)
{
	struct profile *next = NULL;
	int err = spool_load(s->x->spool_dir, chunk, &next);

	if (!err && !fits(s, g->p, next))
		err = -ERANGE;
	if (!err)
		err = profile_merge(g->p, next);
	profile_free(next);
	return err;
}

int gather_load(struct sender *s, const struct spool_chunk *first, struct gathered *ret_gathered)
{
	struct gathered g = { .first = *first, .end = first->number + 1, .windows = 1 };
	uint64_t bytes = first->bytes;
	struct spool_chunk chunk;
	int err = spool_load(s->x->spool_dir, first, &g.p);

	if (err)
		return err;
	while (longest(s) && next_light(s, &g, bytes, &chunk)) {
		err = gather_one(s, &g, &chunk);
		if (err)
			break;
		g.end = chunk.number + 1;
		g.windows++;
		bytes += chunk.bytes;
	}
	if (err == -ENOMEM) {
		/* A profile that a merge has failed on is not whole. */
		profile_free(g.p);
		g = (struct gathered){ .first = *first, .end = first->number + 1, .windows = 1 };
		err = spool_load(s->x->spool_dir, first, &g.p);
		if (err)
			return err;
	}
	*ret_gathered = g;
	return 0;
}
