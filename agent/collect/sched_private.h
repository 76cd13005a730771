/* SPDX-License-Identifier: Apache-2.0 */
/* What sched.c (load, attach, seed) and sched_read.c share. */
#ifndef AGENT_COLLECT_SCHED_PRIVATE_H
#define AGENT_COLLECT_SCHED_PRIVATE_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "agent/collect/sched.h"
#include "sched.skel.h"

struct sched_collect {
	struct sched_handler handler;
	struct sched_bpf *skel;
	struct ring_buffer *ring;
	struct bpf_link *seed; /* an iterator over all threads */
	struct collect *base;  /* of stacks; NULL: none are taken */
	size_t thread_bytes;   /* a value of `threads` */
	__u32 retired;         /* half of the strata that the last snapshot closed */
	int possible_cpus;
	uint64_t now_ns; /* of the last snapshot */
	uint32_t epoch;  /* of the interval that is read */
	uint64_t torn, read_errors;
};

/* Ring buffer callback. */
int sched_read_record(void *context, void *bytes, size_t size);

/* Finds threads that have no record: 0 or -errno. */
int sched_collect_seed(struct sched_collect *c);

/* Brings the time of running threads up to date; a CPU that is offline has none. */
void sched_collect_tick(struct sched_collect *c);

/* sched_stacks.c: before loading, with or without; at attaching; at a snapshot. */
int sched_stacks_prepare(struct sched_collect *c, const struct sched_stacks *stacks);
void sched_stacks_begin(struct sched_collect *c);
void sched_stacks_flip(struct sched_collect *c, uint64_t now_ns);

/* A record that was read after the flip, as it was then. */
void sched_stacks_as_of_flip(const struct sched_collect *c, struct sonde_off_thread *thread);

/* Kernel memory of maps that are the collect's. */
uint64_t sched_stacks_shared_bytes(const struct sched_collect *c);

/* Fills the table of what the thread waits for in which system call. */
void sched_syscalls_fill(__u8 reasons[SONDE_SCHED_SYSCALLS]);

#endif
