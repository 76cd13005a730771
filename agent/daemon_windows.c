/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collections and windows. A collection is in memory only until it is in the journal; a window is
 * in the journal until it is in the store. While the disk refuses, collections are merged into
 * one pending profile, bounded; what passes the bound is lost, and counted.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/daemon_private.h"
#include "agent/log.h"
#include "base/clock.h"
#include "proto/merge.h"

enum { PENDING_BYTES = 16 << 20 };

static uint64_t sum_values(const struct profile *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < p->sample_count; i++)
		sum += (uint64_t)p->samples[i].values[0];
	return sum;
}

/* A window given up, in the lane's own unit. */
static void lose(struct lane *lane, const struct profile *p)
{
	if (p)
		lane->lost += sum_values(p);
}

/* Keeps what could not be written, to be tried again with the next collection. */
static void keep_pending(struct lane *lane, struct profile *p)
{
	int err = 0;

	if (!lane->pending)
		err = profile_new(PENDING_BYTES, &lane->pending);
	if (!err)
		err = profile_merge(lane->pending, p);
	if (err) {
		/* A profile that a merge has failed on is not whole. */
		lose(lane, p);
		lose(lane, lane->pending);
		profile_free(lane->pending);
		lane->pending = NULL;
		log_warn("journal: collections are lost: %s", strerror(-err));
	}
	profile_free(p);
}

static void journal_or_keep(struct daemon *d, struct lane *lane, uint64_t window, struct profile *p)
{
	int err;

	if (lane->pending) {
		keep_pending(lane, p);
		p = lane->pending;
		lane->pending = NULL;
		if (!p)
			return;
	}
	err = journal_append(lane->journal, window, p);
	if (!err) {
		profile_free(p);
		return;
	}
	d->totals.journal_errors++;
	log_warn("journal: %s/journal: %s; kept in memory, next try with the next collection",
		 lane->dir, strerror(-err));
	if (lane->pending == NULL && p)
		keep_pending(lane, p);
}

static const char *store_type(const struct daemon *d, const struct lane *lane)
{
	if (lane == &d->lanes[LANE_WALL])
		return "wall";
	return agent_is_hardware(d->agent) ? "cycles" : "cpu";
}

/*
 * Into the spool first: when only the store fails, both get the window again, and the spool knows
 * it.
 */
static int keep_window(struct daemon *d, const struct lane *lane, const struct profile *p)
{
	int err = d->exporter ? exporter_add(d->exporter, p) : 0;

	return err ? err : store_add(d->store, p, store_type(d, lane));
}

static void flush_lane(struct daemon *d, struct lane *lane)
{
	struct profile *p;
	uint64_t window;
	int err;

	while ((err = journal_read_oldest(lane->journal, UINT64_MAX, &window, &p)) == 0) {
		err = keep_window(d, lane, p);
		if (err == -EINVAL || err == -EFBIG) {
			/* It will never be taken, and must not block those behind it. */
			lose(lane, p);
			log_warn("store: window %" PRIu64 " refused: %s; it is lost", window,
				 strerror(-err));
			err = 0;
		}
		profile_free(p);
		if (!err)
			err = journal_remove(lane->journal, window);
		if (err) {
			d->totals.store_errors++;
			log_warn("store: %s: %s; the window stays in the journal", d->options.dir,
				 strerror(-err));
			return;
		}
		lane->windows++;
	}
	if (err != -ENOENT) {
		d->totals.store_errors++;
		log_warn("journal: %s/journal: %s", lane->dir, strerror(-err));
	}
}

void windows_flush(struct daemon *d)
{
	for (int i = 0; i < LANE_COUNT; i++)
		flush_lane(d, &d->lanes[i]);
}

/* A collection goes into its window. */
static void put(struct daemon *d, struct lane *lane, struct profile *p)
{
	uint64_t window = (uint64_t)p->time_ns / d->options.window_ns;

	/*
	 * Any other window, also an earlier one: the clock may have been set back. All that is
	 * in the journal then belongs to windows that are over.
	 */
	if (lane->window && window != lane->window)
		flush_lane(d, lane);
	lane->window = window;
	journal_or_keep(d, lane, window, p);
}

static void collect_samples(struct daemon *d, bool last)
{
	struct profile *p;
	int err = agent_take(d->agent, last, &p);

	if (err) {
		log_warn("collection: %s; its samples are lost", strerror(-err));
		return;
	}
	d->totals.collections++;
	put(d, &d->lanes[LANE_CPU], p);
}

static void collect_wall(struct daemon *d)
{
	struct profile *p;
	int err = daemon_sched_take(d->sched, &p);

	if (err)
		log_warn("scheduler accounting: collection: %s", strerror(-err));
	else if (p)
		put(d, &d->lanes[LANE_WALL], p);
}

void windows_collect(struct daemon *d, bool last)
{
	collect_samples(d, last);
	if (d->sched)
		collect_wall(d);
	if (last)
		windows_flush(d);
}
