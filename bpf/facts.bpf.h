/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Facts about a sampled task that may be gone a millisecond later: its process, the name of its
 * thread, its cgroup. Each is sent once, under an id that the counts refer to.
 *
 * A process is (tgid, start time, exec id, name): neither PID reuse nor exec can mix two. When a
 * record is refused the id is returned all the same, and the next sample sends it again.
 *
 * Sending is rare, and most of what a sample costs is fetching cold code and data (a stack of four
 * frames took 1.6 us at best, 11 us in the median when 10 ms apart). So it is done by functions
 * of their own, global ones, which the verifier checks once.
 */
#ifndef BPF_FACTS_BPF_H
#define BPF_FACTS_BPF_H

#include "bpf/ask.bpf.h"
#include "bpf/cgroup.bpf.h"

static __always_inline bool fact_is_known(__u64 id)
{
	return bpf_map_lookup_elem(&seen_facts, &id) != 0;
}

static __always_inline void fact_send(struct walk_state *s, struct sonde_record *record,
				      __u64 size)
{
	__u64 id = record->id;
	__u8 sent = SONDE_FACT_SENT;

	record->size = size;
	if (bpf_ringbuf_output(&ring, record, size, BPF_RB_NO_WAKEUP) ||
	    bpf_map_update_elem(&seen_facts, &id, &sent, BPF_ANY))
		count_one(s->slot, SONDE_COUNT_FACT_RETRY);
}

/* The file id of the process's executable, announced if new; 0 for kernel threads. */
static __always_inline __u64 exe_file_id(struct walk_state *s, struct task_struct *task)
{
	struct file *exe = BPF_CORE_READ(task, mm, exe_file);
	__u64 id;

	if (!exe || file_identity_read(s, exe))
		return 0;
	id = file_identity_hash(s);
	file_state(s, exe, id, 0, 0);
	return id;
}

/* The process id inside the innermost pid namespace, by which a JIT names its perf map. */
static __always_inline __u32 ns_tgid(struct task_struct *leader)
{
	struct pid *pid = BPF_CORE_READ(leader, thread_pid);
	__u64 level = BPF_CORE_READ(pid, level);
	__u64 at = (__u64)pid + bpf_core_field_offset(struct pid, numbers) +
		   level * bpf_core_type_size(struct upid) + bpf_core_field_offset(struct upid, nr);
	__u32 nr = 0;

	bpf_probe_read_kernel(&nr, sizeof(nr), (void *)at);
	return nr;
}

/* Sends the record of the current task's process; what process_fact set is there. */
__noinline int process_send(__u32 context)
{
	struct task_struct *leader, *task = (struct task_struct *)bpf_get_current_task();
	struct walk_state *s = walk_state(context);

	if (!s)
		return 0;
	leader = BPF_CORE_READ(task, group_leader);
	s->process_record.head.type = SONDE_RECORD_PROCESS;
	s->process_record.exe_file = exe_file_id(s, task);
	s->process_record.ns_tgid = ns_tgid(leader);
	s->process_record.euid = BPF_CORE_READ(leader, real_cred, euid.val);
	fact_send(s, &s->process_record.head, sizeof(s->process_record));
	return 0;
}

static __always_inline __u64 process_fact(struct walk_state *s, struct task_struct *task)
{
	struct sonde_process *record = &s->process_record;
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	__u64 comm[2], id;

	record->tgid = s->tgid;
	record->tid = s->tid;
	record->start_ns = BPF_CORE_READ(leader, start_boottime);
	record->exec_id = BPF_CORE_READ(task, self_exec_id);
	/* Its name too, so that a process which renames itself is sent anew. */
	BPF_CORE_READ_INTO(&record->comm, leader, comm);
	__builtin_memcpy(comm, record->comm, sizeof(comm));
	id = hash_step(hash_step(settings.seed, record->start_ns),
		       (__u64)record->exec_id << 32 | s->tgid);
	id = hash_step(hash_step(id, comm[0]), comm[1]);
	if (fact_is_known(id))
		return id;
	record->head.id = id;
	process_send(s->context);
	return id;
}

static __always_inline __u64 thread_fact(struct walk_state *s)
{
	struct sonde_thread_name *record = &s->thread_record;
	__u64 words[2], id;

	bpf_get_current_comm(record->comm, sizeof(record->comm));
	/* The bytes behind the NUL are zero: the kernel pads. */
	__builtin_memcpy(words, record->comm, sizeof(words));
	id = hash_step(hash_step(settings.seed + 1, words[0]), words[1]);
	if (fact_is_known(id))
		return id;
	record->head.type = SONDE_RECORD_THREAD_NAME;
	record->head.id = id;
	fact_send(s, &record->head, sizeof(*record));
	return id;
}

/* Appends the names of a cgroup (its kernfs node) and its parents to the record; returns how many. */
__noinline int cgroup_names(__u32 context, __u64 cgroup_node)
{
	struct kernfs_node *node = (struct kernfs_node *)cgroup_node;
	struct walk_state *s = walk_state(context);
	struct sonde_cgroup *record;
	__u32 size, count = 0;

	if (!s)
		return 0;
	record = &s->cgroup_record;
	size = record->names_size;
	for (int i = 0; i < SONDE_MAX_PATH_NAMES && node; i++) {
		if (!path_append(record->names, &size, BPF_CORE_READ(node, name)))
			break;
		count++;
		node = kernfs_parent(node);
	}
	record->names_size = size;
	return (int)count;
}

/* Sends the record of the current task's cgroup; what cgroup_fact set is there. */
__noinline int cgroup_send(__u32 context)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct cgroup *v2 = task_cgroup_v2(task), *v1 = task_cgroup_beside(task);
	struct walk_state *s = walk_state(context);
	struct sonde_cgroup *record;
	__u64 size;

	if (!s)
		return 0;
	record = &s->cgroup_record;
	record->head.type = SONDE_RECORD_CGROUP;
	record->names_size = 0;
	record->v2_count = cgroup_names(context, (__u64)BPF_CORE_READ(v2, kn));
	record->v1_count = v1 ? cgroup_names(context, (__u64)BPF_CORE_READ(v1, kn)) : 0;
	size = path_record_size(__builtin_offsetof(struct sonde_cgroup, names) + record->names_size);
	fact_send(s, &record->head, size);
	return 0;
}

static __always_inline __u64 cgroup_fact(struct walk_state *s, struct task_struct *task)
{
	__u64 id = cgroups_id(task_cgroup_v2(task), task_cgroup_beside(task));

	if (fact_is_known(id))
		return id;
	s->cgroup_record.head.id = id;
	cgroup_send(s->context);
	return id;
}

#endif
