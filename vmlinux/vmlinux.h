/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel types that the BPF programs read, for CO-RE; see README.md beside this file. */
#ifndef VMLINUX_H
#define VMLINUX_H

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;

#ifndef __cplusplus
typedef _Bool bool;
#define true 1
#define false 0
#endif

#include "arch.h"

struct bpf_perf_event_data {
	struct arch_regs regs;
	__u64 sample_period;
	__u64 addr;
};

/* Values of user-visible enums: never relocated. */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
};

enum {
	BPF_F_MMAPABLE = 1 << 10,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0, /* what bpf_ringbuf_query tells */
};

/* Asked for by name with bpf_core_enum_value_exists: is this helper known to the kernel? */
enum bpf_func_id {
	BPF_FUNC_task_pt_regs = 175,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct rb_node {
	struct rb_node *rb_right;
	struct rb_node *rb_left;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct maple_tree {
	void *ma_root;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct super_block {
	u32 s_dev;
};

struct inode {
	__u16 i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	u32 i_generation;
};

struct timespec64 {
	s64 tv_sec;
	long tv_nsec;
};

/* 6.11 and later. */
struct inode___sec {
	s64 i_mtime_sec;
	u32 i_mtime_nsec;
};

/* 6.6 to 6.10. */
struct inode___private {
	struct timespec64 __i_mtime;
};

/* Up to 6.5. */
struct inode___plain {
	struct timespec64 i_mtime;
};

struct file {
	struct path f_path;
	struct inode *f_inode;
};

struct mm_struct;

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	struct mm_struct *vm_mm;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct file *vm_file;
};

/* Up to 6.0: the VMAs of a process are a red-black tree. */
struct vm_area_struct___rb {
	struct rb_node vm_rb;
};

struct mm_context {
	void *vdso;
};

struct mm_struct {
	struct maple_tree mm_mt;
	unsigned long start_stack;
	struct mm_context context;
	struct file *exe_file;
};

struct mm_struct___rb {
	struct rb_root mm_rb;
};

struct kernfs_node {
	const char *name;
	u64 id;
};

/* Up to 6.14. */
struct kernfs_node___parent {
	struct kernfs_node *parent;
};

/* 6.15 and later. */
struct kernfs_node___rcu {
	struct kernfs_node *__parent;
};

struct cgroup_root {
	int hierarchy_id;
};

struct cgroup {
	struct kernfs_node *kn;
	struct cgroup_root *root;
	int level;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

/* Which controllers exist, and their numbers, depends on the kernel's configuration. */
enum cgroup_subsys_id {
	cpu_cgrp_id,
	memory_cgrp_id,
	pids_cgrp_id,
};

struct css_set {
	struct cgroup_subsys_state *subsys[16];
	struct cgroup *dfl_cgrp;
};

struct upid {
	int nr;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

typedef struct {
	unsigned int val;
} kuid_t;

struct cred {
	kuid_t euid;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct rq {
	u64 clock;
	u64 clock_task; /* clock_pelt's place up to 5.18, for throttling */
	u64 clock_pelt;
	unsigned long lost_idle_time;
};

/* Fields of CONFIG_CFS_BANDWIDTH. */
struct cfs_rq {
	struct rq *rq;
	int throttle_count;
};

/* 6.6 and later. */
struct cfs_rq___self {
	u64 throttled_clock_self;
	u64 throttled_clock_self_time;
};

/* 5.19 and later. */
struct cfs_rq___pelt {
	u64 throttled_clock_pelt;
	u64 throttled_clock_pelt_time;
};

/* Up to 5.18. */
struct cfs_rq___task {
	u64 throttled_clock_task;
	u64 throttled_clock_task_time;
};

struct sched_entity {
	u64 sum_exec_runtime;
	u64 nr_migrations;
	struct sched_entity *parent;
	struct cfs_rq *cfs_rq;
};

struct sched_info {
	unsigned long long last_queued;
};

/* Up to 5.13. */
struct task_struct___state {
	volatile long state;
};

/* 6.18 and later: throttled one by one, on their way to user space. */
struct task_struct___throttled {
	bool throttled;
};

struct bpf_iter_meta;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

/* On x86. */
struct thread_struct {
	unsigned long fsbase;
};

struct task_struct {
	unsigned int __state;
	unsigned int flags;
	int prio;
	struct sched_entity se;
	struct sched_info sched_info;
	unsigned in_iowait : 1;
	struct files_struct *files;
	void *stack;
	int pid;
	int tgid;
	struct task_struct *group_leader;
	struct mm_struct *mm;
	struct pid *thread_pid;
	u64 start_boottime;
	const struct cred *real_cred;
	char comm[16];
	struct css_set *cgroups;
	u64 self_exec_id;
	struct thread_struct thread;
};

#pragma clang attribute pop

#endif
