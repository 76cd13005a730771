/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the look-up alone: one process, its mappings, and a question. */
#ifndef TESTS_BPF_HOST_VMA_LAB_H
#define TESTS_BPF_HOST_VMA_LAB_H

#include "world.h"

#include "bpf/vma.bpf.h"

enum { PAGE = 4096, DEV = 254 << 20 | 1 };

static struct task_struct *task;
static struct walk_state *walk;
static struct world_vmas vmas;
static struct file *file;

static inline void begin(bool maple)
{
	host_reset();
	host.maple = maple;
	vmas.count = 0;
	world_shape = (struct world_tree_shape){ 2, 0, WORLD_ARANGE_64 };
	task = world_process(100, "test", 1);
	file = world_file(DEV, 4711, "/usr/lib/libx.so");
	walk = walk_state(SONDE_CONTEXT_PERF);
	walk->mm = (__u64)task->mm;
}

static inline struct vm_area_struct *map_file(__u64 start, __u64 end, __u64 pgoff)
{
	return world_vma(&vmas, task, start, end, WORLD_VM_EXEC, file, pgoff);
}

static inline int look_up(__u64 addr)
{
	walk->addr = addr;
	memset(&walk->vma, 0xa5, sizeof(walk->vma));
	return vma_find(SONDE_CONTEXT_PERF);
}

static inline struct mm_struct *mm_of_task(void)
{
	return host_ptr(walk->mm);
}

static inline __u64 *root_node(void)
{
	return host_ptr((__u64)mm_of_task()->mm_mt.ma_root & ~0xffULL);
}

static inline void one_mapping(bool maple)
{
	begin(maple);
	world_shape = (struct world_tree_shape){ 16, 16, WORLD_ARANGE_64 };
	map_file(0x1000000, 0x1003000, 3);
	world_map(task, &vmas);
	assert_int_equal(look_up(0x1001234), VMA_FOUND);
}

#endif
