/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* In which cgroups a task is, and how cgroups lie below one another. */
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

/* The same where it says anything that v2 does not, else NULL. */
static __always_inline struct cgroup *task_cgroup_beside(struct task_struct *task)
{
	struct cgroup *v1 = task_cgroup_v1(task);

	if (!v1 || BPF_CORE_READ(v1, level) <= 0 || BPF_CORE_READ(v1, root, hierarchy_id) == 0)
		return NULL;
	return v1;
}

/* The id of a task's place in both hierarchies: that of its cgroup record. */
static __always_inline __u64 cgroups_id(struct cgroup *v2, struct cgroup *v1)
{
	__u64 id = hash_step(settings.seed + 2, BPF_CORE_READ(v2, kn, id));

	if (v1) {
		id = hash_step(id, BPF_CORE_READ(v1, kn, id));
		id = hash_step(id, BPF_CORE_READ(v1, root, hierarchy_id));
	}
	return id;
}

/* Whether user space has looked at the task's cgroup and does not want it. Sends nothing. */
static __always_inline bool cgroup_is_refused(struct task_struct *task)
{
	__u64 id = cgroups_id(task_cgroup_v2(task), task_cgroup_beside(task));
	__u8 *state = bpf_map_lookup_elem(&seen_facts, &id);

	return state && *state == SONDE_FACT_REFUSED;
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
