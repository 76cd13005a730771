/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/resolve: from events and counts to the samples of a profile. */
#include "agent/resolve/resolve.h"
#include "resolve_lab.h"

#include <stdlib.h>

enum { STACK = 50, OTHER_STACK = 51, KERNEL_STACK = 60, UNKNOWN = 99 };

__attribute__((noinline)) static int lab_leaf(int x)
{
	asm volatile("" : "+r"(x));
	return x + 1;
}

__attribute__((noinline)) static int lab_caller(int x)
{
	asm volatile("" : "+r"(x));
	return lab_leaf(x) * 2;
}

static struct sonde_frame file_frame(const void *function, uint64_t more)
{
	return (struct sonde_frame){ LAB_FILE, lab_offset(function) + more };
}

static struct sonde_frame marker(enum sonde_marker m)
{
	return (struct sonde_frame){ SONDE_FRAME_MARKER, m };
}

static struct resolver_totals totals(void)
{
	struct resolver_totals t;

	resolver_totals(resolver, &t);
	return t;
}

static void test_names(void **state)
{
	const struct sonde_frame frames[] = { file_frame(lab_leaf, 1), file_frame(lab_caller, 2) };
	char exe[512] = "";

	lab_file();
	lab_user_stack(STACK, frames, 2);
	lab_count(STACK, 0, 3);
	assert_int_equal(profile->sample_count, 1);
	assert_int_equal(lab_sample(0)->location_count, 2);
	assert_string_equal(lab_name(0, 0), "lab_leaf");
	assert_string_equal(lab_name(0, 1), "lab_caller");
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	assert_string_equal(lab_mapping(0, 0), exe);
	assert_int_equal(lab_location(0, 0)->mapping_id, lab_location(0, 1)->mapping_id);
	assert_int_equal(lab_sample(0)->values[0], 3);
	assert_int_equal(lab_sample(0)->values[1], 3 * LAB_PERIOD);
	assert_int_equal(totals().samples, 3);
	assert_int_equal(totals().frames[SYM_OK], 6);
	assert_int_equal(totals().leaf_frames[SYM_OK], 3);
	assert_int_equal(totals().files, 1);
}

/* The address is the frame's own, which the kernel side has made one to look up already. */
static void test_addresses(void **state)
{
	const struct sonde_frame frames[] = { file_frame(lab_leaf, 0), file_frame(lab_leaf, 1) };

	lab_file();
	lab_user_stack(STACK, frames, 2);
	lab_count(STACK, 0, 1);
	assert_string_equal(lab_name(0, 0), "lab_leaf");
	assert_int_equal(lab_location(0, 1)->address, lab_location(0, 0)->address + 1);
}

static void test_labels(void **state)
{
	const struct sonde_frame frame = marker(SONDE_MARKER_NO_MAPPING);

	lab_user_stack(STACK, &frame, 1);
	lab_count(STACK, 0, 1);
	assert_string_equal(lab_text(0, "comm"), "proc");
	assert_string_equal(lab_text(0, "thread"), "worker");
	assert_string_equal(lab_text(0, "cgroup"), "/system.slice/a.service");
	assert_int_equal(lab_label(0, "pid")->num, LAB_TGID);
	assert_int_equal(lab_label(0, "pid")->str, 0);
}

static void test_comm_that_is_not_text(void **state)
{
	lab_process(7, "\xff\x01\xe2\x82");
	resolver_count(resolver, &(struct sonde_count_key){ .process = 7 },
		       &(struct sonde_count){ 1, 1 });
	assert_string_equal(lab_text(0, "comm"), "\\xff\\x01\\xe2\\x82");
}

static void test_markers(void **state)
{
	for (uint32_t m = SONDE_MARKER_TRUNCATED_DEPTH; m < SONDE_MARKER_COUNT; m++) {
		static const char *const texts[] = {
#define X(id, text) text,
			SONDE_MARKERS(X)
#undef X
		};
		const struct sonde_frame frame = marker((enum sonde_marker)m);

		lab_user_stack(STACK + m, &frame, 1);
		lab_count(STACK + m, 0, 2);
		assert_string_equal(lab_name(m - 1, 0), texts[m]);
		assert_int_equal(totals().markers[m], 2);
	}
	assert_int_equal(totals().leaf_frames[SYM_OK], 0); /* no code */
}

static void test_unknown_things(void **state)
{
	const struct sonde_frame frame = { SONDE_FILE_ID_BIT | 77, 0x1234 };

	lab_count(UNKNOWN, 0, 4);
	assert_string_equal(lab_name(0, 0), "[stack lost]");
	assert_int_equal(totals().lost_stacks, 4);
	lab_count(0, UNKNOWN, 1);
	assert_int_equal(totals().lost_stacks, 5);
	lab_count(0, 0, 1);
	assert_string_equal(lab_name(1, 0), "[no stack]");
	lab_user_stack(STACK, &frame, 1);
	lab_count(STACK, 0, 1);
	assert_string_equal(lab_name(2, 0), "[unknown file]");
	assert_int_equal(totals().frames[SYM_NO_FILE], 1);
	resolver_count(resolver, &(struct sonde_count_key){ .process = UNKNOWN },
		       &(struct sonde_count){ 6, 6 });
	assert_string_equal(lab_text(3, "comm"), "[unknown process]");
	assert_null(lab_label(3, "pid"));
	assert_null(lab_label(3, "cgroup"));
	assert_int_equal(totals().unknown_processes, 6);
	assert_int_equal(totals().samples, 4 + 1 + 1 + 1 + 6);
	/* The half that is there stays. */
	lab_count(STACK, UNKNOWN, 1);
	assert_int_equal(lab_sample(4)->location_count, 2);
	assert_string_equal(lab_name(4, 1), "[stack lost]");
}

/* What cannot be opened keeps its address and its module, and is asked for again. */
static void test_file_that_is_gone(void **state)
{
	struct sonde_file record = { .tgid = 0x7ffffffe, .tid = 0x7ffffffe, .ino = 1 };
	const struct sonde_frame frame = { LAB_FILE, 0x1234 };
	struct event event = lab_file_event(&record, LAB_FILE);
	enum resolver_thing thing;
	uint64_t id = 0;

	resolver_event(resolver, &event);
	assert_true(resolver_next_forgotten(resolver, &thing, &id));
	assert_int_equal(thing, RESOLVER_FILE);
	assert_int_equal(id, LAB_FILE);
	assert_false(resolver_next_forgotten(resolver, &thing, &id));
	lab_user_stack(STACK, &frame, 1);
	lab_count(STACK, 0, 1);
	assert_string_equal(lab_name(0, 0), "");
	assert_string_equal(lab_mapping(0, 0), "/bin/program");
	assert_int_equal(lab_location(0, 0)->address, 0x1234);
	assert_int_equal(totals().frames[SYM_NO_FILE], 1);
	assert_int_equal(totals().files_failed, 1);
	/* It comes at last: the same stack has a name from now on. */
	lab_file();
	lab_user_stack(OTHER_STACK, (struct sonde_frame[]){ file_frame(lab_leaf, 0) }, 1);
	lab_count(OTHER_STACK, 0, 1);
	assert_string_equal(lab_name(1, 0), "lab_leaf");
}

static void test_offset_outside_the_code(void **state)
{
	const struct sonde_frame frame = { LAB_FILE, 1ULL << 40 };

	lab_file();
	lab_user_stack(STACK, &frame, 1);
	lab_count(STACK, 0, 1);
	assert_string_equal(lab_name(0, 0), "");
	assert_int_equal(lab_location(0, 0)->address, 1ULL << 40);
	assert_int_equal(totals().frames[SYM_NO_SEGMENT], 1);
}

static void test_anonymous_code_without_map(void **state)
{
	const struct sonde_frame frame = { SONDE_FRAME_ANON, 0x7f0012345678 };

	lab_user_stack(STACK, &frame, 1);
	lab_count(STACK, 0, 1);
	assert_string_equal(lab_name(0, 0), "");
	assert_string_equal(lab_mapping(0, 0), "[anon]");
	assert_int_equal(lab_location(0, 0)->address, 0x7f0012345678);
	assert_int_equal(totals().frames[SYM_NO_JIT_MAP], 1);
}

/* The kernel's side is the inner one; addresses of callers are return addresses minus one. */
static void test_kernel_stack(void **state)
{
	const struct sonde_frame frame = marker(SONDE_MARKER_TRUNCATED_READ);
	const __u64 addrs[] = { 0xffffffff00000010, 0xffffffff00000020 };
	struct event event = { .type = SONDE_RECORD_KERNEL_STACK,
			       .id = KERNEL_STACK,
			       .kernel_stack = { addrs, 2 } };

	resolver_event(resolver, &event);
	lab_user_stack(STACK, &frame, 1);
	lab_count(STACK, KERNEL_STACK, 1);
	assert_int_equal(lab_sample(0)->location_count, 3);
	assert_int_equal(lab_location(0, 0)->address, addrs[0]);
	assert_int_equal(lab_location(0, 1)->address, addrs[1] - 1);
	assert_string_equal(lab_name(0, 2), "[truncated: stack not readable]");
}

static void test_overflow(void **state)
{
	const struct sonde_overflow_key key = { .cgroup = LAB_CGROUP };

	resolver_overflow(resolver, &key, &(struct sonde_count){ 5, 50 });
	assert_string_equal(lab_name(0, 0), "[overflow]");
	assert_string_equal(lab_text(0, "cgroup"), "/system.slice/a.service");
	assert_int_equal(lab_sample(0)->values[1], 50);
	assert_int_equal(totals().samples, 5);
	assert_int_equal(totals().weight, 50);
}

static void test_longest_stacks(void **state)
{
	static struct sonde_frame frames[SONDE_MAX_FRAMES];
	static __u64 addrs[SONDE_MAX_KERNEL_FRAMES];
	struct event event = { .type = SONDE_RECORD_KERNEL_STACK,
			       .id = KERNEL_STACK,
			       .kernel_stack = { addrs, SONDE_MAX_KERNEL_FRAMES } };

	for (uint64_t i = 0; i < SONDE_MAX_FRAMES; i++)
		frames[i] = (struct sonde_frame){ SONDE_FRAME_ANON, 0x1000 + i };
	for (uint64_t i = 0; i < SONDE_MAX_KERNEL_FRAMES; i++)
		addrs[i] = 0xffffffff00000000 + i;
	resolver_event(resolver, &event);
	lab_user_stack(STACK, frames, SONDE_MAX_FRAMES);
	lab_count(STACK, KERNEL_STACK, 1);
	assert_int_equal(lab_sample(0)->location_count, SONDE_MAX_FRAMES + SONDE_MAX_KERNEL_FRAMES);
}

static void test_huge_values(void **state)
{
	resolver_count(resolver, &(struct sonde_count_key){ 0 },
		       &(struct sonde_count){ UINT64_MAX, UINT64_MAX });
	assert_int_equal(lab_sample(0)->values[0], INT64_MAX);
	assert_int_equal(lab_sample(0)->values[1], INT64_MAX);
}

/* A mapping says that all is named only if that is so. */
static void test_mapping_flags(void **state)
{
	const struct sonde_frame frames[] = { file_frame(lab_leaf, 0), { SONDE_FRAME_ANON, 1 } };
	const struct profile_location *named, *unnamed;

	lab_file();
	lab_user_stack(STACK, frames, 2);
	lab_count(STACK, 0, 1);
	named = lab_location(0, 0);
	unnamed = lab_location(0, 1);
	resolver_end(resolver);
	assert_true(profile->mappings[named->mapping_id - 1].has_functions);
	assert_false(profile->mappings[unnamed->mapping_id - 1].has_functions);
}

/* Ids of locations belong to one profile. */
static void test_next_profile(void **state)
{
	const struct sonde_frame frames[] = { { SONDE_FRAME_ANON, 1 }, file_frame(lab_leaf, 0) };
	struct profile *first = profile;

	lab_file();
	lab_user_stack(STACK, frames, 2);
	lab_count(STACK, 0, 1);
	resolver_end(resolver);
	assert_int_equal(profile_new(64 << 20, &profile), 0);
	profile_add_type(profile, "samples", "count");
	profile_add_type(profile, "cpu", "nanoseconds");
	resolver_begin(resolver, profile);
	lab_user_stack(OTHER_STACK, frames + 1, 1);
	lab_count(OTHER_STACK, 0, 1);
	assert_string_equal(lab_name(0, 0), "lab_leaf");
	assert_string_equal(lab_text(0, "comm"), "proc");
	assert_int_equal(profile->location_count, 1);
	assert_int_equal(profile->mapping_count, 1);
	profile_free(first);
}

static void test_full_profile(void **state)
{
	struct profile *big = profile;

	resolver_end(resolver);
	assert_int_equal(profile_new(64 << 10, &profile), 0);
	profile_add_type(profile, "samples", "count");
	profile_add_type(profile, "cpu", "nanoseconds");
	resolver_begin(resolver, profile);
	for (uint64_t i = 0; i < 5000; i++) {
		const struct sonde_frame frame = { SONDE_FRAME_ANON, i };

		lab_user_stack(STACK + i, &frame, 1);
		lab_count(STACK + i, 0, 1);
	}
	assert_true(profile->full);
	assert_true(totals().no_memory > 0);
	assert_int_equal(totals().samples + totals().no_memory, 5000);
	profile_free(big);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_names, lab_open, lab_close),
		cmocka_unit_test_setup_teardown(test_addresses, lab_open, lab_close),
		cmocka_unit_test_setup_teardown(test_labels, lab_open, lab_close),
		cmocka_unit_test_setup_teardown(test_comm_that_is_not_text, lab_open, lab_close),
		cmocka_unit_test_setup_teardown(test_markers, lab_open, lab_close),
		cmocka_unit_test_setup_teardown(test_unknown_things, lab_open, lab_close),
		cmocka_unit_test_setup_teardown(test_file_that_is_gone, lab_open, lab_close),
		cmocka_unit_test_setup_teardown(test_offset_outside_the_code, lab_open, lab_close),
		cmocka_unit_test_setup_teardown(test_anonymous_code_without_map, lab_open, lab_close),
		cmocka_unit_test_setup_teardown(test_kernel_stack, lab_open, lab_close),
		cmocka_unit_test_setup_teardown(test_overflow, lab_open, lab_close),
		cmocka_unit_test_setup_teardown(test_longest_stacks, lab_open, lab_close),
		cmocka_unit_test_setup_teardown(test_huge_values, lab_open, lab_close),
		cmocka_unit_test_setup_teardown(test_mapping_flags, lab_open, lab_close),
		cmocka_unit_test_setup_teardown(test_next_profile, lab_open, lab_close),
		cmocka_unit_test_setup_teardown(test_full_profile, lab_open, lab_close),
	};

	/* So that the compiler keeps the functions apart. */
	return cmocka_run_group_tests(tests, NULL, NULL) + (lab_caller(1) == 5);
}
