/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cgroup of any task, not only of the current one as in facts.bpf.h: a switch asks for that of
 * the next task. The one that tells most: that of v2, unless it is the root there. Sent once,
 * under its id.
 */
#ifndef BPF_SCHED_CGROUP_BPF_H
#define BPF_SCHED_CGROUP_BPF_H

#include "bpf/cgroup.bpf.h"
#include "bpf/file.bpf.h"

/* The accounting's own ring, and which cgroups it has sent there. */
extern struct ring_map sched_ring SEC(".maps");
extern struct seen_facts_map sched_facts SEC(".maps");

static __always_inline __u64 sched_cgroup(struct walk_state *s, struct task_struct *task)
{
	struct sonde_cgroup *record = &s->cgroup_record;
	struct cgroup *v2 = task_cgroup_v2(task), *v1 = task_cgroup_beside(task);
	bool by_v1 = v1 && BPF_CORE_READ(v2, level) <= 0; /* hybrid hosts may use v1 alone */
	struct kernfs_node *node = by_v1 ? BPF_CORE_READ(v1, kn) : BPF_CORE_READ(v2, kn);
	__u64 id = cgroups_id(v2, by_v1 ? v1 : NULL);
	__u32 size = 0, count = 0;
	__u8 sent = 1;

	if (bpf_map_lookup_elem(&sched_facts, &id))
		return id;
	for (int i = 0; i < SONDE_MAX_PATH_NAMES && node; i++) {
		if (!path_append(record->names, &size, BPF_CORE_READ(node, name)))
			break;
		count++;
		node = kernfs_parent(node);
	}
	record->head.type = SONDE_RECORD_CGROUP;
	record->head.id = id;
	record->head.size = path_record_size(__builtin_offsetof(struct sonde_cgroup, names) + size);
	record->names_size = size;
	record->v2_count = by_v1 ? 0 : count;
	record->v1_count = by_v1 ? count : 0;
	if (bpf_ringbuf_output(&sched_ring, record,
			       path_record_size(__builtin_offsetof(struct sonde_cgroup, names) + size),
			       BPF_RB_NO_WAKEUP) ||
	    bpf_map_update_elem(&sched_facts, &id, &sent, BPF_ANY))
		count_one(s->slot, SONDE_COUNT_FACT_RETRY);
	return id;
}

#endif
