/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trees of mappings as the kernel lays them out, from its own description and not from
 * the BPF code under test.
 *
 * Maple tree: a node is 256 bytes at a multiple of 256. Every node covers a range without
 * holes: entry i ends at pivot i (inclusive), the last one at the end of the node's own range,
 * so its pivot may be left out. An empty range has a NULL entry. In nodes of type leaf_64 and
 * range_64 the number of the last entry stands in the last slot's place, unless that is in
 * use, which shows in a 15th pivot that is not 0. Behind the last entry is rubbish.
 */
#include "world.h"

#include <stdlib.h>

enum {
	MAX_ENTRIES = 2 * WORLD_MAX_VMAS + 1,
	RANGE_SLOTS = 16,
	ARANGE_SLOTS = 10,
	WORD_PIVOT = 1,
	WORD_SLOT_RANGE = 16,
	WORD_META_RANGE = 31,
	WORD_SLOT_ARANGE = 10,
	WORD_GAP_ARANGE = 20,
	WORD_META_ARANGE = 30,
	ENODE_NULL = 4, /* set in encoded node pointers */
	ROOT = 2,       /* set in the root's */
	ROOT_PARENT = 1,
};

struct world_tree_shape world_shape = { 2, 0, WORLD_ARANGE_64 };
unsigned int world_depth;

/* One level of the tree under construction: what a range of indexes leads to. */
struct entry {
	__u64 last, value;
};

static unsigned int slots_of(enum world_node_type type)
{
	return type == WORLD_ARANGE_64 ? ARANGE_SLOTS : RANGE_SLOTS;
}

/* Mappings and the gaps between them, up to the end of the index. */
static size_t leaf_entries(const struct world_vmas *vmas, struct entry *entries)
{
	size_t n = 0;
	__u64 next = 0;

	for (size_t i = 0; i < vmas->count; i++) {
		const struct vm_area_struct *vma = vmas->list[i];

		if (vma->vm_start > next)
			entries[n++] = (struct entry){ vma->vm_start - 1, 0 };
		entries[n++] = (struct entry){ vma->vm_end - 1, kernel_addr(vma) };
		next = vma->vm_end;
	}
	entries[n++] = (struct entry){ ~0ULL, 0 };
	return n;
}

/* Like a pointer, to be followed only by mistake. */
static __u64 rubbish(void)
{
	return world_random() | HOST_KERNEL_BIT;
}

static __u64 *node_new(enum world_node_type type, const struct entry *entries, unsigned int count)
{
	bool arange = type == WORLD_ARANGE_64;
	unsigned int slots = slots_of(type), slot_word = arange ? WORD_SLOT_ARANGE : WORD_SLOT_RANGE;
	__u64 *node = kernel_alloc(256);

	for (unsigned int i = 0; i < 31; i++)
		node[1 + i] = rubbish();
	for (unsigned int i = 0; i < count; i++) {
		node[slot_word + i] = entries[i].value;
		if (i + 1 < slots)
			node[WORD_PIVOT + i] = entries[i].last;
	}
	/* The end of the node's range need not be repeated by its last pivot. */
	if (count < slots && world_random() & 1)
		node[WORD_PIVOT + count - 1] = 0;
	if (!arange && count < slots - 1)
		node[WORD_PIVOT + slots - 2] = 0;
	if (arange)
		node[WORD_META_ARANGE] = (rubbish() & ~0xffULL) | (count - 1);
	else if (count < slots)
		node[WORD_META_RANGE] = (rubbish() & ~0xffULL) | (count - 1);
	return node;
}

static unsigned int chunk_size(enum world_node_type type, size_t left)
{
	unsigned int max = slots_of(type), min = world_shape.min_slots, n;

	if (world_shape.max_slots && world_shape.max_slots < max)
		max = world_shape.max_slots;
	n = min >= max ? max : min + (unsigned int)(world_random() % (max - min + 1));
	if (n >= left)
		return (unsigned int)left;
	/* Of a rest of 1 no node can be made. */
	if (left - n == 1)
		return n > 2 ? n - 1 : n + 1;
	return n;
}

/* Groups the entries of one level into nodes, in place; returns how many these are. */
static size_t build_level(enum world_node_type type, struct entry *entries, size_t count)
{
	size_t made = 0;

	for (size_t at = 0; at < count;) {
		unsigned int n = chunk_size(type, count - at);
		__u64 *node = node_new(type, entries + at, n);
		__u64 encoded = kernel_addr(node) | (__u64)type << 3 | ENODE_NULL;

		for (unsigned int i = 0; type != WORLD_LEAF_64 && i < n; i++)
			*(__u64 *)host_ptr(entries[at + i].value & ~0xffULL) =
				kernel_addr(node) | (__u64)i << 3 | 6;
		entries[made++] = (struct entry){ entries[at + n - 1].last, encoded };
		at += n;
	}
	return made;
}

__u64 world_maple_root(const struct world_vmas *vmas, const void *tree)
{
	struct entry *entries = calloc(MAX_ENTRIES, sizeof(*entries));
	size_t count = leaf_entries(vmas, entries);
	__u64 root;

	count = build_level(WORLD_LEAF_64, entries, count);
	for (world_depth = 1; count > 1; world_depth++)
		count = build_level(world_shape.inner, entries, count);
	root = entries[0].value;
	free(entries);
	*(__u64 *)host_ptr(root & ~0xffULL) = kernel_addr(tree) | ROOT_PARENT;
	return root | ROOT;
}

/* ---- red-black tree: balanced with some chance; colours do not matter for look-ups ---- */

static struct rb_node *rb_build(struct vm_area_struct *const *list, size_t count,
				unsigned int depth)
{
	size_t middle = count / 2;
	struct rb_node *node;

	if (count == 0)
		return NULL;
	if (depth > world_depth)
		world_depth = depth;
	if (count > 8)
		middle += world_random() % (count / 4) - count / 8;
	node = (struct rb_node *)((__u8 *)list[middle] + HOST_FLAVOUR_OFFSET);
	node->rb_left = kernel_ptr(rb_build(list, middle, depth + 1));
	node->rb_right = kernel_ptr(rb_build(list + middle + 1, count - middle - 1, depth + 1));
	return node;
}

__u64 world_rb_root(const struct world_vmas *vmas)
{
	world_depth = 0;
	return kernel_addr(rb_build(vmas->list, vmas->count, 1));
}
