/* SPDX-License-Identifier: Apache-2.0 */
/* The look-up of a mapping in the kernel's trees: right for every shape, a refusal for nonsense. */
#include "vma_lab.h"

static const struct vm_area_struct *linear_search(__u64 addr)
{
	for (size_t i = 0; i < vmas.count; i++) {
		if (addr >= vmas.list[i]->vm_start && addr < vmas.list[i]->vm_end)
			return vmas.list[i];
	}
	return NULL;
}

static void check(__u64 addr)
{
	const struct vm_area_struct *want = linear_search(addr);
	int found = look_up(addr);

	assert_int_equal(found, want ? VMA_FOUND : VMA_NONE);
	if (!want)
		return;
	assert_int_equal(walk->vma.start, want->vm_start);
	assert_int_equal(walk->vma.end, want->vm_end);
	assert_int_equal(!!walk->vma.is_code, !!(want->vm_flags & VM_EXEC));
	if (want->vm_file)
		assert_int_equal(addr + walk->vma.delta,
				 addr - want->vm_start + (want->vm_pgoff << 12));
	else
		assert_int_equal(walk->vma.file, SONDE_FRAME_ANON);
}

/* At and beside each border, and at the ends of the address space. */
static void check_borders(void)
{
	for (size_t i = 0; i < vmas.count; i++) {
		check(vmas.list[i]->vm_start);
		check(vmas.list[i]->vm_start - 1);
		check(vmas.list[i]->vm_end - 1);
		check(vmas.list[i]->vm_end);
		check(vmas.list[i]->vm_start + world_random() % PAGE);
	}
	check(0);
	check(1);
	check((1ULL << 47) - 1);
	check(~0ULL);
	check(1ULL << 63);
}

/* Disjoint, some side by side, most with holes between them. */
static void random_vmas(size_t count)
{
	__u64 at = (world_random() % 4096 + 1) * PAGE;

	for (size_t i = 0; i < count; i++) {
		__u64 pages = world_random() % 7 + 1, gap = world_random() % 3;
		struct file *f = world_random() & 1 ? file : NULL;

		at += gap ? PAGE * (world_random() % (world_random() & 7 ? 16 : 1 << 20) + 1) : 0;
		world_vma(&vmas, task, at, at + pages * PAGE,
			  world_random() & 1 ? WORLD_VM_EXEC : WORLD_VM_READ, f,
			  f ? world_random() % 100000 : at / PAGE);
		at += pages * PAGE;
	}
}

static void random_tree(bool maple, size_t count, struct world_tree_shape shape)
{
	begin(maple);
	world_shape = shape;
	random_vmas(count);
	world_map(task, &vmas);
	check_borders();
}

/* Each size about the capacity of nodes, in each form of node. */
static void test_small_maple_trees(void **state)
{
	static const enum world_node_type inner[] = { WORLD_ARANGE_64, WORLD_RANGE_64 };

	for (size_t count = 1; count < 60; count++) {
		for (size_t i = 0; i < ARRAY_SIZE(inner); i++) {
			random_tree(true, count, (struct world_tree_shape){ 16, 16, inner[i] });
			random_tree(true, count, (struct world_tree_shape){ 15, 15, inner[i] });
			random_tree(true, count, (struct world_tree_shape){ 2, 0, inner[i] });
			random_tree(true, count, (struct world_tree_shape){ 2, 3, inner[i] });
		}
	}
}

static void test_small_rb_trees(void **state)
{
	for (size_t count = 0; count < 60; count++)
		random_tree(false, count, (struct world_tree_shape){ 2, 0, WORLD_ARANGE_64 });
}

static void test_large_trees(void **state)
{
	static const struct world_tree_shape shapes[] = {
		{ 16, 16, WORLD_ARANGE_64 }, { 2, 0, WORLD_ARANGE_64 }, { 5, 0, WORLD_RANGE_64 },
		{ 4, 6, WORLD_ARANGE_64 },
	};
	unsigned int deepest = 0;

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		random_tree(true, 1500, shapes[i]);
		if (world_depth > deepest)
			deepest = world_depth;
	}
	assert_in_range(deepest, 4, 9);
	random_tree(false, 1500, shapes[0]);
	assert_in_range(world_depth, 10, 39);
}

static void test_random_trees(void **state)
{
	for (int round = 0; round < 200; round++) {
		size_t count = world_random() % 150 + 1;
		unsigned int min = (unsigned int)(world_random() % 10) + 4;
		bool maple = world_random() & 3;

		random_tree(maple, count,
			    (struct world_tree_shape){ min, 0,
						       world_random() & 1 ? WORLD_ARANGE_64
									  : WORLD_RANGE_64 });
	}
}

/* A leaf of 16 slots: 15 pivots, the last mapping has none of its own; no word for the end. */
static void test_full_leaf_that_ends_in_a_mapping(void **state)
{
	__u64 *leaf;

	begin(true);
	for (__u64 i = 0; i < 16; i++)
		map_file(i ? i * PAGE : 1, (i + 1) * PAGE, i);
	world_map(task, &vmas);
	leaf = host_ptr((__u64)((struct mm_struct *)host_ptr(walk->mm))->mm_mt.ma_root & ~0xffULL);
	/* Put together by hand, since a real tree's last range is always a hole. */
	for (__u64 i = 0; i < 16; i++) {
		if (i < 15)
			leaf[1 + i] = (i + 1) * PAGE - 1;
		leaf[16 + i] = kernel_addr(vmas.list[i]);
	}
	((struct mm_struct *)host_ptr(walk->mm))->mm_mt.ma_root =
		(void *)(kernel_addr(leaf) | WORLD_LEAF_64 << 3 | 6);
	check(15 * PAGE - 1);
	check(15 * PAGE);
	check(16 * PAGE - 1);
	assert_int_equal(look_up(16 * PAGE), VMA_BUSY); /* beyond: the VMA does not verify */
}

static void test_roots_that_are_no_node(void **state)
{
	static const __u64 roots[] = { 0, 2, 0x1002, 1, ~0ULL & ~3ULL, ~0ULL };

	one_mapping(true);
	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		mm_of_task()->mm_mt.ma_root = (void *)roots[i];
		assert_int_equal(look_up(0x1001234), VMA_NONE);
	}
	mm_of_task()->mm_mt.ma_root = kernel_ptr(vmas.list[0]); /* a direct entry */
	assert_int_equal(look_up(0x1001234), VMA_NONE);
}

static void test_unknown_types(void **state)
{
	for (__u64 type = 0; type < 16; type++) {
		__u64 root;

		one_mapping(true);
		root = (__u64)mm_of_task()->mm_mt.ma_root;
		mm_of_task()->mm_mt.ma_root = (void *)((root & ~(0xfULL << 3)) | type << 3);
		if (type == WORLD_LEAF_64)
			assert_int_equal(look_up(0x1001234), VMA_FOUND);
		else
			assert_int_not_equal(look_up(0x1001234), VMA_FOUND);
	}
}

/* Slots that hold no pointer: a hole, the reserved values of xarrays. */
static void test_special_slots(void **state)
{
	static const __u64 slots[] = { 0, 0x406, 0x402, 2, 1 };

	for (size_t i = 0; i < ARRAY_SIZE(slots); i++) {
		one_mapping(true);
		root_node()[16 + 1] = slots[i];
		assert_int_not_equal(look_up(0x1001234), VMA_FOUND);
	}
}

static void test_dead_node_is_busy(void **state)
{
	one_mapping(true);
	root_node()[0] = kernel_addr(root_node());
	assert_int_equal(look_up(0x1001234), VMA_BUSY);
	one_mapping(true);
	kernel_unmap(root_node(), 256);
	assert_int_equal(look_up(0x1001234), VMA_BUSY);
}

/* A tree that leads back to itself ends. */
static void test_endless_tree(void **state)
{
	__u64 *node;

	one_mapping(true);
	node = kernel_alloc(256);
	for (int i = 0; i < 10; i++)
		node[10 + i] = kernel_addr(node) | WORLD_ARANGE_64 << 3 | 4;
	mm_of_task()->mm_mt.ma_root = (void *)(node[10] | 2);
	assert_int_equal(look_up(0x1001234), VMA_NONE);
	one_mapping(false);
	((struct rb_node *)((__u8 *)vmas.list[0] + HOST_FLAVOUR_OFFSET))->rb_right =
		kernel_ptr((__u8 *)vmas.list[0] + HOST_FLAVOUR_OFFSET);
	assert_int_equal(look_up(0x2000000), VMA_NONE);
}

/* Every number may stand anywhere in a node: no read outside, no answer that does not verify. */
static void test_rubbish_nodes(void **state)
{
	for (int round = 0; round < 3000; round++) {
		__u64 *node;
		int found;

		one_mapping(true);
		node = root_node();
		for (int i = 0; i < 8; i++)
			node[world_random() % 32] = world_random() >> (world_random() % 64);
		found = look_up(0x1000000 + world_random() % 0x3000);
		assert_in_range(found, VMA_FOUND, VMA_BUSY);
		if (found == VMA_FOUND)
			assert_int_equal(walk->vma.start, 0x1000000);
	}
}

static void test_vdso(void **state)
{
	begin(true);
	world_vma(&vmas, task, 0x7fff0000, 0x7fff2000, WORLD_VM_EXEC, NULL, 0x7fff0);
	world_vma(&vmas, task, 0x7fff3000, 0x7fff4000, WORLD_VM_EXEC, NULL, 0x7fff3);
	world_map(task, &vmas);
	walk->vdso = 0x7fff0000;
	assert_int_equal(look_up(0x7fff0123), VMA_FOUND);
	assert_int_equal(walk->vma.file, SONDE_FRAME_VDSO);
	assert_int_equal(0x7fff0123 + walk->vma.delta, 0x123);
	assert_int_equal(look_up(0x7fff3123), VMA_FOUND);
	assert_int_equal(walk->vma.file, SONDE_FRAME_ANON);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_maple_trees),
		cmocka_unit_test(test_small_rb_trees),
		cmocka_unit_test(test_large_trees),
		cmocka_unit_test(test_random_trees),
		cmocka_unit_test(test_full_leaf_that_ends_in_a_mapping),
		cmocka_unit_test(test_roots_that_are_no_node),
		cmocka_unit_test(test_unknown_types),
		cmocka_unit_test(test_special_slots),
		cmocka_unit_test(test_dead_node_is_busy),
		cmocka_unit_test(test_endless_tree),
		cmocka_unit_test(test_rubbish_nodes),
		cmocka_unit_test(test_vdso),
	};

	world_random_seed(20240607);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
