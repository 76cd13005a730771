/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One window, or several that go together, to one sink. The work is a stack of ranges of the
 * samples, at first one range with all. A range that is too large is split, between two series if
 * it has several, else in the middle of its samples. A refused one is split between series, to
 * find the one that is meant, as long as the budget for that lasts; a refused series is set aside.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/export/dead_letter.h"
#include "agent/export/deliver.h"
#include "agent/export/gather.h"
#include "base/clock.h"

enum {
	MAX_RANGES = 64,    /* halving needs log2 of the samples */
	REJECT_BUDGET = 32, /* more requests for one window to find what is refused */
};

static const size_t PROFILE_BYTES = 2 << 20; /* below the burst that Pyroscope has by default */

struct range {
	size_t first, end;
};

struct ranges {
	struct range todo[MAX_RANGES];
	size_t count;
	unsigned rejects; /* splits for being refused */
	bool any_sent, any_refused, gone;
};

static bool has_several_series(const struct export_batch *b)
{
	return series_at(b->series, b->first) != series_at(b->series, b->end - 1);
}

/* Where to cut: the border between series that is nearest to the middle, or the middle. */
static size_t middle_of(const struct export_batch *b)
{
	size_t middle = b->first + (b->end - b->first) / 2, before, behind;
	const struct series *s = &b->series->series[series_at(b->series, middle)];

	if (!has_several_series(b))
		return middle;
	before = s->first;
	behind = s->first + s->count;
	if (before <= b->first)
		return behind;
	if (behind >= b->end)
		return before;
	return middle - before <= behind - middle ? before : behind;
}

/* Both halves, the first one on top. False when there is no room or nothing to cut. */
static bool push_halves(struct ranges *r, const struct export_batch *b)
{
	size_t middle;

	if (b->end - b->first < 2 || r->count + 2 > MAX_RANGES)
		return false;
	middle = middle_of(b);
	r->todo[r->count++] = (struct range){ middle, b->end };
	r->todo[r->count++] = (struct range){ b->first, middle };
	return true;
}

static void count(struct sender *s, uint64_t *total, uint64_t more)
{
	pthread_mutex_lock(&s->x->lock);
	*total += more;
	pthread_mutex_unlock(&s->x->lock);
}

/* The sum of the first value. */
static uint64_t amount_of(const struct export_batch *b)
{
	uint64_t sum = 0;

	for (size_t i = b->first; i < b->end; i++)
		sum += (uint64_t)b->p->samples[b->series->order[i]].values[0];
	return sum;
}

static void say_amount(const struct export_batch *b, char *text, size_t size)
{
	uint64_t amount = amount_of(b);

	if (!series_counts_samples(b->p))
		snprintf(text, size, "%.3f s of threads' time", (double)amount / NSEC_PER_SEC);
	else
		snprintf(text, size, "%" PRIu64 " samples", amount);
}

static void set_aside(struct delivery *d)
{
	struct sender *s = d->s;
	int err = dead_letter_write(s->x->spool_dir, &d->batch, d->chunk->number, s->type->name,
				    s->why);
	char amount[64];

	say_amount(&d->batch, amount, sizeof(amount));
	count(s, err ? &s->totals.dropped_disk : &s->totals.refused, 1);
	sender_say(s, &s->refusal, NOTICE_WARN, "sink %s: refused: %s; %s %s", s->type->name, s->why,
		   amount, err ? "are lost, as the disk refused, too" : "are set aside in spool/dead");
}

/* What becomes of a range after its last answer; false when it is time to stop. */
static bool settle(struct delivery *d, struct ranges *r, enum outcome outcome)
{
	switch (outcome) {
	case OUTCOME_STOP:
		return false;
	case OUTCOME_GONE:
		r->count = 0;
		r->gone = true;
		return true;
	case OUTCOME_SENT:
		r->any_sent = true;
		count(d->s,
		      series_counts_samples(d->batch.p) ? &d->s->totals.samples
							: &d->s->totals.wall_ns,
		      amount_of(&d->batch));
		return true;
	case OUTCOME_SPLIT:
		count(d->s, &d->s->totals.splits, 1);
		if (!push_halves(r, &d->batch))
			set_aside(d);
		return true;
	case OUTCOME_REFUSED:
		r->any_refused = true;
		/* No search in each window where the store refuses all that comes. */
		if (r->rejects < REJECT_BUDGET && has_several_series(&d->batch) &&
		    !(d->s->all_refused && !r->any_sent)) {
			r->rejects++;
			if (push_halves(r, &d->batch))
				return true;
		}
		set_aside(d);
		return true;
	}
	return true;
}

/* False when it is time to stop; ret_gone: the first window was dropped meanwhile. */
static bool send_all(struct delivery *d, uint64_t windows, bool *ret_gone)
{
	struct ranges r = { .todo = { { 0, d->batch.p->sample_count } }, .count = 1 };

	if (d->batch.p->sample_count == 0)
		r.count = 0;
	while (r.count > 0) {
		struct range next = r.todo[--r.count];

		d->batch.first = next.first;
		d->batch.end = next.end;
		if (!settle(d, &r, deliver_range(d)))
			return false;
	}
	if (!r.gone)
		count(d->s, &d->s->totals.windows, windows);
	if (r.any_sent || r.any_refused)
		d->s->all_refused = !r.any_sent;
	*ret_gone = r.gone;
	return true;
}

static bool is_damage(int err)
{
	return err == -EBADMSG || err == -EFBIG || err == -ENOSPC || err == -EISDIR;
}

/* 1: loaded; 0: there is nothing to send; -1: time to stop. */
static int load(struct sender *s, const struct spool_chunk *chunk, struct gathered *ret_gathered)
{
	for (;;) {
		int err = gather_load(s, chunk, ret_gathered);

		if (!err)
			return 1;
		if (err == -ENOENT)
			return 0;
		if (is_damage(err)) {
			pthread_mutex_lock(&s->x->lock);
			spool_set_aside(s->x->spool, chunk);
			s->totals.damaged++;
			pthread_mutex_unlock(&s->x->lock);
			return 0;
		}
		snprintf(s->why, sizeof(s->why), "spool: %s", strerror(-err));
		if (!deliver_failed(s, VERDICT_RETRY, 0))
			return -1;
	}
}

static size_t least(size_t a, size_t b)
{
	return a && a < b ? a : b;
}

/* One kind of profiles; false when it is time to stop. ret_gone: as send_all has it. */
static bool deliver_kind(struct sender *s, const struct gathered_kind *kind, bool *ret_gone)
{
	struct series_list list = { 0 };
	struct delivery d = {
		.s = s,
		.chunk = &kind->first,
		.batch = {
			.p = kind->p,
			.series = &list,
			.identity = &s->x->identity,
			.limits = {
				.request_bytes = s->x->options.request_kib << 10,
				.profile_bytes = least(s->x->options.request_kib << 10,
						       PROFILE_BYTES),
				.profile_samples = s->type->max_samples ?: SIZE_MAX,
			},
		},
	};
	bool done;

	while (series_split(kind->p, s->x->options.max_series, &list)) {
		snprintf(s->why, sizeof(s->why), "%s", strerror(ENOMEM));
		if (!deliver_failed(s, VERDICT_RETRY, 0))
			return false;
	}
	count(s, &s->totals.folded_series, list.folded);
	done = send_all(&d, kind->windows, ret_gone);
	series_list_fini(&list);
	return done;
}

bool sender_deliver(struct sender *s, const struct spool_chunk *chunk, uint64_t *ret_next)
{
	struct gathered g = { 0 };
	int loaded = load(s, chunk, &g);
	bool done = loaded >= 0, gone = false;

	*ret_next = loaded > 0 ? g.end : chunk->number + 1;
	for (size_t i = 0; done && !gone && i < g.count; i++) {
		done = deliver_kind(s, &g.kinds[i], &gone);
		/* What went with a window that was dropped meanwhile is still to be sent. */
		if (gone)
			*ret_next = g.kinds[i].first.number + 1;
	}
	gathered_fini(&g);
	return done;
}
