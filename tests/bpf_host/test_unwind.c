/* SPDX-License-Identifier: Apache-2.0 */
/* The walk up a user stack by frame pointers: its frames, and the markers that end it. */
#include "lab.h"

static struct lab_process p;

static int setup(void **state)
{
	host_reset();
	lab_process(&p, 100, 0, NULL, NULL);
	lab_without_tables(&p);
	return 0;
}

/* Samples a stack that ends at once with this marker, counted under `counted`. */
static void check_marker(__u32 frames, enum sonde_marker marker, enum sonde_counter counted)
{
	const struct sonde_user_stack *stack;

	lab_sample(&p);
	stack = lab_last_stack();
	assert_int_equal(stack->count, frames + 1);
	check_frame(stack, frames, SONDE_FRAME_MARKER, marker);
	assert_int_equal(counter(counted), 1);
	assert_int_equal(counter(SONDE_COUNT_KEPT), 1);
	lab_check_books();
}

static void test_whole_stack(void **state)
{
	const struct sonde_user_stack *stack;

	lab_begin(&p, LAB_CODE + 0x100);
	lab_call(&p, LAB_LIB + 0x200);
	lab_call(&p, LAB_CODE + 0x300);
	lab_end(&p, LAB_CODE + 0x400);
	lab_sample(&p);
	stack = lab_last_stack();
	assert_int_equal(stack->count, 4);
	check_frame(stack, 0, file_id(1000), LAB_CODE_OFFSET + 0x100);
	check_frame(stack, 1, file_id(2000), LAB_CODE_OFFSET + 0x200 - 1);
	check_frame(stack, 2, file_id(1000), LAB_CODE_OFFSET + 0x300 - 1);
	check_frame(stack, 3, file_id(1000), LAB_CODE_OFFSET + 0x400 - 1);
	assert_int_equal(stack->head.size, 24 + 4 * 16);
	assert_int_equal(lab_key(NULL)->user_stack, stack->head.id);
	for (int i = SONDE_COUNT_TRUNCATED_DEPTH; i <= SONDE_COUNT_KERNEL_STACK_ERROR; i++)
		assert_int_equal(counter((enum sonde_counter)i), 0);
}

/* The other end of a thread: its first frame has no return address. */
static void test_stack_ends_at_return_to_0(void **state)
{
	lab_begin(&p, LAB_CODE + 0x100);
	lab_call(&p, LAB_CODE + 0x200);
	p.stack[p.at] = p.base + LAB_STACK + 0x800;
	p.stack[p.at + 1] = 0;
	lab_sample(&p);
	assert_int_equal(lab_last_stack()->count, 2);
	check_frame(lab_last_stack(), 1, file_id(1000), LAB_CODE_OFFSET + 0x200 - 1);
}

/* A call that does not return is the last instruction of its mapping: pc - 1 belongs to it. */
static void test_return_address_behind_a_mapping(void **state)
{
	lab_begin(&p, LAB_CODE);
	lab_end(&p, LAB_CODE + LAB_CODE_BYTES);
	lab_sample(&p);
	assert_int_equal(lab_last_stack()->count, 2);
	check_frame(lab_last_stack(), 0, file_id(1000), LAB_CODE_OFFSET);
	check_frame(lab_last_stack(), 1, file_id(1000), LAB_CODE_OFFSET + LAB_CODE_BYTES - 1);
}

static void deep(__u32 calls)
{
	lab_begin(&p, LAB_CODE + 0x10);
	for (__u32 i = 1; i < calls; i++)
		lab_call(&p, LAB_CODE + 0x10 + i * 0x10);
	lab_end(&p, LAB_CODE + 0x8);
}

static void test_deepest_whole_stack(void **state)
{
	deep(SONDE_MAX_FRAMES - 2);
	lab_sample(&p);
	assert_int_equal(lab_last_stack()->count, SONDE_MAX_FRAMES - 1);
	check_frame(lab_last_stack(), SONDE_MAX_FRAMES - 2, file_id(1000), LAB_CODE_OFFSET + 0x7);
	assert_int_equal(counter(SONDE_COUNT_TRUNCATED_DEPTH), 0);
}

static void test_too_deep(void **state)
{
	deep(SONDE_MAX_FRAMES - 1);
	check_marker(SONDE_MAX_FRAMES - 1, SONDE_MARKER_TRUNCATED_DEPTH,
		     SONDE_COUNT_TRUNCATED_DEPTH);
}

static void test_much_too_deep(void **state)
{
	deep(3 * SONDE_MAX_FRAMES);
	check_marker(SONDE_MAX_FRAMES - 1, SONDE_MARKER_TRUNCATED_DEPTH,
		     SONDE_COUNT_TRUNCATED_DEPTH);
}

/* rbp in use as a plain register. */
static void test_broken_frame_pointers(void **state)
{
	static const __u64 values[] = { LAB_STACK + 65, LAB_STACK + 68, LAB_STACK - 8, 8, 1,
					LAB_CODE };

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		setup(NULL);
		lab_begin(&p, LAB_CODE);
		p.ctx.regs.bp = values[i];
		check_marker(1, SONDE_MARKER_TRUNCATED_FRAME, SONDE_COUNT_TRUNCATED_FRAME);
	}
}

/* A frame that points to itself or back: the walk must go up. */
static void test_frames_in_a_circle(void **state)
{
	static const __u64 next[] = { 0, 8, (__u64)-16 };

	for (size_t i = 0; i < ARRAY_SIZE(next); i++) {
		setup(NULL);
		lab_begin(&p, LAB_CODE);
		p.stack[p.at] = p.ctx.regs.bp + next[i];
		p.stack[p.at + 1] = LAB_CODE + 0x10;
		check_marker(2, SONDE_MARKER_TRUNCATED_FRAME, SONDE_COUNT_TRUNCATED_FRAME);
	}
}

static void test_unreadable_stack(void **state)
{
	static const __u64 values[] = { LAB_STACK + LAB_STACK_BYTES, LAB_STACK + LAB_STACK_BYTES - 8,
					0x7fff00000000, ~7ULL };

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		setup(NULL);
		lab_begin(&p, LAB_CODE);
		p.ctx.regs.bp = values[i];
		check_marker(1, SONDE_MARKER_TRUNCATED_READ, SONDE_COUNT_TRUNCATED_READ);
	}
}

static void test_return_to_no_code(void **state)
{
	static const __u64 values[] = { LAB_DATA + 0x10, LAB_CODE - 0x10, 1, LAB_STACK, ~0ULL,
					LAB_CODE /* minus one is the data before it */ };

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		setup(NULL);
		lab_begin(&p, LAB_CODE);
		lab_end(&p, values[i]);
		check_marker(1, SONDE_MARKER_TRUNCATED_CODE, SONDE_COUNT_TRUNCATED_CODE);
	}
}

static void test_pc_in_no_mapping(void **state)
{
	lab_begin(&p, 0x1234);
	check_marker(0, SONDE_MARKER_NO_MAPPING, SONDE_COUNT_NO_MAPPING);
}

static void test_pc_in_data(void **state)
{
	lab_begin(&p, LAB_DATA);
	check_marker(0, SONDE_MARKER_NO_MAPPING, SONDE_COUNT_NO_MAPPING);
}

static void test_dead_tree_is_busy(void **state)
{
	struct mm_struct *mm = host_ptr((__u64)p.task->mm);
	__u64 *node = host_ptr((__u64)mm->mm_mt.ma_root & ~0xffULL);

	node[0] = kernel_addr(node);
	lab_begin(&p, LAB_CODE);
	check_marker(0, SONDE_MARKER_VMA_BUSY, SONDE_COUNT_VMA_BUSY);
}

/* Whatever lies on the stack, a walk ends and its frames are in code. */
static void test_random_stacks(void **state)
{
	static const __u64 places[] = { LAB_CODE, LAB_LIB, LAB_JIT, LAB_VDSO, LAB_DATA, LAB_STACK, 0 };

	for (int round = 0; round < 2000; round++) {
		const struct sonde_user_stack *stack;

		if (round % 100 == 0)
			setup(NULL);
		lab_begin(&p, LAB_CODE + world_random() % LAB_CODE_BYTES);
		for (size_t i = 0; i < 600; i++) {
			__u64 place = world_random() & 3 ? LAB_STACK
							 : places[world_random() % ARRAY_SIZE(places)];

			p.stack[i] = place + ((world_random() % 0x1400) & ~(world_random() % 9));
		}
		lab_sample(&p);
		stack = lab_last_stack();
		assert_in_range(stack->count, 1, SONDE_MAX_FRAMES);
		for (__u32 i = 0; i + 1 < stack->count; i++)
			assert_int_not_equal(stack->frames[i].file, SONDE_FRAME_MARKER);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_whole_stack, setup),
		cmocka_unit_test_setup(test_stack_ends_at_return_to_0, setup),
		cmocka_unit_test_setup(test_return_address_behind_a_mapping, setup),
		cmocka_unit_test_setup(test_deepest_whole_stack, setup),
		cmocka_unit_test_setup(test_too_deep, setup),
		cmocka_unit_test_setup(test_much_too_deep, setup),
		cmocka_unit_test_setup(test_broken_frame_pointers, setup),
		cmocka_unit_test_setup(test_frames_in_a_circle, setup),
		cmocka_unit_test_setup(test_unreadable_stack, setup),
		cmocka_unit_test_setup(test_return_to_no_code, setup),
		cmocka_unit_test_setup(test_pc_in_no_mapping, setup),
		cmocka_unit_test_setup(test_pc_in_data, setup),
		cmocka_unit_test_setup(test_dead_tree_is_busy, setup),
		cmocka_unit_test_setup(test_random_stacks, setup),
	};

	world_random_seed(7);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
