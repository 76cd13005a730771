/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which cgroup of a task tells most about it, and how cgroups lie below one another. */
#ifndef BPF_CGROUP_BPF_H
#define BPF_CGROUP_BPF_H

#include <bpf/bpf_core_read.h>

#include "bpf/state.bpf.h"

static __always_inline struct cgroup *task_cgroup_v2(struct task_struct *task)
{
	return BPF_CORE_READ(task, cgroups, dfl_cgrp);
}

/* That of a v1 controller which container runtimes set; where it is on v2, that of v2. */
static __always_inline struct cgroup *task_cgroup_v1(struct task_struct *task)
{
	struct css_set *set = BPF_CORE_READ(task, cgroups);
	struct cgroup_subsys_state *css = NULL;

	if (bpf_core_enum_value_exists(enum cgroup_subsys_id, pids_cgrp_id))
		css = BPF_CORE_READ(set, subsys[bpf_core_enum_value(enum cgroup_subsys_id,
								   pids_cgrp_id)]);
	else if (bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id))
		css = BPF_CORE_READ(set, subsys[bpf_core_enum_value(enum cgroup_subsys_id,
								   memory_cgrp_id)]);
	return css ? BPF_CORE_READ(css, cgroup) : NULL;
}

/*
 * The cgroup that tells most about the task: that of v2, unless it is the root there: hybrid
 * hosts may use v1 alone.
 */
static __always_inline struct cgroup *task_cgroup(struct task_struct *task)
{
	struct cgroup *v2 = task_cgroup_v2(task), *v1;

	if (BPF_CORE_READ(v2, level) > 0)
		return v2;
	v1 = task_cgroup_v1(task);
	return v1 && BPF_CORE_READ(v1, level) > 0 ? v1 : v2;
}

static __always_inline struct kernfs_node *kernfs_parent(struct kernfs_node *node)
{
	struct kernfs_node___parent *plain = (void *)node;
	struct kernfs_node___rcu *rcu = (void *)node;

	if (bpf_core_field_exists(plain->parent))
		return BPF_CORE_READ(plain, parent);
	return BPF_CORE_READ(rcu, __parent);
}

/* Whether `cgroup` is `target` (a kernfs id of the same hierarchy) or lies below it. */
static __always_inline bool cgroup_is_below(struct cgroup *cgroup, __u64 target)
{
	struct kernfs_node *node = BPF_CORE_READ(cgroup, kn);

	for (int i = 0; i < SONDE_MAX_PATH_NAMES && node; i++) {
		if (BPF_CORE_READ(node, id) == target)
			return true;
		node = kernfs_parent(node);
	}
	return false;
}

#endif
