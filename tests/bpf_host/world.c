/* SPDX-License-Identifier: Apache-2.0 */
/* Builds files, cgroups and processes; see world.h. */
#include "world.h"

#include <stdlib.h>

#include "host_private.h"

enum { PF_KTHREAD = 0x00200000, MAX_NS_LEVELS = 8 };

/* Plain struct and flavour as the loader would find them in one kernel object. */
struct world_inode {
	struct inode plain;
	_Alignas(HOST_FLAVOUR_OFFSET) union {
		struct inode___sec sec;
		struct inode___private private;
		struct inode___plain plain;
	} flavour;
};

struct world_kernfs {
	struct kernfs_node plain;
	_Alignas(HOST_FLAVOUR_OFFSET) union {
		struct kernfs_node___parent parent;
		struct kernfs_node___rcu rcu;
	} flavour;
};

struct world_mm {
	struct mm_struct plain;
	_Alignas(HOST_FLAVOUR_OFFSET) struct mm_struct___rb rb;
};

struct world_vma {
	struct vm_area_struct plain;
	_Alignas(HOST_FLAVOUR_OFFSET) struct vm_area_struct___rb rb;
};

struct world_pid {
	struct pid pid;
	struct upid more[MAX_NS_LEVELS];
};

static char *text(const char *s, size_t len)
{
	char *copy = kernel_alloc(len + 1);

	memcpy(copy, s, len);
	return copy;
}

/* ---- files ---- */

static struct dentry *dentry_new(struct dentry *parent, const char *name, size_t len)
{
	struct dentry *d = kernel_alloc(sizeof(*d));

	d->d_parent = kernel_ptr(parent ? parent : d);
	d->d_name.name = kernel_ptr(text(name, len));
	return d;
}

struct file *world_file(__u32 dev, __u64 ino, const char *path)
{
	struct dentry *dentry = dentry_new(NULL, "/", 1);
	struct world_inode *inode = kernel_alloc(sizeof(*inode));
	struct super_block *sb = kernel_alloc(sizeof(*sb));
	struct file *file = kernel_alloc(sizeof(*file));

	while (*path == '/') {
		size_t len = strcspn(++path, "/");

		dentry = dentry_new(dentry, path, len);
		path += len;
	}
	sb->s_dev = dev;
	inode->plain.i_sb = kernel_ptr(sb);
	inode->plain.i_ino = ino;
	inode->plain.i_generation = 7;
	file->f_path.dentry = kernel_ptr(dentry);
	file->f_inode = kernel_ptr(inode);
	world_file_set_mtime(file, 1700000000, 5);
	return file;
}

struct inode *world_inode(struct file *file)
{
	return host_ptr((__u64)file->f_inode);
}

void world_file_set_mtime(struct file *file, __s64 sec, __u64 nsec)
{
	struct world_inode *inode = (struct world_inode *)world_inode(file);
	struct timespec64 ts = { .tv_sec = sec, .tv_nsec = (long)nsec };

	memset(&inode->flavour, 0, sizeof(inode->flavour));
	if (host.mtime == HOST_MTIME_PLAIN)
		inode->flavour.plain.i_mtime = ts;
	else if (host.mtime == HOST_MTIME_PRIVATE)
		inode->flavour.private.__i_mtime = ts;
	else
		inode->flavour.sec = (struct inode___sec){ sec, (u32)nsec };
}

/* ---- cgroups ---- */

struct cgroup *world_cgroup(struct cgroup *parent, int hierarchy, __u64 id, const char *name)
{
	struct world_kernfs *node = kernel_alloc(sizeof(*node));
	struct cgroup_root *root = kernel_alloc(sizeof(*root));
	struct cgroup *group = kernel_alloc(sizeof(*group));

	node->plain.name = kernel_ptr(text(name, strlen(name)));
	node->plain.id = id;
	if (host.kernfs_rcu_parent)
		node->flavour.rcu.__parent = parent ? parent->kn : NULL;
	else
		node->flavour.parent.parent = parent ? parent->kn : NULL;
	root->hierarchy_id = hierarchy;
	group->kn = kernel_ptr(node);
	group->root = parent ? parent->root : kernel_ptr(root);
	group->level = parent ? parent->level + 1 : 0;
	return group;
}

static struct cgroup_subsys_state *css_new(struct cgroup *group)
{
	struct cgroup_subsys_state *css;

	if (!group)
		return NULL;
	css = kernel_alloc(sizeof(*css));
	css->cgroup = kernel_ptr(group);
	return css;
}

void world_set_cgroups(struct task_struct *task, struct cgroup *v2, struct cgroup *v1_pids,
		       struct cgroup *v1_memory)
{
	struct css_set *set = kernel_alloc(sizeof(*set));

	set->dfl_cgrp = kernel_ptr(v2);
	set->subsys[pids_cgrp_id] = kernel_ptr(css_new(v1_pids));
	set->subsys[memory_cgrp_id] = kernel_ptr(css_new(v1_memory));
	task->cgroups = kernel_ptr(set);
}

/* ---- processes ---- */

struct task_struct *world_leader(const struct task_struct *task)
{
	return host_ptr((__u64)task->group_leader);
}

void world_set_ns_pid(struct task_struct *leader, int level, int nr)
{
	struct world_pid *pid = kernel_alloc(sizeof(*pid));

	assert_in_range(level, 0, MAX_NS_LEVELS - 1);
	pid->pid.level = (unsigned int)level;
	pid->pid.numbers[0].nr = leader->tgid;
	if (level > 0)
		pid->more[level - 1].nr = nr;
	leader->thread_pid = kernel_ptr(pid);
}

static struct task_struct *task_new(int tgid, int tid, const char *comm)
{
	struct task_struct *task = kernel_alloc(sizeof(*task));

	task->tgid = tgid;
	task->pid = tid;
	task->stack = kernel_ptr(kernel_alloc(HOST_KERNEL_STACK_BYTES));
	strncpy(task->comm, comm, sizeof(task->comm) - 1);
	return task;
}

struct task_struct *world_kthread(int tid, const char *comm)
{
	struct task_struct *task = task_new(tid, tid, comm);
	struct cred *cred = kernel_alloc(sizeof(*cred));

	task->flags = PF_KTHREAD;
	task->group_leader = kernel_ptr(task);
	task->real_cred = kernel_ptr(cred);
	world_set_ns_pid(task, 0, 0);
	world_set_cgroups(task, world_cgroup(NULL, 0, 1, ""), NULL, NULL);
	return task;
}

struct task_struct *world_process(int tgid, const char *comm, __u64 start_ns)
{
	struct task_struct *task = world_kthread(tgid, comm);
	struct world_mm *mm = kernel_alloc(sizeof(*mm));

	task->flags = 0;
	task->start_boottime = start_ns;
	task->mm = kernel_ptr(mm);
	return task;
}

struct task_struct *world_thread(struct task_struct *leader, int tid, const char *comm)
{
	struct task_struct *task = kernel_alloc(sizeof(*task));

	*task = *leader;
	task->pid = tid;
	task->start_boottime = leader->start_boottime + 1000000000;
	task->stack = kernel_ptr(kernel_alloc(HOST_KERNEL_STACK_BYTES));
	memset(task->comm, 0, sizeof(task->comm));
	strncpy(task->comm, comm, sizeof(task->comm) - 1);
	return task;
}

void world_set_exe(struct task_struct *task, struct file *exe)
{
	struct mm_struct *mm = host_ptr((__u64)task->mm);

	mm->exe_file = kernel_ptr(exe);
}

/* ---- mappings ---- */

struct vm_area_struct *world_vma(struct world_vmas *vmas, struct task_struct *task, __u64 start,
				 __u64 end, unsigned long flags, struct file *file, __u64 pgoff)
{
	struct world_vma *vma = kernel_alloc(sizeof(*vma));

	assert_true(vmas->count < WORLD_MAX_VMAS);
	assert_true(start < end);
	assert_true(vmas->count == 0 || vmas->list[vmas->count - 1]->vm_end <= start);
	vma->plain = (struct vm_area_struct){ .vm_start = start,
					      .vm_end = end,
					      .vm_mm = task->mm,
					      .vm_flags = flags,
					      .vm_pgoff = pgoff,
					      .vm_file = kernel_ptr(file) };
	vmas->list[vmas->count++] = &vma->plain;
	return &vma->plain;
}

void world_map(struct task_struct *task, const struct world_vmas *vmas)
{
	struct world_mm *mm = host_ptr((__u64)task->mm);

	if (host.maple)
		mm->plain.mm_mt.ma_root = (void *)world_maple_root(vmas, &mm->plain.mm_mt);
	else
		mm->rb.mm_rb.rb_node = (void *)world_rb_root(vmas);
}

/* ---- chance ---- */

static __u64 random_state = 1;

void world_random_seed(__u64 seed)
{
	random_state = seed;
}

/* splitmix64 */
__u64 world_random(void)
{
	__u64 z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}
