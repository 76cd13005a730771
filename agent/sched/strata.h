/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What time off the CPU was spent on, by stack. The books (books.h) know exactly how long a process
 * was in which state; the kernel's strata how much of that were waits of which length; and
 * stacks are known of some of the waits. So the stacks of a stratum share what the stratum holds, and
 * the strata of a state make up what the books say: the sum is that of the books, to the nanosecond.
 *
 * What is in no stratum (a wait that was there before, the moments while maps are read), and a
 * stratum without any stack, is handed on without a stack. Nothing is ever scaled up: where
 * strata hold more than the books, which such moments may cause, they share what the books say. With a
 * least length, a wait counts as a whole once it is that long, though part of it was before the interval.
 */
#ifndef AGENT_SCHED_STRATA_H
#define AGENT_SCHED_STRATA_H

#include "agent/sched/books.h"

/* Part of an interval's time off the CPU. */
struct strata_share {
	const struct sched_row_key *row;
	const struct sched_row *named; /* of that row */
	const struct sonde_off_key *stack; /* NULL: not known */
	uint32_t state;
	uint32_t bucket; /* of the length of its waits; without a stratum 0 */
	uint64_t count;  /* waits that ended */
	uint64_t ns;
	uint64_t max_ns; /* the longest wait, that of a stratum without stacks too */
};

struct strata_options {
	uint32_t states; /* bits of enum sonde_sched_state */
	bool running;    /* also time on a CPU: its samples (strata_on_cpu) share all of it */
	uint64_t min_ns; /* no shorter waits; then what is in no stratum is left out, too */
	/* Whether a row's time is wanted that has no stratum; NULL: all are. */
	bool (*wanted)(void *context, const struct sched_row_key *row);
	void (*share)(void *context, const struct strata_share *share);
	void *context;
};

struct strata;

int strata_new(size_t max_strata, size_t max_stacks, struct strata **ret_strata);
void strata_free(struct strata *s);

/* A living thread: its wait goes on; it counts from `from_ns` on, up to `now_ns`. */
void strata_open(struct strata *s, const struct sonde_off_thread *thread, uint64_t now_ns,
		 uint64_t from_ns, const struct strata_options *options);
void strata_add(struct strata *s, const struct sonde_stratum_key *key,
		const struct sonde_stratum *stratum);
void strata_stack(struct strata *s, const struct sonde_off_key *key,
		  const struct sonde_off_count *count);

/* Samples on a CPU of the row's process; `stratum` of the key is the row's, 0 and 0. */
void strata_on_cpu(struct strata *s, const struct sonde_off_key *key, uint64_t samples, uint64_t ns);

/* The row of a process in a cgroup, as strata name it. */
uint64_t strata_row(const struct sched_row_key *row);

/* Strata and stacks that found no room: their time is shared without them. */
uint64_t strata_refused(const struct strata *s);

/* Shares out what the books hold, and begins anew: 0 or -ENOMEM, and nothing was shared. */
int strata_distribute(struct strata *s, const struct sched_books *books,
		      const struct strata_options *options);

/*
 * Part `weight` of `whole` where the weights before it are `before` and all are `all`: such that the
 * parts add up to the whole.
 */
uint64_t strata_part(uint64_t whole, uint64_t before, uint64_t weight, uint64_t all);

#endif
