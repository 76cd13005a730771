/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Throttling by a CPU quota. Nothing traces its end, but each run queue of a cgroup keeps the sum
 * of the times for which it was throttled: what that grew by during a thread's wait is the
 * throttled part of the wait. The sum is in the scheduler's clocks, which on some machines run
 * slower than ours; it is never taken for more than the wait.
 */
#ifndef BPF_SCHED_THROTTLE_BPF_H
#define BPF_SCHED_THROTTLE_BPF_H

#include <bpf/bpf_core_read.h>

#include "bpf/sched_state.bpf.h"

#define MAX_RT_PRIO 100 /* below it: real-time classes, which know no such quota */

/* The run queue whose quota may hold the task back; NULL: none can (the root group has none). */
static __always_inline struct cfs_rq *quota_queue(struct task_struct *task)
{
	struct cfs_rq *queue = NULL;

	if (!bpf_core_field_exists(task->se.cfs_rq) || !bpf_core_field_exists(queue->throttle_count))
		return NULL;
	if (!task->se.parent || task->prio < MAX_RT_PRIO)
		return NULL;
	return task->se.cfs_rq;
}

/* Throttled time of a run queue so far. */
static __always_inline __u64 throttled_ns(struct cfs_rq *queue)
{
	struct cfs_rq___self *self = (void *)queue;
	struct cfs_rq___pelt *pelt = (void *)queue;
	struct cfs_rq___task *old = (void *)queue;
	__u64 now, since, sum;

	if (bpf_core_field_exists(self->throttled_clock_self_time)) {
		sum = self->throttled_clock_self_time;
		since = self->throttled_clock_self;
		return since ? sum + queue->rq->clock - since : sum;
	}
	if (bpf_core_field_exists(pelt->throttled_clock_pelt_time)) {
		sum = pelt->throttled_clock_pelt_time;
		since = pelt->throttled_clock_pelt;
		now = queue->rq->clock_pelt - queue->rq->lost_idle_time;
	} else {
		sum = old->throttled_clock_task_time;
		since = old->throttled_clock_task;
		now = queue->rq->clock_task;
	}
	return queue->throttle_count ? sum + now - since : sum;
}

static __always_inline bool is_throttled(struct task_struct *task)
{
	struct task_struct___throttled *new = (void *)task;
	struct cfs_rq *queue = quota_queue(task);

	if (!queue)
		return false;
	if (bpf_core_field_exists(new->throttled))
		return new->throttled;
	return queue->throttle_count > 0;
}

/* A wait for a CPU begins. */
static __always_inline void throttle_begin(struct sonde_sched_thread *t, struct task_struct *task)
{
	struct cfs_rq *queue = quota_queue(task);

	t->queue = (__u64)queue;
	if (queue)
		t->throttle_base = throttled_ns(queue);
}

/* The throttled part of the wait that ends now. */
static __always_inline __u64 throttle_end(struct sonde_sched_thread *t, struct task_struct *task,
					  __u64 now)
{
	struct cfs_rq *queue;
	__u64 ns;

	if (!t->queue)
		return 0;
	queue = quota_queue(task);
	/* It was moved: the sums of two queues do not compare. */
	if (!queue || (__u64)queue != t->queue)
		return t->state == SONDE_SCHED_THROTTLED ? now - t->since : 0;
	ns = throttled_ns(queue) - t->throttle_base;
	return (__s64)ns < 0 ? 0 : ns;
}

#endif
