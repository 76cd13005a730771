/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The contract of the scheduler accounting: what a thread can be doing, the record that the kernel
 * side keeps for each thread, and what it counts besides. Both sides include it; like abi.h it
 * needs __u32/__u64 to be defined.
 */
#ifndef BPF_SCHED_ABI_H
#define BPF_SCHED_ABI_H

#include "bpf/abi.h"

/*
 * What a thread can be doing: at any moment exactly one of these. id, state, reason, text.
 * Blocked ones come last; their reason is that of the moment at which the thread left the CPU.
 */
#define SONDE_SCHED_STATES(X) \
	X(RUNNING, "on_cpu", "", "on a CPU (what hypervisor and interrupts took is apart)") \
	X(WOKEN, "runnable", "woken", "waiting for a CPU after a wake-up") \
	X(PREEMPTED, "runnable", "preempted", "waiting for a CPU after losing one, or after a yield") \
	X(THROTTLED, "throttled", "quota", "held back by the CPU quota of a cgroup") \
	X(DISK, "blocked", "disk", "uninterruptible, for block I/O") \
	X(UNINTERRUPTIBLE, "blocked", "uninterruptible", "uninterruptible, for something else") \
	X(LOCK, "blocked", "lock", "futex, file lock or semaphore") \
	X(POLL, "blocked", "poll", "epoll, poll, select, io_uring") \
	X(SOCKET, "blocked", "socket", "a socket's peer") \
	X(PIPE, "blocked", "pipe", "the other end of a pipe") \
	X(SLEEP, "blocked", "sleep", "a timer that it asked for") \
	X(CHILD, "blocked", "child", "a child's end or, after vfork, exec") \
	X(FAULT, "blocked", "page_fault", "the page that it touched") \
	X(STOPPED, "blocked", "stopped", "stopped by a signal, a tracer or the freezer") \
	X(OTHER, "blocked", "other", "anything else: terminals, signals, kernel threads at rest")

enum sonde_sched_state {
#define X(id, state, reason, text) SONDE_SCHED_##id,
	SONDE_SCHED_STATES(X)
#undef X
	SONDE_SCHED_STATE_COUNT
};

#define SONDE_SCHED_FIRST_BLOCKED SONDE_SCHED_DISK
#define SONDE_SCHED_STATE_MASK 15 /* states fit under it: for the verifier */

/*
 * Histograms of durations: bucket 0 is below 1024 ns, bucket i from 2^(9+i) ns up to twice
 * that, the last is open.
 */
#define SONDE_SCHED_BUCKETS 28
#define SONDE_SCHED_FIRST_SHIFT 10

/* What is counted besides, per CPU. */
#define SONDE_SCHED_COUNTERS(X) \
	X(THREADS_FULL, "threads_full", "threads that found no room: in the overflow row") \
	X(ADOPTED, "adopted", "threads that found room later") \
	X(ENDS_REFUSED, "ends_refused", "ended threads that the ring refused: in the overflow row") \
	X(MERGED, "merged", "changes of program or cgroup that the ring refused: old and new are one row") \
	X(CGROUP_RETRY, "cgroup_retry", "records of cgroups that the ring refused") \
	X(BACKWARDS, "backwards", "intervals that ended before they began: counted as 0") \
	X(UNSEEN, "unseen", "wake-ups and switches that no program saw: set right at the next one") \
	X(STALE, "stale", "records of threads whose end was not seen")

enum sonde_sched_counter {
#define X(id, name, text) SONDE_SCHED_COUNT_##id,
	SONDE_SCHED_COUNTERS(X)
#undef X
	SONDE_SCHED_COUNTER_COUNT
};

/* The longest wait for a CPU, in two slots by parity of the epoch that user space counts up. */
struct sonde_sched_max {
	__u64 ns;
	__u32 epoch;
	__u32 pad;
};

/*
 * A thread: value of the map `threads`, and as a record of the ring when the thread has ended or
 * has become another row (exec, another cgroup). All that counts only grows within a segment.
 * While the record is whole, the sum of ns[] is `since` - `birth`: by that a reader of a record
 * in use sees whether it has read it in mid-update. Hot fields first.
 */
struct sonde_sched_thread {
	struct sonde_record head; /* type SONDE_RECORD_SCHED_THREAD; id: enum sonde_sched_end */
	__u64 since;         /* start of the interval that is open; CLOCK_MONOTONIC */
	__u64 css;           /* kernel's set of cgroups when `cgroup` was found: opaque */
	__u64 off_since;     /* left the CPU; 0: not seen */
	__u64 throttle_base; /* throttled time of its run queue when it became runnable */
	__u64 queue;         /* that run queue: opaque */
	__u32 state;         /* of the open interval */
	__u32 reason;        /* of the last wait other than stopped: restart_syscall goes on with it */
	__u64 exec;          /* its sum_exec_runtime, as last seen */
	__u64 exec_birth;    /* at the start of the segment */
	__u64 exec_at;       /* exec'ed then, not yet taken note of; 0: no */
	__u64 moved_at;      /* when it, or the process that it leads, last changed its cgroup; 0: not */
	__u64 birth;         /* start of the segment */
	__u32 migrations;    /* the kernel's count of its moves between CPUs, as last seen */
	__u32 migrations_birth;
	__u32 segment;       /* 0, 1, ... of the thread */
	__u32 flags;         /* SONDE_SCHED_* below */
	__u64 ns[SONDE_SCHED_STATE_MASK + 1];
	__u32 entries[SONDE_SCHED_STATE_MASK + 1]; /* how often each state was entered */
	__u64 delay_ns;      /* waits for a CPU that are over, without throttling */
	__u32 delay[SONDE_SCHED_BUCKETS]; /* these */
	__u32 off[SONDE_SCHED_BUCKETS];   /* from leaving the CPU to the return */
	__u64 off_ns;                     /* these, added up */
	struct sonde_sched_max max[2];

	__u64 start_ns;         /* CLOCK_BOOTTIME */
	__u64 process_start_ns; /* of its process */
	__u64 cgroup;           /* id of a cgroup record */
	__u32 tid;
	__u32 tgid;
	__u32 exec_id;
	__u32 pad;
	char comm[SONDE_COMM_LEN];
};

#define SONDE_SCHED_KERNEL_THREAD 1
#define SONDE_SCHED_SEEDED 2 /* was there before the accounting began */

/* Far from the types of abi.h, whose list grows. */
#define SONDE_RECORD_SCHED_THREAD 64

enum sonde_sched_end {
	SONDE_SCHED_LIVE,    /* in the map */
	SONDE_SCHED_SEGMENT, /* goes on under another name or cgroup */
	SONDE_SCHED_ENDED,
};

/*
 * Per CPU. The overflow row: threads without room are known by their number and by the sum of
 * the times when they came and went, so that their lifetimes still add up; of those times only
 * the part on a CPU is told apart.
 */
struct sonde_sched_cpu {
	__u64 untracked_at; /* an untracked thread runs here since; 0: none */
	__u64 untracked_on_cpu_ns;
	__u64 untracked_births;
	__u64 untracked_birth_ns; /* sums of clock readings: differences wrap around rightly */
	__u64 untracked_deaths;
	__u64 untracked_death_ns;
	__u64 refused_ns[SONDE_SCHED_STATE_MASK + 1]; /* of threads whose end the ring refused */
	__u64 counters[SONDE_SCHED_COUNTER_COUNT];
	__u64 runs;
	__u64 timed_ns; /* of one run in SONDE_SCHED_TIMED: what all this costs */
};

/* `syscall_reasons`: enum sonde_sched_state, or this: what the first argument's file is. */
#define SONDE_SCHED_BY_FILE 255
#define SONDE_SCHED_RESTART 254 /* as before: restart_syscall */
#define SONDE_SCHED_SYSCALLS 512

#define SONDE_SCHED_TIMED 64 /* a power of two */

_Static_assert(SONDE_SCHED_STATE_COUNT <= SONDE_SCHED_STATE_MASK + 1, "abi");
_Static_assert(__builtin_offsetof(struct sonde_sched_thread, ns) == 120, "abi");
_Static_assert(sizeof(struct sonde_sched_thread) == 640, "abi");

#endif
