/* SPDX-License-Identifier: Apache-2.0 */
/* The look-up beside a writer: what it changes meanwhile is found right or refused. */
#include "vma_lab.h"

static void check_refused(void (*spoil)(struct vm_area_struct *vma))
{
	for (int maple = 0; maple < 2; maple++) {
		one_mapping(maple);
		spoil(vmas.list[0]);
		assert_int_equal(look_up(0x1001234), VMA_BUSY);
	}
}

static void spoil_mm(struct vm_area_struct *vma)
{
	vma->vm_mm = kernel_ptr(task);
}

static void spoil_file(struct vm_area_struct *vma)
{
	((struct file *)host_ptr((__u64)vma->vm_file))->f_inode = NULL;
}

static void test_vma_of_another_process(void **state)
{
	check_refused(spoil_mm);
	check_refused(spoil_file);
}

/* vm_start and vm_end share their place with an rcu_head: 0 or a pointer, and a pointer. */
static void test_freed_vma(void **state)
{
	static const __u64 shown[][2] = {
		{ 0, HOST_KERNEL_BIT | 0x7f0000001000 },
		{ 0x1000000, HOST_KERNEL_BIT | 0x7f0000001000 },
		{ 0, 0x2000000 },
		{ HOST_KERNEL_BIT | 0x1000, HOST_KERNEL_BIT | 0x7f0000001000 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(shown); i++) {
		one_mapping(true);
		vmas.list[0]->vm_start = shown[i][0];
		vmas.list[0]->vm_end = shown[i][1];
		assert_int_equal(look_up(0x1001234), VMA_BUSY);
	}
}

/* What a writer does at the n-th read, or from it on. */
static __u64 change_at;
static bool change_always;
static void (*change)(void);

static void on_read(__u64 addr, __u32 size)
{
	if (host.reads == change_at || (change_always && host.reads > change_at))
		change();
}

static void flip_start(void)
{
	vmas.list[0]->vm_start ^= 0x1000;
}

static void other_file(void)
{
	vmas.list[0]->vm_file = kernel_ptr(world_file(DEV, 4712, "/other"));
}

/* Another mapping takes the VMA's place, in the middle of the look-up. */
static void move_away(void)
{
	vmas.list[0]->vm_start = 0x5000000;
	vmas.list[0]->vm_end = 0x5001000;
	vmas.list[0]->vm_file = NULL;
}

static void freed(void)
{
	vmas.list[0]->vm_start = 0;
	vmas.list[0]->vm_end = HOST_KERNEL_BIT | 0x1000;
}

/*
 * One change before each read in turn: the answer is a state that was whole at some time, or
 * none; and a writer that goes away lets the next try win.
 */
static void check_changes(bool maple, void (*what)(void), bool finds_again)
{
	__u64 inode_hash[2], reads;

	one_mapping(maple);
	inode_hash[0] = walk->vma.file;
	reads = host.reads;
	what();
	inode_hash[1] = look_up(0x1001234) == VMA_FOUND ? walk->vma.file : 0;
	for (__u64 n = 1; n <= reads + 1; n++) {
		int found;

		one_mapping(maple);
		host.reads = 0;
		host.on_read = on_read;
		change = what;
		change_at = n;
		change_always = false;
		found = look_up(0x1001234);
		assert_in_range(found, VMA_FOUND, VMA_BUSY);
		if (finds_again)
			assert_int_equal(found, VMA_FOUND);
		if (found != VMA_FOUND)
			continue;
		assert_true(walk->vma.start <= 0x1001234 && walk->vma.end == 0x1003000);
		assert_true(walk->vma.file == inode_hash[0] || walk->vma.file == inode_hash[1]);
		assert_int_equal(0x1001234 + walk->vma.delta,
				 0x1001234 - walk->vma.start + (3 << 12));
	}
}

static void test_change_during_look_up(void **state)
{
	for (int maple = 0; maple < 2; maple++) {
		check_changes(maple, flip_start, true);
		check_changes(maple, other_file, true);
		check_changes(maple, move_away, false);
		check_changes(maple, freed, false);
	}
}

static void test_change_without_end(void **state)
{
	for (int maple = 0; maple < 2; maple++) {
		one_mapping(maple);
		host.reads = 0;
		host.on_read = on_read;
		change = other_file;
		change_at = 0;
		change_always = true;
		assert_int_equal(look_up(0x1001234), VMA_BUSY);
		assert_true(host.reads < 200);
	}
}

/* The tree as a whole is swapped while it is walked: dead nodes, then the new ones. */
static void swap_tree(void)
{
	__u64 *old = root_node();

	if (change_always)
		return;
	change_always = true; /* once only */
	world_map(task, &vmas);
	old[0] = kernel_addr(old);
}

static void test_tree_replaced(void **state)
{
	for (__u64 n = 1; n < 40; n++) {
		one_mapping(true);
		host.reads = 0;
		host.on_read = on_read;
		change = swap_tree;
		change_at = n;
		change_always = false;
		assert_int_equal(look_up(0x1001234), VMA_FOUND);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vma_of_another_process),
		cmocka_unit_test(test_freed_vma),
		cmocka_unit_test(test_change_during_look_up),
		cmocka_unit_test(test_change_without_end),
		cmocka_unit_test(test_tree_replaced),
	};

	world_random_seed(3);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
