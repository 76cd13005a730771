/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of samples in the kernel, and what the id of a stack says. */
#include "lab.h"

static struct lab_process p;

static int setup(void **state)
{
	host_reset();
	lab_process(&p, 100, 0, NULL, NULL);
	lab_without_tables(&p);
	return 0;
}

/* ---- samples in the kernel ---- */

static void check_kernel_mode(void)
{
	const struct sonde_kernel_stack *kernel;

	host.kernel_stack_count = 3;
	host.kernel_stack[0] = 0xffffffff81000010;
	host.kernel_stack[1] = 0xffffffff81000020;
	host.kernel_stack[2] = 0xffffffff81000030;
	lab_begin(&p, LAB_LIB + 0x50);
	lab_end(&p, LAB_CODE + 0x60);
	lab_sample_kernel(&p);
	kernel = ring_record(SONDE_RECORD_KERNEL_STACK, 0);
	assert_non_null(kernel);
	assert_int_equal(kernel->count, 3);
	assert_int_equal(kernel->head.size, 24 + 3 * 8);
	assert_memory_equal(kernel->addrs, host.kernel_stack, 24);
	assert_int_equal(lab_key(NULL)->kernel_stack, kernel->head.id);
	assert_int_equal(lab_last_stack()->count, 2);
	check_frame(lab_last_stack(), 0, file_id(2000), LAB_CODE_OFFSET + 0x50);
}

static void test_kernel_mode(void **state)
{
	check_kernel_mode();
	setup(NULL);
	host.pt_regs_helper = false;
	check_kernel_mode();
}

/* In exec or exit: not an error of the walk. */
static void test_kernel_mode_without_user_code(void **state)
{
	lab_begin(&p, 0x1234);
	lab_sample_kernel(&p);
	check_frame(lab_last_stack(), 0, SONDE_FRAME_MARKER, SONDE_MARKER_NO_USER_STACK);
	assert_int_equal(counter(SONDE_COUNT_NO_USER_STACK), 1);
	assert_int_equal(counter(SONDE_COUNT_NO_MAPPING), 0);
}

/* Nothing of the sample before may show. */
static void test_unreadable_registers(void **state)
{
	lab_begin(&p, LAB_CODE);
	lab_end(&p, LAB_CODE + 0x10);
	lab_sample(&p);
	kernel_unmap(host_ptr((__u64)p.task->stack), HOST_KERNEL_STACK_BYTES);
	lab_sample_kernel(&p);
	assert_int_equal(lab_last_stack()->count, 1);
	check_frame(lab_last_stack(), 0, SONDE_FRAME_MARKER, SONDE_MARKER_NO_USER_STACK);
}

static void test_kernel_stack_error(void **state)
{
	host.kernel_stack_count = -14;
	lab_begin(&p, LAB_CODE);
	lab_end(&p, LAB_CODE + 0x10);
	lab_sample_kernel(&p);
	assert_int_equal(counter(SONDE_COUNT_KERNEL_STACK_ERROR), 1);
	assert_int_equal(lab_key(NULL)->kernel_stack, 0);
	assert_int_not_equal(lab_key(NULL)->user_stack, 0);
}

static void test_longest_kernel_stack(void **state)
{
	const struct sonde_kernel_stack *kernel;

	host.kernel_stack_count = SONDE_MAX_KERNEL_FRAMES;
	for (__u64 i = 0; i < SONDE_MAX_KERNEL_FRAMES; i++)
		host.kernel_stack[i] = HOST_KERNEL_BIT | i;
	lab_begin(&p, LAB_CODE);
	lab_sample_kernel(&p);
	kernel = ring_record(SONDE_RECORD_KERNEL_STACK, 0);
	assert_int_equal(kernel->count, SONDE_MAX_KERNEL_FRAMES);
	assert_memory_equal(kernel->addrs, host.kernel_stack, sizeof(host.kernel_stack));
}

/* Kernel threads and io_uring workers have no user stack, whatever their mm is. */
static void test_no_user_side(void **state)
{
	static const unsigned int flags[] = { PF_KTHREAD, PF_IO_WORKER };

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		setup(NULL);
		host.kernel_stack_count = 1;
		host.kernel_stack[0] = HOST_KERNEL_BIT;
		p.task->flags |= flags[i];
		lab_begin(&p, LAB_CODE);
		lab_sample_kernel(&p);
		assert_int_equal(lab_key(NULL)->user_stack, 0);
		assert_int_not_equal(lab_key(NULL)->kernel_stack, 0);
		assert_int_equal(ring_count(SONDE_RECORD_USER_STACK), 0);
	}
	setup(NULL);
	p.task = world_kthread(50, "kworker/0:1");
	lab_sample_kernel(&p);
	assert_int_equal(lab_key(NULL)->user_stack, 0);
}

static void test_switched_off(void **state)
{
	host_settings()->user_stacks = 0;
	host_settings()->kernel_stacks = 0;
	host.kernel_stack_count = 1;
	lab_begin(&p, LAB_CODE);
	lab_sample(&p);
	lab_sample_kernel(&p);
	assert_int_equal(lab_key(NULL)->user_stack, 0);
	assert_int_equal(lab_key(NULL)->kernel_stack, 0);
	assert_int_equal(counter(SONDE_COUNT_KEPT), 2);
}

/* ---- ids ---- */

static __u64 sample_id(struct lab_process *process, __u64 pc, __u64 ret)
{
	lab_begin(process, pc);
	lab_end(process, ret);
	lab_sample(process);
	return lab_last_stack()->head.id;
}

static void test_same_code_elsewhere_is_the_same_stack(void **state)
{
	struct lab_process other;

	lab_process(&other, 200, 0x10000000, p.exe, p.lib);
	sample_id(&p, LAB_LIB + 0x100, LAB_CODE + 0x200);
	sample_id(&other, LAB_LIB + 0x100, LAB_CODE + 0x200);
	assert_int_equal(ring_count(SONDE_RECORD_USER_STACK), 1);
	assert_int_equal(ring_count(SONDE_RECORD_FILE), 2);
	assert_int_equal(map_count_entries(&counts_0), 2); /* two processes, one stack */
	sample_id(&other, LAB_LIB + 0x101, LAB_CODE + 0x200);
	assert_int_equal(ring_count(SONDE_RECORD_USER_STACK), 2);
}

static void test_sent_again_when_forgotten(void **state)
{
	__u64 id = sample_id(&p, LAB_CODE, LAB_CODE + 0x10);

	sample_id(&p, LAB_CODE, LAB_CODE + 0x10);
	assert_int_equal(ring_count(SONDE_RECORD_USER_STACK), 1);
	bpf_map_delete_elem(&seen_stacks, &id);
	assert_int_equal(sample_id(&p, LAB_CODE, LAB_CODE + 0x10), id);
	assert_int_equal(ring_count(SONDE_RECORD_USER_STACK), 2);
	assert_int_equal(lab_key(NULL)->user_stack, id);
}

static void test_anonymous_code_binds_to_the_process(void **state)
{
	struct lab_process other;
	__u64 first, second;

	lab_process(&other, 200, 0, p.exe, p.lib);
	first = sample_id(&p, LAB_JIT + 0x100, LAB_CODE + 0x200);
	check_frame(lab_last_stack(), 0, SONDE_FRAME_ANON, LAB_JIT + 0x100);
	second = sample_id(&other, LAB_JIT + 0x100, LAB_CODE + 0x200);
	check_frame(lab_last_stack(), 0, SONDE_FRAME_ANON, LAB_JIT + 0x100);
	assert_int_not_equal(first, second);
	/* Also where it is not the leaf, and only for that stack. */
	first = sample_id(&p, LAB_CODE + 0x100, LAB_JIT + 0x200);
	second = sample_id(&other, LAB_CODE + 0x100, LAB_JIT + 0x200);
	assert_int_not_equal(first, second);
	first = sample_id(&p, LAB_CODE + 0x100, LAB_CODE + 0x200);
	second = sample_id(&other, LAB_CODE + 0x100, LAB_CODE + 0x200);
	assert_int_equal(first, second);
}

static void test_vdso(void **state)
{
	struct lab_process other;
	__u64 first;

	lab_process(&other, 200, 0x10000000, p.exe, p.lib);
	first = sample_id(&p, LAB_VDSO + 0x700, LAB_CODE + 0x200);
	check_frame(lab_last_stack(), 0, SONDE_FRAME_VDSO, 0x700);
	assert_int_equal(sample_id(&other, LAB_VDSO + 0x700, LAB_CODE + 0x200), first);
}

/* The mapping in the walk's cache must be that of the walk's own process. */
static void test_cache_ends_with_the_walk(void **state)
{
	struct lab_process other;

	lab_process(&other, 200, 0, world_file(LAB_DEV, 3000, "/usr/bin/other"), p.lib);
	sample_id(&p, LAB_CODE, LAB_CODE + 0x10);
	sample_id(&other, LAB_CODE, LAB_CODE + 0x10);
	check_frame(lab_last_stack(), 0, file_id(3000), LAB_CODE_OFFSET);
}

/* More mappings than the cache holds. */
static void test_many_mappings_in_one_stack(void **state)
{
	static const __u64 places[] = { LAB_CODE, LAB_LIB, LAB_JIT, LAB_VDSO };
	const struct sonde_user_stack *stack;

	lab_begin(&p, LAB_CODE + 0x100);
	for (__u64 i = 0; i < 40; i++)
		lab_call(&p, places[i * 7 % 4] + 0x100 + i);
	lab_end(&p, LAB_LIB + 0x900);
	lab_sample(&p);
	stack = lab_last_stack();
	assert_int_equal(stack->count, 42);
	for (__u32 i = 0; i < 40; i++) {
		__u64 place = places[i * 7 % 4];

		if (place == LAB_JIT)
			check_frame(stack, i + 1, SONDE_FRAME_ANON, LAB_JIT + 0x100 + i - 1);
		else if (place == LAB_VDSO)
			check_frame(stack, i + 1, SONDE_FRAME_VDSO, 0x100 + i - 1);
		else
			check_frame(stack, i + 1, file_id(place == LAB_CODE ? 1000 : 2000),
				    LAB_CODE_OFFSET + 0x100 + i - 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_kernel_mode, setup),
		cmocka_unit_test_setup(test_kernel_mode_without_user_code, setup),
		cmocka_unit_test_setup(test_unreadable_registers, setup),
		cmocka_unit_test_setup(test_kernel_stack_error, setup),
		cmocka_unit_test_setup(test_longest_kernel_stack, setup),
		cmocka_unit_test_setup(test_no_user_side, setup),
		cmocka_unit_test_setup(test_switched_off, setup),
		cmocka_unit_test_setup(test_same_code_elsewhere_is_the_same_stack, setup),
		cmocka_unit_test_setup(test_sent_again_when_forgotten, setup),
		cmocka_unit_test_setup(test_anonymous_code_binds_to_the_process, setup),
		cmocka_unit_test_setup(test_vdso, setup),
		cmocka_unit_test_setup(test_cache_ends_with_the_walk, setup),
		cmocka_unit_test_setup(test_many_mappings_in_one_stack, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
