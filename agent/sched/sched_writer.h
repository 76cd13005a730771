/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the profiles of the scheduler accounting are written with: samples whose frames are words,
 * labels of a row. The first error stays; the rest then does nothing.
 */
#ifndef AGENT_SCHED_SCHED_WRITER_H
#define AGENT_SCHED_SCHED_WRITER_H

#include "agent/sched/books.h"
#include "proto/profile.h"

enum { SCHED_MAX_LABELS = 12 };

extern const char *const sched_state_names[SONDE_SCHED_STATE_COUNT];
extern const char *const sched_reason_names[SONDE_SCHED_STATE_COUNT];
extern const char *const sched_counter_names[SONDE_SCHED_COUNTER_COUNT];

#define SCHED_FRAME_STOLEN  "stolen"
#define SCHED_FRAME_OFF_CPU "off_cpu" /* of threads without room: why is not known */

struct sched_writer {
	const struct sched_books *books;
	struct profile *p;
	struct map names; /* of processes, when rows are threads */
	struct profile_label labels[SCHED_MAX_LABELS];
	size_t label_count;
	int err;
};

/* An empty profile of the books' interval, which ended at `realtime_ns`. */
void sched_writer_init(struct sched_writer *w, const struct sched_books *b, uint64_t realtime_ns,
		       size_t max_bytes);

/* 0 and the profile, or -errno. */
int sched_writer_fini(struct sched_writer *w, struct profile **ret_profile);

/* Remembers the error in `result`, if it is one. */
void sched_writer_note(struct sched_writer *w, int64_t result);

/* Of all samples from now on; a number if text is NULL. */
void sched_writer_label(struct sched_writer *w, const char *key, const char *text, int64_t number);

/* Labels of a row in place of all others: comm, pid, thread, tid, cgroup, kernel. */
void sched_writer_row(struct sched_writer *w, const struct sched_row_key *key,
		      const struct sched_row *row);

/* `leaf` may be NULL or empty: one frame. */
void sched_writer_sample(struct sched_writer *w, const char *leaf, const char *outer,
			 const int64_t *values);

/* What was counted in the interval, as comments. */
void sched_writer_counters(struct sched_writer *w, const struct sched_machine *m);

#endif
