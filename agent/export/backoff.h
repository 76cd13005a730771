/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long to wait before the next try: a random time up to a bound that doubles with each
 * failure ("full jitter"), so that a fleet does not come back all at once. What the server asks
 * for is kept to, within reason.
 */
#ifndef AGENT_EXPORT_BACKOFF_H
#define AGENT_EXPORT_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct backoff {
	nsec_t max;
	unsigned failures; /* in a row */
};

/* The wait after one more failure. `random` is any number; `server` what it asked for, or 0. */
nsec_t backoff_failed(struct backoff *b, uint64_t random, nsec_t server);

/* The wait where only a person can help: around the bound, from the first time on. */
nsec_t backoff_hold(struct backoff *b, uint64_t random);

void backoff_reset(struct backoff *b);

#endif
