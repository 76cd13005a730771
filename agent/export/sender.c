/* SPDX-License-Identifier: Apache-2.0 */
/* A sink's thread: takes windows out of the spool, oldest first, and waits between them. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>

#include "agent/export/gather.h"

static const nsec_t CURSOR_INTERVAL = NSEC_PER_SEC;

uint64_t export_random(void)
{
	uint64_t value = 0;

	/* Spreading is all that it is for: without entropy the clock will do. */
	if (getrandom(&value, sizeof(value), GRND_NONBLOCK) != (ssize_t)sizeof(value))
		value = clock_monotonic() * 0x9e3779b97f4a7c15ULL;
	return value;
}

void sender_say(struct sender *s, struct notice *slot, enum notice_level level, const char *format,
		...)
{
	va_list args;

	pthread_mutex_lock(&s->x->lock);
	va_start(args, format);
	vsnprintf(slot->text, sizeof(slot->text), format, args);
	va_end(args);
	slot->level = level;
	slot->there = true;
	pthread_mutex_unlock(&s->x->lock);
}

/* Under the lock: until something changes, or the deadline. */
static void sleep_until(struct exporter *x, nsec_t deadline)
{
	struct timespec at = {
		.tv_sec = (time_t)(deadline / NSEC_PER_SEC),
		.tv_nsec = (long)(deadline % NSEC_PER_SEC),
	};

	pthread_cond_timedwait(&x->changed, &x->lock, &at);
}

bool sender_wait(struct sender *s, nsec_t deadline)
{
	struct exporter *x = s->x;
	bool go_on;

	pthread_mutex_lock(&x->lock);
	while (!x->stopping && !x->draining && clock_monotonic() < deadline)
		sleep_until(x, deadline);
	go_on = !x->stopping && !x->draining;
	pthread_mutex_unlock(&x->lock);
	return go_on;
}

/* The next window, waited for; false when it is time to stop. */
static bool next_chunk(struct sender *s, struct spool_chunk *ret_chunk)
{
	static const nsec_t LONG = 3600 * NSEC_PER_SEC;
	struct exporter *x = s->x;
	bool found = false;

	pthread_mutex_lock(&x->lock);
	while (!x->stopping) {
		nsec_t now = clock_monotonic(), at = now + LONG;

		if (spool_next(x->spool, s->cursor, ret_chunk)) {
			at = gather_due(s, ret_chunk);
			found = at <= now;
		}
		if (found || x->draining)
			break;
		sleep_until(x, at);
	}
	pthread_mutex_unlock(&x->lock);
	return found;
}

/*
 * Not on disk after each window of a backlog: it costs two syncs, and to lose it only means that
 * some windows which other sinks still want are sent once more.
 */
static void write_cursor(struct sender *s, bool at_once)
{
	nsec_t now = clock_monotonic();

	if (s->cursor == s->cursor_written || (!at_once && now - s->cursor_time < CURSOR_INTERVAL))
		return;
	if (spool_write_cursor(s->x->spool_dir, s->type->name, s->cursor))
		return; /* the next one will do */
	s->cursor_written = s->cursor;
	s->cursor_time = now;
}

/* Done with a window: it goes, unless another sink still wants it. */
static void advance(struct sender *s, uint64_t number)
{
	struct exporter *x = s->x;
	uint64_t lowest = number;
	struct spool_chunk next;
	bool last;

	pthread_mutex_lock(&x->lock);
	s->cursor = number;
	for (size_t i = 0; i < x->sender_count; i++) {
		if (x->senders[i].cursor < lowest)
			lowest = x->senders[i].cursor;
	}
	spool_remove_below(x->spool, lowest);
	last = !spool_next(x->spool, number, &next);
	pthread_mutex_unlock(&x->lock);
	write_cursor(s, last);
}

void *sender_run(void *context)
{
	struct sender *s = context;
	struct spool_chunk chunk;
	uint64_t next;
	char name[16];

	snprintf(name, sizeof(name), "send-%s", s->type->name);
	prctl(PR_SET_NAME, name);
	while (next_chunk(s, &chunk)) {
		if (!sender_deliver(s, &chunk, &next))
			break;
		advance(s, next);
	}
	write_cursor(s, true);
	pthread_mutex_lock(&s->x->lock);
	s->running = false;
	pthread_cond_broadcast(&s->x->changed);
	pthread_mutex_unlock(&s->x->lock);
	return NULL;
}
