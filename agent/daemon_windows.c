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

static uint64_t count_samples(const struct profile *p)
{
	uint64_t samples = 0;

	for (size_t i = 0; i < p->sample_count; i++)
		samples += (uint64_t)p->samples[i].values[0];
	return samples;
}

/* Keeps what could not be written, to be tried again with the next collection. */
static void keep_pending(struct daemon *d, struct profile *p)
{
	int err = 0;

	if (!d->pending)
		err = profile_new(PENDING_BYTES, &d->pending);
	if (!err)
		err = profile_merge(d->pending, p);
	if (err) {
		/* A profile that a merge has failed on is not whole. */
		d->totals.lost_samples += count_samples(p);
		if (d->pending)
			d->totals.lost_samples += count_samples(d->pending);
		profile_free(d->pending);
		d->pending = NULL;
		log_warn("journal: collections are lost: %s", strerror(-err));
	}
	profile_free(p);
}

static void journal_or_keep(struct daemon *d, uint64_t window, struct profile *p)
{
	int err;

	if (d->pending) {
		keep_pending(d, p);
		p = d->pending;
		d->pending = NULL;
		if (!p)
			return;
	}
	err = journal_append(d->journal, window, p);
	if (!err) {
		profile_free(p);
		return;
	}
	d->totals.journal_errors++;
	log_warn("journal: %s/journal: %s; kept in memory, next try with the next collection",
		 d->options.dir, strerror(-err));
	if (d->pending == NULL && p)
		keep_pending(d, p);
}

/*
 * Into the spool first: when only the store fails, both get the window again, and the spool knows
 * it.
 */
static int keep_window(struct daemon *d, const struct profile *p)
{
	int err = d->exporter ? exporter_add(d->exporter, p) : 0;

	return err ? err : store_add(d->store, p, agent_is_hardware(d->agent) ? "cycles" : "cpu");
}

void windows_flush(struct daemon *d)
{
	struct profile *p;
	uint64_t window;
	int err;

	while ((err = journal_read_oldest(d->journal, UINT64_MAX, &window, &p)) == 0) {
		err = keep_window(d, p);
		if (err == -EINVAL || err == -EFBIG) {
			/* It will never be taken, and must not block those behind it. */
			d->totals.lost_samples += count_samples(p);
			log_warn("store: window %" PRIu64 " refused: %s; its samples are lost", window,
				 strerror(-err));
			err = 0;
		}
		profile_free(p);
		if (!err)
			err = journal_remove(d->journal, window);
		if (err) {
			d->totals.store_errors++;
			log_warn("store: %s: %s; the window stays in the journal", d->options.dir,
				 strerror(-err));
			return;
		}
		d->totals.windows++;
	}
	if (err != -ENOENT) {
		d->totals.store_errors++;
		log_warn("journal: %s/journal: %s", d->options.dir, strerror(-err));
	}
}

void windows_collect(struct daemon *d, bool last)
{
	struct profile *p;
	uint64_t window;
	int err = agent_take(d->agent, last, &p);

	if (err) {
		log_warn("collection: %s; its samples are lost", strerror(-err));
		return;
	}
	d->totals.collections++;
	window = (uint64_t)p->time_ns / d->options.window_ns;
	/*
	 * Any other window, also an earlier one: the clock may have been set back. All that is
	 * in the journal then belongs to windows that are over.
	 */
	if (d->window && window != d->window)
		windows_flush(d);
	d->window = window;
	journal_or_keep(d, window, p);
	if (last)
		windows_flush(d);
}
