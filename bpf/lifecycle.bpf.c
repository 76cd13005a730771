/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Follows the children of target processes. Attached only when some processes are targets. */
#include "bpf/target.bpf.h"

#include <bpf/bpf_tracing.h>

SEC("tp_btf/sched_process_fork")
int BPF_PROG(sonde_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_tgid = BPF_CORE_READ(parent, tgid), tgid = BPF_CORE_READ(child, tgid);
	__u64 ticks;

	if (tgid == parent_tgid || !is_target(parent, parent_tgid))
		return 0;
	ticks = start_ticks(child);
	if (bpf_map_update_elem(&targets, &tgid, &ticks, BPF_ANY))
		count_one(SONDE_CONTEXT_TRACEPOINT, SONDE_COUNT_TARGETS_FULL);
	return 0;
}

/* Runs when the task is released for good, so samples of its last moments still match. */
SEC("tp_btf/sched_process_free")
int BPF_PROG(sonde_free, struct task_struct *task)
{
	__u32 tgid = BPF_CORE_READ(task, tgid);

	if (BPF_CORE_READ(task, pid) == tgid && is_target(task, tgid))
		bpf_map_delete_elem(&targets, &tgid);
	return 0;
}
