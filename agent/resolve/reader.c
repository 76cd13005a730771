/* SPDX-License-Identifier: Apache-2.0 */
/* Queues, results and the thread; see reader.h. */
#include "agent/resolve/reader.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"

enum { FD_SHARE = 8, PATIENCE_SECONDS = 2 };

/* A ring of jobs. */
struct queue {
	struct read_job jobs[READER_MAX_JOBS];
	size_t first, count;
};

struct reader {
	struct sym_file_options options;
	size_t max_jobs;
	int event_fd; /* readable if and only if there are results */
	pthread_t thread;
	bool is_started;

	pthread_mutex_t lock; /* of all below */
	pthread_cond_t wake;  /* for the thread: a job, room for a result, a call, the end */
	pthread_cond_t answer; /* for the loop: a call, or the thread, is over */
	struct queue queues[READ_PARTS];
	struct read_result results[READER_MAX_RESULTS];
	size_t first_result, result_count, result_bytes;
	size_t busy[READ_PARTS]; /* 1 while such a part is at work */
	enum read_part last;
	bool no_symbols, stop, has_ended;
	int (*call)(void);
	int call_result;
};

/* ---- queues; the lock is held ---- */

static bool push(const struct reader *r, struct queue *q, const struct read_job *job)
{
	if (q->count >= r->max_jobs)
		return false;
	q->jobs[(q->first + q->count++) % READER_MAX_JOBS] = *job;
	return true;
}

static struct read_job pop(struct queue *q)
{
	struct read_job job = q->jobs[q->first];

	q->first = (q->first + 1) % READER_MAX_JOBS;
	q->count--;
	return job;
}

static void signal_results(const struct reader *r)
{
	uint64_t one = 1;

	/* Of an eventfd that was just read: it neither blocks nor fails. */
	if (write(r->event_fd, &one, sizeof(one)) < 0)
		return;
}

static void clear_signal(const struct reader *r)
{
	uint64_t count;

	if (read(r->event_fd, &count, sizeof(count)) < 0)
		return;
}

static bool has_room(const struct reader *r, size_t bytes)
{
	return r->result_count == 0 ||
	       (r->result_count < READER_MAX_RESULTS &&
		r->result_bytes + bytes <= READER_MAX_RESULT_BYTES);
}

static void answer_call(struct reader *r)
{
	r->call_result = r->call();
	r->call = NULL;
	pthread_cond_signal(&r->answer);
}

/* Waits for room. At the end the result is dropped. */
static void put_result(struct reader *r, struct read_result *result)
{
	size_t bytes = read_result_bytes(result);

	while (!r->stop && !has_room(r, bytes)) {
		if (r->call)
			answer_call(r);
		else
			pthread_cond_wait(&r->wake, &r->lock);
	}
	if (r->stop) {
		read_result_drop(result);
		return;
	}
	r->results[(r->first_result + r->result_count) % READER_MAX_RESULTS] = *result;
	r->result_bytes += bytes;
	if (r->result_count++ == 0)
		signal_results(r);
}

/* What comes after a part of a job is done: the descriptor goes on, or is closed. */
static void next_part(struct reader *r, const struct read_job *job, enum read_part done)
{
	struct read_result refused = { .id = job->id, .part = READ_SYMBOLS, .err = -EAGAIN };

	if (done == READ_TABLE && job->wants_symbols) {
		if (push(r, &r->queues[READ_SYMBOLS], job))
			return;
		put_result(r, &refused);
	}
	close(job->fd);
}

/* ---- the thread ---- */

/* The lock is held, but not while the file is read. */
static void work_on(struct reader *r, enum read_part part)
{
	struct read_job job = pop(&r->queues[part]);
	struct read_result result = { .id = job.id, .part = part, .err = -ECANCELED };

	r->busy[part] = 1;
	r->last = part;
	if (part != READ_SYMBOLS || !r->no_symbols) {
		pthread_mutex_unlock(&r->lock);
		result = read_part(&r->options, &job, part);
		pthread_mutex_lock(&r->lock);
	}
	put_result(r, &result);
	next_part(r, &job, part);
	r->busy[part] = 0;
}

/* What is next: JIT code and tables take turns, symbols wait for both. READ_PARTS: nothing. */
static enum read_part choose(const struct reader *r)
{
	bool is_turn = r->last != READ_JIT || !r->queues[READ_TABLE].count;

	if (r->queues[READ_JIT].count && is_turn)
		return READ_JIT;
	if (r->queues[READ_TABLE].count)
		return READ_TABLE;
	return r->queues[READ_SYMBOLS].count ? READ_SYMBOLS : READ_PARTS;
}

static void *work(void *context)
{
	struct reader *r = context;
	enum read_part part;

	pthread_mutex_lock(&r->lock);
	while (!r->stop) {
		if (r->call)
			answer_call(r);
		else if ((part = choose(r)) != READ_PARTS)
			work_on(r, part);
		else
			pthread_cond_wait(&r->wake, &r->lock);
	}
	r->has_ended = true;
	pthread_cond_signal(&r->answer);
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* ---- for the loop ---- */

static size_t jobs_allowed(void)
{
	struct rlimit files;
	size_t jobs = READER_MAX_JOBS;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / FD_SHARE < jobs)
		jobs = files.rlim_cur / FD_SHARE;
	return jobs ? jobs : 1;
}

int reader_new(const struct sym_file_options *options, struct reader **ret_reader)
{
	struct reader *r = calloc(1, sizeof(*r));
	pthread_condattr_t monotonic;

	if (!r)
		return -ENOMEM;
	r->options = *options;
	r->max_jobs = jobs_allowed();
	r->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->event_fd < 0) {
		int err = -errno;

		free(r);
		return err;
	}
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->wake, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&r->answer, &monotonic);
	pthread_condattr_destroy(&monotonic);
	*ret_reader = r;
	return 0;
}

int reader_start(struct reader *r)
{
	int err = thread_start(&r->thread, work, r);

	r->is_started = err == 0;
	return err;
}

/* False if the thread does not end. */
static bool end_thread(struct reader *r)
{
	struct timespec end;
	bool has_ended;
	int err = 0;

	if (!r->is_started)
		return true;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += PATIENCE_SECONDS;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_signal(&r->wake);
	while (!r->has_ended && !err)
		err = pthread_cond_timedwait(&r->answer, &r->lock, &end);
	has_ended = r->has_ended;
	pthread_mutex_unlock(&r->lock);
	if (has_ended)
		pthread_join(r->thread, NULL);
	else
		pthread_detach(r->thread);
	return has_ended;
}

void reader_free(struct reader *r)
{
	if (!r || !end_thread(r))
		return;
	for (int part = 0; part < READ_PARTS; part++) {
		while (r->queues[part].count) {
			struct read_job job = pop(&r->queues[part]);

			close(job.fd);
			sym_jit_free(job.jit);
		}
	}
	while (r->result_count) {
		struct read_result result;

		reader_next(r, &result);
		read_result_drop(&result);
	}
	pthread_cond_destroy(&r->answer);
	pthread_cond_destroy(&r->wake);
	pthread_mutex_destroy(&r->lock);
	close(r->event_fd);
	free(r);
}

int reader_fd(const struct reader *r)
{
	return r->event_fd;
}

int reader_submit(struct reader *r, const struct read_job *job)
{
	enum read_part first = job->jit ? READ_JIT : job->wants_table ? READ_TABLE : READ_SYMBOLS;
	bool taken;

	pthread_mutex_lock(&r->lock);
	taken = push(r, &r->queues[first], job);
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
	return taken ? 0 : -EAGAIN;
}

bool reader_next(struct reader *r, struct read_result *ret_result)
{
	bool found;

	pthread_mutex_lock(&r->lock);
	found = r->result_count > 0;
	if (found) {
		*ret_result = r->results[r->first_result];
		r->result_bytes -= read_result_bytes(ret_result);
		r->first_result = (r->first_result + 1) % READER_MAX_RESULTS;
		if (--r->result_count == 0)
			clear_signal(r);
		pthread_cond_signal(&r->wake);
	}
	pthread_mutex_unlock(&r->lock);
	return found;
}

size_t reader_bytes(struct reader *r, enum read_part part)
{
	size_t bytes = 0;

	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < r->result_count; i++) {
		const struct read_result *result =
			&r->results[(r->first_result + i) % READER_MAX_RESULTS];

		bytes += result->part == part ? read_result_bytes(result) : 0;
	}
	pthread_mutex_unlock(&r->lock);
	return bytes;
}

size_t reader_jobs(struct reader *r, enum read_part part)
{
	size_t jobs;

	pthread_mutex_lock(&r->lock);
	jobs = r->queues[part].count + r->busy[part];
	pthread_mutex_unlock(&r->lock);
	return jobs;
}

void reader_set_symbols(struct reader *r, bool load)
{
	pthread_mutex_lock(&r->lock);
	r->no_symbols = !load;
	pthread_mutex_unlock(&r->lock);
}

int reader_call(struct reader *r, int (*fn)(void))
{
	int result;

	if (!r->is_started)
		return 0;
	pthread_mutex_lock(&r->lock);
	r->call = fn;
	pthread_cond_signal(&r->wake);
	while (r->call)
		pthread_cond_wait(&r->answer, &r->lock);
	result = r->call_result;
	pthread_mutex_unlock(&r->lock);
	return result;
}
