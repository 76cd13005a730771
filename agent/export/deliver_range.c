/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One range of samples to one sink, tried until its fate is known; see deliver.h.
 *
 * A store in trouble and a profile that it cannot take may look the same (500, or a success
 * with a strange content). After some tries the store is asked with an empty request: if it answers
 * that as it should, the profile is to blame, else waiting goes on.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/export/deliver.h"
#include "proto/compress.h"

enum {
	MAX_DOUBTS = 5, /* tries before the store is asked */
	MAX_CONDEMNED = 2,
	SPLIT_AFTER = 5, /* "too many" so often for a large range: it is over a burst */
	LARGE_BYTES = 1 << 20,
	HTTP_TOO_MANY = 429,
};

static bool is_there(struct sender *s, const struct spool_chunk *chunk)
{
	struct spool_chunk next;
	bool there;

	pthread_mutex_lock(&s->x->lock);
	there = spool_next(s->x->spool, chunk->number, &next) && next.number == chunk->number;
	pthread_mutex_unlock(&s->x->lock);
	return there;
}

/* By the time of day, as the store sees it. */
static bool is_too_old(const struct delivery *d)
{
	uint64_t max = d->s->type->max_age_ns ? d->s->x->options.max_age_ns : 0;
	int64_t age = (int64_t)clock_realtime() - d->batch.p->time_ns;

	return max && age > 0 && (uint64_t)age > max;
}

/* Whether the window need not be sent any more, and then counted. */
static bool is_gone(struct delivery *d)
{
	struct sender *s = d->s;

	if (is_too_old(d)) {
		pthread_mutex_lock(&s->x->lock);
		s->totals.dropped_age++;
		pthread_mutex_unlock(&s->x->lock);
		return true;
	}
	return !is_there(s, d->chunk); /* counted where it was dropped */
}

/* ---- states, and waiting ---- */

bool deliver_failed(struct sender *s, enum verdict verdict, nsec_t server_wait)
{
	nsec_t wait = verdict == VERDICT_HOLD
			      ? backoff_hold(&s->backoff, export_random())
			      : backoff_failed(&s->backoff, export_random(), server_wait);
	unsigned long long waiting;

	pthread_mutex_lock(&s->x->lock);
	s->totals.retries++;
	s->totals.failures = s->backoff.failures;
	waiting = spool_count(s->x->spool, s->cursor);
	pthread_mutex_unlock(&s->x->lock);
	if (!s->failing_since || s->failing != verdict)
		sender_say(s, &s->state, NOTICE_WARN,
			   "sink %s: %s; tried again in %.1f s, %llu windows wait in the spool",
			   s->type->name, s->why, (double)wait / NSEC_PER_SEC, waiting);
	if (!s->failing_since)
		s->failing_since = clock_monotonic();
	s->failing = verdict;
	return sender_wait(s, clock_monotonic() + wait);
}

static void succeeded(struct sender *s)
{
	unsigned long long waiting;

	pthread_mutex_lock(&s->x->lock);
	s->totals.failures = 0;
	s->totals.last_success_s = (double)clock_realtime() / NSEC_PER_SEC;
	waiting = spool_count(s->x->spool, s->cursor);
	pthread_mutex_unlock(&s->x->lock);
	if (s->failing_since)
		sender_say(s, &s->state, NOTICE_INFO,
			   "sink %s: delivers again after %.0f s; %llu windows in the spool",
			   s->type->name,
			   (double)(clock_monotonic() - s->failing_since) / NSEC_PER_SEC, waiting);
	s->failing_since = 0;
	backoff_reset(&s->backoff);
}

/* ---- one request ---- */

/* Sends a body; the answer's status and what it means, with the reason in s->why. */
static enum verdict post(struct sender *s, const struct buf *body, bool packed, int *ret_status,
			 nsec_t *ret_wait)
{
	static const char *const gzip_header[] = { "Content-Encoding: gzip", NULL };
	const char *headers[16];
	struct http_request request = { s->url, headers, .body = body->data, .len = body->len };
	struct http_response r;
	enum verdict verdict = VERDICT_RETRY;
	char **secrets;
	size_t n = 0;

	if (credentials_read(&s->options.credentials, &secrets, s->why, sizeof(s->why)))
		return VERDICT_HOLD;
	for (; s->type->headers[n]; n++)
		headers[n] = s->type->headers[n];
	if (packed)
		headers[n++] = gzip_header[0];
	headers[n] = NULL;
	request.more = (const char *const *)secrets;
	s->why[0] = 0;
	http_client_post(s->client, &request, &r);
	if (r.status)
		verdict = s->type->judge(&r, s->why, sizeof(s->why));
	else
		snprintf(s->why, sizeof(s->why), "%s", r.error);
	*ret_status = r.status;
	*ret_wait = (nsec_t)r.retry_after_s * NSEC_PER_SEC;
	http_response_fini(&r);
	credentials_free(secrets);
	return verdict;
}

/* The body as it goes out: compressed if the sink does that. 0 or -errno. */
static int encode(const struct delivery *d, struct buf *body, bool *ret_packed)
{
	const struct sink_type *type = d->s->type;
	struct buf plain;
	int err;

	*ret_packed = false;
	buf_init(&plain, d->batch.limits.request_bytes);
	err = type->encode(&d->batch, &plain);
	if (!err && (!type->gzip || d->s->plain)) {
		buf_fini(body);
		*body = plain;
		return 0;
	}
	buf_reset(body);
	if (!err)
		err = compress_put(COMPRESS_GZIP, plain.data, plain.len, body);
	buf_fini(&plain);
	*ret_packed = !err;
	return err;
}

/* No more than the rate allows, on average; before the end there is no time for that. */
static void wait_for_rate(struct sender *s, size_t bytes)
{
	uint64_t rate = s->x->options.rate_kib << 10;

	if (s->not_before > clock_monotonic())
		sender_wait(s, s->not_before);
	if (rate)
		s->not_before = clock_monotonic() + bytes * NSEC_PER_SEC / rate;
}

/* Whether the store answers an empty request as a sound one does. */
static bool store_is_sound(struct delivery *d)
{
	struct delivery empty = *d;
	char why[HTTP_ERROR_BYTES];
	enum verdict verdict = VERDICT_DOUBT;
	struct buf body;
	bool packed;
	nsec_t wait;
	int status;

	memcpy(why, d->s->why, sizeof(why));
	empty.batch.first = empty.batch.end = 0;
	buf_init(&body, d->batch.limits.request_bytes);
	if (!encode(&empty, &body, &packed))
		verdict = post(d->s, &body, packed, &status, &wait);
	buf_fini(&body);
	memcpy(d->s->why, why, sizeof(why));
	return verdict == VERDICT_SENT || verdict == VERDICT_REJECT;
}

static void count_request(struct sender *s, size_t bytes)
{
	pthread_mutex_lock(&s->x->lock);
	s->totals.requests++;
	s->totals.bytes += bytes;
	pthread_mutex_unlock(&s->x->lock);
}

/* What was learned about a range so far. */
struct tries {
	unsigned doubts, too_many;
	unsigned condemned; /* failed right after the store was found sound */
	bool store_sound;   /* at the last look */
};

struct answer {
	enum verdict verdict;
	int status; /* 0: none */
	size_t sent;
	nsec_t wait; /* that the server asked for */
};

/* Encodes and sends once. */
static struct answer attempt(struct delivery *d)
{
	struct sender *s = d->s;
	struct answer answer = { .verdict = VERDICT_RETRY };
	bool packed = false;
	struct buf body;
	int err;

	buf_init(&body, 2 * d->batch.limits.request_bytes);
	err = s->type->store ? s->type->store(&d->batch, s->options.target)
			     : encode(d, &body, &packed);
	if (err) {
		snprintf(s->why, sizeof(s->why), "%s", strerror(-err));
		answer.verdict = err == -EFBIG ? VERDICT_SPLIT : VERDICT_RETRY;
	} else if (s->type->store) {
		s->why[0] = 0;
		answer.verdict = VERDICT_SENT;
		count_request(s, 0);
	} else {
		wait_for_rate(s, body.len);
		answer.sent = body.len;
		answer.verdict = post(s, &body, packed, &answer.status, &answer.wait);
		count_request(s, body.len);
	}
	buf_fini(&body);
	return answer;
}

/*
 * In doubt, the store is asked now and then; a range that fails twice right after the store was
 * found sound is refused. Once is not enough: the store may have got well in between.
 */
static enum verdict resolve_doubt(struct delivery *d, struct tries *t)
{
	if (t->store_sound && ++t->condemned >= MAX_CONDEMNED)
		return VERDICT_REJECT;
	t->doubts++;
	t->store_sound = t->doubts >= MAX_DOUBTS && store_is_sound(d);
	return VERDICT_DOUBT;
}

static enum verdict judge(struct delivery *d, struct tries *t, const struct answer *answer)
{
	if (answer->verdict == VERDICT_DOUBT)
		return resolve_doubt(d, t);
	t->store_sound = false;
	if (answer->status == HTTP_TOO_MANY && answer->sent > LARGE_BYTES &&
	    ++t->too_many >= SPLIT_AFTER)
		return VERDICT_SPLIT;
	if (answer->verdict == VERDICT_PLAIN && (d->s->plain || !d->s->type->gzip))
		return VERDICT_REJECT;
	return answer->verdict;
}

/* One try. True when `ret_outcome` is final; else the wait is over. */
static bool try_once(struct delivery *d, struct tries *t, enum outcome *ret_outcome)
{
	struct answer answer = attempt(d);
	enum verdict verdict = judge(d, t, &answer);

	switch (verdict) {
	case VERDICT_SENT:
		*ret_outcome = OUTCOME_SENT;
		return true;
	case VERDICT_SPLIT:
		*ret_outcome = OUTCOME_SPLIT;
		return true;
	case VERDICT_PLAIN:
		d->s->plain = true;
		return false;
	case VERDICT_RETRY:
	case VERDICT_HOLD:
	case VERDICT_DOUBT:
		*ret_outcome = OUTCOME_STOP;
		return !deliver_failed(d->s, verdict, answer.wait);
	default:
		*ret_outcome = OUTCOME_REFUSED;
		return true;
	}
}

enum outcome deliver_range(struct delivery *d)
{
	struct sender *s = d->s;
	struct tries tries = { 0 };
	enum outcome outcome;

	do {
		if (is_gone(d))
			return OUTCOME_GONE;
	} while (!try_once(d, &tries, &outcome));
	if (outcome == OUTCOME_SENT) {
		succeeded(s);
		if (s->why[0])
			sender_say(s, &s->refusal, NOTICE_WARN, "sink %s: taken in part: %s",
				   s->type->name, s->why);
	}
	return outcome;
}
