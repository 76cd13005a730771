/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What happens to processes: exec, so that the new program's unwind table is being built before
 * the first sample meets it; fork and free, to follow the children of target processes (attached
 * only when some processes are targets).
 */
#include "bpf/file.bpf.h"
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
		count_one(SONDE_SLOT_TRACEPOINT, SONDE_COUNT_TARGETS_FULL);
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

SEC("tp_btf/sched_process_exec")
int BPF_PROG(sonde_exec, struct task_struct *task)
{
	struct walk_state *s = walk_state(SONDE_CONTEXT_TRACEPOINT);
	__u64 pid_tgid = bpf_get_current_pid_tgid(), id;
	struct file *exe = BPF_CORE_READ(task, mm, exe_file);
	__u8 announced = 1;

	if (!s || !exe)
		return 0;
	s->context = SONDE_CONTEXT_TRACEPOINT;
	s->slot = SONDE_SLOT_TRACEPOINT;
	s->tgid = pid_tgid >> 32;
	s->tid = (__u32)pid_tgid;
	if (!target_matches(s, task) || file_identity_read(s, exe))
		return 0;
	id = file_identity_hash(s);
	if (bpf_map_lookup_elem(&files, &id) || bpf_map_lookup_elem(&exec_files, &id))
		return 0;
	if (file_announce(s, exe, id, 0, 0) ||
	    bpf_map_update_elem(&exec_files, &id, &announced, BPF_ANY))
		count_one(SONDE_SLOT_TRACEPOINT, SONDE_COUNT_FILE_RETRY);
	return 0;
}
