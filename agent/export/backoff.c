/* SPDX-License-Identifier: Apache-2.0 */
/* See backoff.h. */
#include "agent/export/backoff.h"

static const nsec_t FIRST = NSEC_PER_SEC;
static const nsec_t LEAST = NSEC_PER_SEC / 10;        /* two tries are never closer */
static const nsec_t SERVER_MOST = 900 * NSEC_PER_SEC; /* no server may silence us for longer */

nsec_t backoff_failed(struct backoff *b, uint64_t random, nsec_t server)
{
	nsec_t bound = FIRST, wait;

	for (unsigned i = 0; i < b->failures && bound < b->max; i++)
		bound *= 2;
	if (bound > b->max)
		bound = b->max;
	b->failures++;
	if (server) {
		/* Not before the time, and a little apart from the others who were told it. */
		wait = server < SERVER_MOST ? server : SERVER_MOST;
		return wait + random % (wait / 10 + 1);
	}
	wait = random % (bound + 1);
	return wait < LEAST ? LEAST : wait;
}

nsec_t backoff_hold(struct backoff *b, uint64_t random)
{
	b->failures++;
	return b->max / 2 + random % (b->max / 2 + 1);
}

void backoff_reset(struct backoff *b)
{
	b->failures = 0;
}
