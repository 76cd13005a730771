/* SPDX-License-Identifier: Apache-2.0 */
/* See exporter.h: life, handing over, totals. */
#include "agent/export/exporter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/export/exporter_options.h"
#include "agent/export/exporter_private.h"
#include "agent/export/gather.h"
#include "base/map.h"
#include "base/thread.h"

enum { NODE_BYTES = 256 };

/* ---- opening ---- */

/* The address and the path with one slash between them; the address's own path stays. */
static char *join_url(const char *target, const char *path)
{
	size_t len = strlen(target);
	char *url;

	while (len && target[len - 1] == '/')
		len--;
	return asprintf(&url, "%.*s%s", (int)len, target, path) < 0 ? NULL : url;
}

static int add_sender(struct exporter *x, const struct sink_type *type,
		      const struct sink_options *options)
{
	struct sender *s = &x->senders[x->sender_count];
	uint64_t turn[2] = { hash_bytes(x->identity.node, strlen(x->identity.node)),
			     hash_bytes(type->name, strlen(type->name)) };

	*s = (struct sender){ .x = x, .type = type, .options = *options };
	s->totals.name = type->name;
	s->backoff.max = x->options.retry_max_ns;
	if (x->options.spread_ns)
		s->spread = hash_bytes(turn, sizeof(turn)) % x->options.spread_ns;
	s->cursor = spool_read_cursor(x->spool_dir, type->name);
	x->sender_count++;
	if (!type->path)
		return 0;
	s->url = join_url(options->target, options->path ? options->path : type->path);
	if (!s->url)
		return -ENOMEM;
	return http_client_new(&x->options.http, &x->abort, &s->client);
}

/* Numbers go on behind what was sent, also when nothing of that is left. */
static int open_senders(struct exporter *x)
{
	int err = 0;

	for (int i = 0; !err && i < SINK_COUNT; i++) {
		if (x->options.sinks[i].target)
			err = add_sender(x, sink_types[i], &x->options.sinks[i]);
	}
	for (size_t i = 0; i < x->sender_count; i++)
		spool_begin_at(x->spool, x->senders[i].cursor);
	x->at_once_below = spool_end(x->spool) + 1;
	return err;
}

static int open_identity(struct exporter *x)
{
	char name[NODE_BYTES] = "";

	if (!x->options.node || !*x->options.node) {
		if (gethostname(name, sizeof(name) - 1) || !name[0])
			snprintf(name, sizeof(name), "unknown");
		x->node = strdup(name);
		x->options.node = x->node;
	}
	if (!x->options.node)
		return -ENOMEM;
	x->identity.node = x->options.node;
	x->identity.version = x->options.version;
	return exporter_parse_labels(x->options.labels, &x->label_text, x->labels,
				     &x->identity.label_count);
}

int exporter_open(const char *dir, const struct exporter_options *options,
		  struct exporter **ret_exporter, char *reason, size_t reason_size)
{
	struct exporter *x = calloc(1, sizeof(*x));
	pthread_condattr_t monotonic;
	int err = -ENOMEM;

	if (!x)
		goto out;
	pthread_mutex_init(&x->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&x->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	err = exporter_options_copy(options, &x->options, &x->texts);
	if (!err)
		err = open_identity(x);
	x->identity.labels = x->labels;
	if (!err)
		err = http_client_init();
	if (err == -ENOSYS && !exporter_needs_http(options))
		err = 0;
	if (!err)
		err = spool_open(dir, x->options.spool_mib << 20, &x->spool);
	if (!err) {
		x->spool_dir = strdup(spool_dir(x->spool));
		err = x->spool_dir ? open_senders(x) : -ENOMEM;
	}
out:
	if (err) {
		snprintf(reason, reason_size, "%s/spool: %s", dir,
			 err == -ENOSYS ? "this program has no HTTP client" : strerror(-err));
		exporter_close(x, 0);
		return err;
	}
	*ret_exporter = x;
	return 0;
}

int exporter_start(struct exporter *x)
{
	for (size_t i = 0; i < x->sender_count; i++) {
		struct sender *s = &x->senders[i];
		int err;

		s->running = true;
		err = thread_start(&s->thread, sender_run, s);
		if (err) {
			s->running = false;
			return err;
		}
		s->started = true;
	}
	return 0;
}

/* ---- ending ---- */

static bool any_running(const struct exporter *x)
{
	for (size_t i = 0; i < x->sender_count; i++) {
		if (x->senders[i].running)
			return true;
	}
	return false;
}

static void stop(struct exporter *x, nsec_t grace)
{
	nsec_t deadline = clock_monotonic() + grace;
	struct timespec at = {
		.tv_sec = (time_t)(deadline / NSEC_PER_SEC),
		.tv_nsec = (long)(deadline % NSEC_PER_SEC),
	};

	pthread_mutex_lock(&x->lock);
	x->draining = true;
	pthread_cond_broadcast(&x->changed);
	while (any_running(x) && clock_monotonic() < deadline)
		pthread_cond_timedwait(&x->changed, &x->lock, &at);
	x->stopping = true;
	atomic_store(&x->abort, true);
	pthread_cond_broadcast(&x->changed);
	pthread_mutex_unlock(&x->lock);
	for (size_t i = 0; i < x->sender_count; i++) {
		if (x->senders[i].started)
			pthread_join(x->senders[i].thread, NULL);
	}
}

void exporter_close(struct exporter *x, nsec_t grace)
{
	if (!x)
		return;
	stop(x, grace);
	for (size_t i = 0; i < x->sender_count; i++) {
		http_client_free(x->senders[i].client);
		free(x->senders[i].url);
	}
	spool_close(x->spool);
	free(x->spool_dir);
	free(x->node);
	free(x->label_text);
	exporter_texts_free(x->texts);
	pthread_cond_destroy(&x->changed);
	pthread_mutex_destroy(&x->lock);
	free(x);
}

/* ---- handing over ---- */

/* Windows that the cap took from sinks that had not sent them. */
static void count_dropped(struct exporter *x, const uint64_t waiting_before[SINK_COUNT],
			  uint64_t added)
{
	for (size_t i = 0; i < x->sender_count; i++) {
		struct sender *s = &x->senders[i];
		uint64_t now = spool_count(x->spool, s->cursor);

		if (waiting_before[i] + added > now)
			s->totals.dropped_cap += waiting_before[i] + added - now;
	}
}

int exporter_add(struct exporter *x, const struct profile *p)
{
	uint64_t waiting[SINK_COUNT] = { 0 }, end;
	struct spool_chunk chunk;
	int err;

	pthread_mutex_lock(&x->lock);
	end = spool_end(x->spool);
	for (size_t i = 0; i < x->sender_count; i++)
		waiting[i] = spool_count(x->spool, x->senders[i].cursor);
	err = spool_add(x->spool, p);
	if (!err && spool_end(x->spool) > end) {
		x->added = clock_monotonic();
		x->added_number = end;
		if (!spool_next(x->spool, end, &chunk) || !gather_is_light(p, chunk.bytes))
			x->heavy_end = end + 1;
		count_dropped(x, waiting, 1);
		pthread_cond_broadcast(&x->changed);
	}
	pthread_mutex_unlock(&x->lock);
	return err;
}

/* ---- looking ---- */

bool exporter_differs(const struct exporter *x, const struct exporter_options *options)
{
	return x ? exporter_options_differ(&x->options, options) : exporter_is_wanted(options);
}

bool exporter_next_notice(struct exporter *x, enum notice_level *ret_level, char *text,
			  size_t text_size)
{
	bool found = false;

	pthread_mutex_lock(&x->lock);
	for (size_t i = 0; !found && i < 2 * x->sender_count; i++) {
		struct sender *s = &x->senders[i / 2];
		struct notice *notice = i % 2 ? &s->refusal : &s->state;

		found = notice->there;
		if (!found)
			continue;
		notice->there = false;
		*ret_level = notice->level;
		snprintf(text, text_size, "%s", notice->text);
	}
	pthread_mutex_unlock(&x->lock);
	return found;
}

bool exporter_totals(struct exporter *x, size_t n, struct sink_totals *ret_totals)
{
	if (n >= x->sender_count)
		return false;
	pthread_mutex_lock(&x->lock);
	*ret_totals = x->senders[n].totals;
	ret_totals->waiting = spool_count(x->spool, x->senders[n].cursor);
	pthread_mutex_unlock(&x->lock);
	return true;
}

void exporter_spool_totals(struct exporter *x, struct spool_totals *ret_totals)
{
	pthread_mutex_lock(&x->lock);
	spool_totals(x->spool, ret_totals);
	pthread_mutex_unlock(&x->lock);
}
