/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The contract of off-CPU stacks, on top of that of the scheduler accounting. Each interval off the
 * CPU that ends is added to a stratum: its row (a process between two execs in a cgroup), what it
 * was spent on, and the log2 of its length. That is exact. Of some intervals the stack was
 * taken when the thread left the CPU; these only distribute what their stratum holds.
 */
#ifndef BPF_OFF_ABI_H
#define BPF_OFF_ABI_H

#include "bpf/sched_abi.h"

/* The steps in which captures are counted: 134 ms. */
#define SONDE_OFF_WINDOW_SHIFT 27

/*
 * Captures in a window beyond which the next ones become half as likely: of one thread, and of
 * one CPU. So a thread comes to at most 120 a second, a CPU to 950, and a burst to
 * SONDE_OFF_STEP more with each doubling of its rate.
 */
#define SONDE_OFF_THREAD_CAPTURES 16
#define SONDE_OFF_CPU_CAPTURES 128
#define SONDE_OFF_STEP 4
#define SONDE_OFF_MAX_SHIFT 20 /* one in a million */

/*
 * Places (reason, user pc and sp) at which the thread left the CPU lately. One that was not captured
 * in the last window is captured for sure, so that rare long waits beside many short ones have stacks; so
 * many times in a window.
 */
#define SONDE_OFF_SITES 8 /* a power of two */
#define SONDE_OFF_SURE 4

struct sonde_off_site {
	__u32 hash;
	__u32 window;
};

/*
 * What a thread's record said when the window that is being read ended, kept at its first change after that:
 * threads are read one after the other, and on a busy machine much may happen meanwhile.
 */
struct sonde_off_flip {
	__u64 ns[SONDE_SCHED_STATE_MASK + 1];
	__u64 since;
	__u64 exec;
	__u64 process, cgroup, name, user_stack, kernel_stack;
	__u32 state;
	__u32 weight;
};

/* The value of `threads` when stacks are taken; without them only its beginning is there. */
struct sonde_off_thread {
	struct sonde_sched_thread t;
	__u64 process; /* ids of the stack that was taken when it left the CPU last */
	__u64 cgroup;
	__u64 name; /* of the thread, or 0 */
	__u64 user_stack;
	__u64 kernel_stack;
	__u32 weight; /* so many departures the stack stands for; 0: none was taken */
	__u32 is_target;
	__u32 window; /* number of the present one */
	__u32 captures; /* in it */
	__u32 sure;     /* of these */
	__u32 shift;    /* captured with probability 1 / (1 << shift) */
	__u32 took_ns;  /* what the capture took, until the interval after it is over */
	__u32 epoch;    /* number of the window in which the record was changed last */
	struct sonde_off_site sites[SONDE_OFF_SITES];
	struct sonde_off_flip flip;
};

/* `strata_0`, `strata_1`: two halves, as of the counts: for windows of even and odd numbers. */
struct sonde_stratum_key {
	__u64 row; /* sonde_off_row */
	__u32 state; /* enum sonde_sched_state */
	__u32 bucket;
};

struct sonde_stratum {
	__u64 count; /* intervals that ended */
	__u64 ns;    /* of them, since the window began */
	__u64 max_ns; /* the longest, whole */
};

/* `off_counts_0`, `off_counts_1`. */
struct sonde_off_key {
	struct sonde_stratum_key stratum;
	__u64 process; /* ids of records, as in struct sonde_count_key */
	__u64 cgroup;
	__u64 thread;
	__u64 user_stack;
	__u64 kernel_stack;
};

/*
 * User space makes counts of kind SONDE_KIND_OFF_CPU (waits that ended, nanoseconds) and
 * SONDE_KIND_OFF_MAX (weight: the longest wait) out of these. In the detail of such a count: a
 * wait of 134 ms or longer, as those of idle workers are.
 */
#define SONDE_OFF_LONG 256
#define SONDE_OFF_LONG_BUCKET 18

struct sonde_off_count {
	__u64 captures;
	__u64 count; /* departures they stand for */
	__u64 ns;    /* lengths, times what each stands for */
	__u64 max_ns;
};

#define SONDE_OFF_COUNTERS(X) \
	X(DEPARTURES, "departures", "times that a thread left a CPU, of targets") \
	X(CAPTURES, "captures", "stacks taken of them") \
	X(STRATA_FULL, "strata_full", "intervals without room for their stratum: [no stack]") \
	X(COUNTS_FULL, "stacks_full", "intervals whose stack found no room: [no stack]") \
	X(REFUSED, "refused", "stacks that the ring refused")

enum sonde_off_counter {
#define X(id, name, text) SONDE_OFF_COUNT_##id,
	SONDE_OFF_COUNTERS(X)
#undef X
	SONDE_OFF_COUNTER_COUNT
};

/* What the accounts of a thread said before something happened to it. */
struct sonde_off_before {
	__u64 ns, throttled, preempted;
	__u32 state;
	__u32 pad;
};

/* Per CPU; with memory of the programs, whose stacks are small. */
struct sonde_off_cpu {
	__u64 counters[SONDE_OFF_COUNTER_COUNT];
	__u32 window;
	__u32 captures;
	__u32 shift;
	__u32 pad;
	struct sonde_off_key key;
	struct sonde_stratum stratum;
	struct sonde_off_count count;
	struct sonde_off_before before;
	__u64 regs[4]; /* those that tell where user space was left */
};

/* Fixed before loading. */
struct sonde_off_settings {
	__u64 min_ns; /* shorter intervals are not looked at */
	__u32 states; /* bits of enum sonde_sched_state that are */
	__u32 thread_names;
};

/* A multiply and a fold for each word, as of all ids; without a seed, since both sides make them. */
static inline __u64 sonde_off_hash(__u64 h, __u64 word)
{
	h = (h ^ word) * 0x9fb21c651e98df25ULL;
	return h ^ (h >> 29);
}

/* The row of a thread's record: what agent/sched keeps apart, when it does not keep threads apart. */
static inline __u64 sonde_off_row(const struct sonde_sched_thread *t)
{
	__u64 h = sonde_off_hash(t->process_start_ns, t->cgroup);

	return sonde_off_hash(h, (__u64)t->exec_id << 32 | t->tgid);
}

_Static_assert(sizeof(struct sonde_off_thread) == sizeof(struct sonde_sched_thread) + 328, "abi");
_Static_assert(sizeof(struct sonde_off_key) == 56, "abi");
_Static_assert(sizeof(struct sonde_stratum_key) == 16, "abi");

#endif
