/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which tasks are sampled: all, the processes in `targets` and their children, a cgroup, or cgroups
 * that user space chooses by their names: it refuses those it does not want when it is told of
 * them, and until then they are sampled.
 */
#ifndef BPF_TARGET_BPF_H
#define BPF_TARGET_BPF_H

#include "bpf/cgroup.bpf.h"

/*
 * When a process started, in the unit of /proc/<pid>/stat, so that user space can name it:
 * a PID that is used again does not match.
 */
static __always_inline __u64 start_ticks(struct task_struct *task)
{
	return BPF_CORE_READ(task, group_leader, start_boottime) / SONDE_NS_PER_TICK;
}

static __always_inline bool is_target(struct task_struct *task, __u32 tgid)
{
	__u64 *ticks = bpf_map_lookup_elem(&targets, &tgid);

	return ticks && *ticks == start_ticks(task);
}

static __always_inline bool target_matches(struct walk_state *s, struct task_struct *task)
{
	if (settings.target_mode == SONDE_TARGET_ALL)
		return true;
	if (settings.target_mode == SONDE_TARGET_PROCESSES)
		return is_target(task, s->tgid);
	if (settings.target_mode == SONDE_TARGET_CGROUPS)
		return !cgroup_is_refused(task);
	return cgroup_is_below(settings.target_v1 ? task_cgroup_v1(task) : task_cgroup_v2(task),
			       settings.target_cgroup);
}

#endif
