/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes, mappings, files and cgroups in simulated kernel memory. All functions take and
 * return host pointers; inside the objects are kernel addresses.
 */
#ifndef TESTS_BPF_HOST_WORLD_H
#define TESTS_BPF_HOST_WORLD_H

#include "host.h"

enum { WORLD_MAX_VMAS = 6000, WORLD_VM_EXEC = 4, WORLD_VM_READ = 1 };

/* ---- files and cgroups ---- */

/* A file at "/a/b/c" of a file system of its own device number. */
struct file *world_file(__u32 dev, __u64 ino, const char *path);
void world_file_set_mtime(struct file *file, __s64 sec, __u64 nsec);
struct inode *world_inode(struct file *file);

/* A group below `parent`; NULL: a hierarchy's root. 0 is the number of the v2 hierarchy. */
struct cgroup *world_cgroup(struct cgroup *parent, int hierarchy, __u64 id, const char *name);

/* ---- processes ---- */

/* A process with address space, root cgroup of v2, one thread. */
struct task_struct *world_process(int tgid, const char *comm, __u64 start_ns);
struct task_struct *world_kthread(int tid, const char *comm);
struct task_struct *world_thread(struct task_struct *leader, int tid, const char *comm);
void world_set_ns_pid(struct task_struct *leader, int level, int nr);
void world_set_cgroups(struct task_struct *task, struct cgroup *v2, struct cgroup *v1_pids,
		       struct cgroup *v1_memory);
void world_set_exe(struct task_struct *task, struct file *exe);
struct task_struct *world_leader(const struct task_struct *task);

/* ---- mappings ---- */

/* The mappings of a process in preparation: fill, then world_map. */
struct world_vmas {
	struct vm_area_struct *list[WORLD_MAX_VMAS]; /* by address */
	size_t count;
};

/* `file` NULL: anonymous. Mappings must be added in order of their addresses. */
struct vm_area_struct *world_vma(struct world_vmas *vmas, struct task_struct *task, __u64 start,
				 __u64 end, unsigned long flags, struct file *file, __u64 pgoff);

/* Gives the process these mappings, in the kind of tree that host.maple says. */
void world_map(struct task_struct *task, const struct world_vmas *vmas);

/* ---- maple trees, byte by byte (tree.c) ---- */

enum world_node_type { WORLD_LEAF_64 = 1, WORLD_RANGE_64 = 2, WORLD_ARANGE_64 = 3 };

/* How to build: nodes hold at least min_slots (2..), at most max_slots entries (0: all). */
struct world_tree_shape {
	unsigned int min_slots, max_slots;
	enum world_node_type inner; /* of nodes that are no leaves */
};

extern struct world_tree_shape world_shape; /* what world_map uses */
extern unsigned int world_depth;            /* of the tree built last */

__u64 world_maple_root(const struct world_vmas *vmas, const void *tree);
__u64 world_rb_root(const struct world_vmas *vmas);

/* A small generator that is the same everywhere. */
__u64 world_random(void);
void world_random_seed(__u64 seed);

#endif
