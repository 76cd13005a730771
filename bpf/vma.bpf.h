/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The mapping that holds a user address, found in the kernel's own structures without a lock:
 * a maple tree (6.1 and later) or a red-black tree (before).
 *
 * Nothing stops the writer meanwhile, so each answer is verified: the bounds must hold the
 * address and be sane, the VMA must belong to this mm, and all of it must read the same again
 * after the file's identity was read. A wrong VMA fails one of these; three tries, then
 * VMA_BUSY. On 6.1 a writer that was interrupted on this very CPU has already marked its node
 * dead, so retrying cannot win there: that is counted, and never answered wrongly.
 *
 * Maple node layout (256 bytes, the same in 6.1 to 7.2; lib/maple_tree.c):
 *   leaf_64, range_64: parent @0, pivot[15] @8, slot[16] @128, last 8 bytes: meta (end, gap)
 *   arange_64:         parent @0, pivot[9] @8, slot[10] @80, gap[10] @160, meta @240
 * Only the root pointer carries bit 1. A node is dead when its parent points to itself.
 */
#ifndef BPF_VMA_BPF_H
#define BPF_VMA_BPF_H

#include <bpf/bpf_core_read.h>

#include "bpf/file.bpf.h"
#include "bpf/state.bpf.h"

#define MAPLE_LEAF_64 1
#define MAPLE_RANGE_64 2
#define MAPLE_ARANGE_64 3
#define MAPLE_MAX_DEPTH 10
#define RB_MAX_DEPTH 40
#define LOOKUP_TRIES 3
#define NODE_GONE 1 /* no kernel address */
#define VM_EXEC 4
#define KERNEL_HALF (1ULL << 63)
/* vm_start shares a union with an rcu_head in 6.4 to 6.14: a freed VMA may show a pointer. */
#define USER_END (1ULL << 56)

/*
 * The slot of `addr` in the node at s->node: how many of the first `end` pivots lie below it.
 * Without branches: with them the verifier follows 2^15 paths for each level.
 */
static __always_inline __u64 maple_slot(struct walk_state *s, __u64 end)
{
	__u64 index = 0;

#pragma unroll
	for (int k = 0; k < 15; k++) {
		__u64 pivot = s->node[1 + k];

		/* ~pivot: a pivot may be ULONG_MAX. */
		index += ((pivot - s->addr) & ~pivot & ((__u64)k - end)) >> 63;
	}
	return index;
}

/* The next entry below node `entry`; 0: none; NODE_GONE if the node cannot be used any more. */
static __always_inline __u64 maple_step(struct walk_state *s, __u64 entry, __u64 *ret_type)
{
	__u64 node = entry & ~0xffULL, type = (entry >> 3) & 0xf, end, first;

	*ret_type = type;
	if (type != MAPLE_LEAF_64 && type != MAPLE_RANGE_64 && type != MAPLE_ARANGE_64)
		return 0;
	if (bpf_probe_read_kernel(s->node, sizeof(s->node), (void *)node))
		return NODE_GONE;
	if ((s->node[0] & ~0xffULL) == node)
		return NODE_GONE; /* dead */
	if (type == MAPLE_ARANGE_64) {
		first = 10;
		end = s->node[30] & 0xff;
	} else {
		first = 16;
		end = s->node[15] ? 15 : s->node[31] & 0xff;
	}
	return s->node[(first + maple_slot(s, end)) & 31];
}

/* Candidate VMA for s->addr in s->node[0] (0: none, or VMA_BUSY); not yet verified. */
__noinline int vma_find_maple(__u32 context)
{
	struct walk_state *s;
	struct mm_struct *mm;
	__u64 entry, type;

	if (!bpf_core_field_exists(struct mm_struct, mm_mt))
		return VMA_NO_TREE;
	s = walk_state(context);
	if (!s)
		return VMA_NONE;
	mm = (struct mm_struct *)s->mm;
	entry = (__u64)BPF_CORE_READ(mm, mm_mt.ma_root);
	if ((entry & 3) != 2 || entry < KERNEL_HALF) {
		s->node[0] = 0;
		return VMA_NONE;
	}
	for (int depth = 0; depth < MAPLE_MAX_DEPTH; depth++) {
		entry = maple_step(s, entry, &type);
		if (entry < KERNEL_HALF)
			break;
		if (type == MAPLE_LEAF_64) {
			s->node[0] = entry;
			return VMA_FOUND;
		}
	}
	s->node[0] = 0;
	return entry == NODE_GONE ? VMA_BUSY : VMA_NONE;
}

/* The same in a red-black tree sorted by address. */
__noinline int vma_find_rb(__u32 context)
{
	struct walk_state *s;
	struct mm_struct___rb *mm;
	__u64 node, offset;

	if (!bpf_core_field_exists(struct mm_struct___rb, mm_rb))
		return VMA_NO_TREE;
	s = walk_state(context);
	if (!s)
		return VMA_NONE;
	mm = (struct mm_struct___rb *)s->mm;
	node = (__u64)BPF_CORE_READ(mm, mm_rb.rb_node);
	offset = bpf_core_field_offset(struct vm_area_struct___rb, vm_rb);
	for (int depth = 0; depth < RB_MAX_DEPTH && node; depth++) {
		struct vm_area_struct *vma = (struct vm_area_struct *)(node - offset);
		struct rb_node *rb = (struct rb_node *)node;

		if (BPF_CORE_READ(vma, vm_end) > s->addr) {
			if (BPF_CORE_READ(vma, vm_start) <= s->addr) {
				s->node[0] = (__u64)vma;
				return VMA_FOUND;
			}
			node = (__u64)BPF_CORE_READ(rb, rb_left);
		} else {
			node = (__u64)BPF_CORE_READ(rb, rb_right);
		}
	}
	s->node[0] = 0;
	return VMA_NONE;
}

/* Fills s->vma from a candidate; false if the candidate is wrong or changed meanwhile. */
static __always_inline bool vma_verify(struct walk_state *s, struct vm_area_struct *vma)
{
	struct vma *out = &s->vma;
	struct file *file;

	out->start = BPF_CORE_READ(vma, vm_start);
	out->end = BPF_CORE_READ(vma, vm_end);
	if (out->start == 0 || out->end >= USER_END || s->addr < out->start || s->addr >= out->end)
		return false;
	if ((__u64)BPF_CORE_READ(vma, vm_mm) != s->mm)
		return false;
	out->is_code = BPF_CORE_READ(vma, vm_flags) & VM_EXEC;
	file = BPF_CORE_READ(vma, vm_file);
	if (file) {
		if (file_identity_read(s, file))
			return false;
		out->file = file_identity_hash(s);
		out->delta = (BPF_CORE_READ(vma, vm_pgoff) << settings.page_shift) - out->start;
	} else if (out->start == s->vdso) {
		out->file = SONDE_FRAME_VDSO;
		out->delta = -out->start;
	} else {
		out->file = SONDE_FRAME_ANON;
		out->delta = 0;
	}
	return BPF_CORE_READ(vma, vm_start) == out->start && BPF_CORE_READ(vma, vm_end) == out->end &&
	       (__u64)BPF_CORE_READ(vma, vm_mm) == s->mm && BPF_CORE_READ(vma, vm_file) == file;
}

/* The mapping that holds s->addr into s->vma: VMA_FOUND, VMA_NONE or VMA_BUSY. */
__noinline int vma_find(__u32 context)
{
	struct walk_state *s = walk_state(context);
	bool busy = false;

	if (!s)
		return VMA_NONE;
	for (int try = 0; try < LOOKUP_TRIES; try++) {
		int found = bpf_core_field_exists(struct mm_struct, mm_mt)
				    ? vma_find_maple(context)
				    : vma_find_rb(context);

		if (found == VMA_FOUND && vma_verify(s, (struct vm_area_struct *)s->node[0]))
			return VMA_FOUND;
		busy = busy || found != VMA_NONE;
	}
	return busy ? VMA_BUSY : VMA_NONE;
}

#endif
