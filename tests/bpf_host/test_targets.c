/* SPDX-License-Identifier: Apache-2.0 */
/* Which tasks are sampled: processes and their children, cgroups. */
#include "lab.h"

#define START_NS (100 * 1000000000ULL) /* of lab_process 100 */

static struct lab_process p;

static int setup(void **state)
{
	host_reset();
	lab_process(&p, 100, 0, NULL, NULL);
	return 0;
}

static void add_target(__u32 tgid, __u64 start_ns)
{
	__u64 ticks = start_ns / SONDE_NS_PER_TICK;

	host_settings()->target_mode = SONDE_TARGET_PROCESSES;
	assert_int_equal(bpf_map_update_elem(&targets, &tgid, &ticks, BPF_ANY), 0);
}

static bool is_sampled(struct task_struct *task)
{
	struct lab_process one = p;
	__u64 kept = counter(SONDE_COUNT_KEPT), filtered = counter(SONDE_COUNT_FILTERED);

	one.task = task;
	lab_begin(&one, LAB_CODE);
	lab_sample(&one);
	lab_check_books();
	kept = counter(SONDE_COUNT_KEPT) - kept;
	assert_int_equal(kept + counter(SONDE_COUNT_FILTERED) - filtered, 1);
	return kept;
}

static void test_processes(void **state)
{
	struct task_struct *other = world_process(101, "other", START_NS);

	add_target(100, START_NS);
	assert_true(is_sampled(p.task));
	assert_true(is_sampled(world_thread(p.task, 105, "thread")));
	assert_false(is_sampled(other));
	assert_false(is_sampled(world_thread(other, 100, "tid like the target")));
	assert_int_equal(((struct sonde_totals *)bpf_map_lookup_elem(&totals, &(__u32){ 0 }))
				 ->filtered_weight,
			 2 * LAB_PERIOD);
}

/* A PID used again is another process, unless it started within the same 10 ms. */
static void test_pid_used_again(void **state)
{
	add_target(100, START_NS);
	assert_false(is_sampled(world_process(100, "later", START_NS + SONDE_NS_PER_TICK)));
	assert_true(is_sampled(world_process(100, "same", START_NS + SONDE_NS_PER_TICK - 1)));
}

/* The kernel knows starts in nanoseconds, /proc in ticks. */
static void test_starts_between_ticks(void **state)
{
	struct task_struct *task = world_process(7, "x", 123456789012345);

	add_target(7, 123456789012345);
	assert_true(is_sampled(task));
}

static void fork_from(struct task_struct *parent, struct task_struct *child)
{
	assert_int_equal(sonde_fork(kernel_ptr(parent), kernel_ptr(child)), 0);
}

static void test_children_are_followed(void **state)
{
	struct task_struct *thread = world_thread(p.task, 105, "thread");
	struct task_struct *child = world_process(200, "child", START_NS + 123456789);
	struct task_struct *grandchild = world_process(201, "grandchild", START_NS + 223456789);
	struct task_struct *stranger = world_process(300, "stranger", START_NS);
	struct task_struct *strangers = world_process(301, "child", START_NS);

	add_target(100, START_NS);
	fork_from(p.task, thread); /* a thread is no process */
	assert_int_equal(map_count_entries(&targets), 1);
	fork_from(thread, child);
	fork_from(child, grandchild);
	fork_from(stranger, strangers);
	assert_int_equal(map_count_entries(&targets), 3);
	assert_true(is_sampled(child));
	assert_true(is_sampled(grandchild));
	assert_false(is_sampled(strangers));
}

/* The parent's PID is a target's, but it is another process. */
static void test_child_of_a_pid_used_again(void **state)
{
	struct task_struct *later = world_process(100, "later", START_NS + 5000000000);
	struct task_struct *child = world_process(200, "child", START_NS + 6000000000);

	add_target(100, START_NS);
	fork_from(later, child);
	assert_false(is_sampled(child));
}

static void test_full_map_of_targets(void **state)
{
	struct task_struct *child = world_process(200, "child", START_NS + 1);

	add_target(100, START_NS);
	map_limit(&targets, 1);
	fork_from(p.task, child);
	assert_int_equal(counter(SONDE_COUNT_TARGETS_FULL), 1);
	assert_false(is_sampled(child));
	assert_true(is_sampled(p.task));
}

static void task_free(struct task_struct *task)
{
	assert_int_equal(sonde_free(kernel_ptr(task)), 0);
}

static void test_end_of_a_target(void **state)
{
	struct task_struct *thread = world_thread(p.task, 105, "thread");

	add_target(100, START_NS);
	task_free(thread);
	assert_true(is_sampled(p.task));
	task_free(world_process(100, "later", START_NS + 5000000000));
	assert_true(is_sampled(p.task));
	task_free(p.task);
	assert_int_equal(map_count_entries(&targets), 0);
	task_free(p.task);
	assert_false(is_sampled(p.task));
}

/* ---- cgroups ---- */

static void check_cgroup_target(bool v1)
{
	int hierarchy = v1 ? 4 : 0;
	struct cgroup *v2_root = world_cgroup(NULL, 0, 1, "");
	struct cgroup *root = v1 ? world_cgroup(NULL, 4, 1, "") : v2_root;
	struct cgroup *target = world_cgroup(root, hierarchy, 50, "target");
	struct cgroup *below = world_cgroup(target, hierarchy, 51, "below");
	struct cgroup *beside = world_cgroup(root, hierarchy, 52, "beside");
	/* The same number in the other hierarchy. */
	struct cgroup *decoy = world_cgroup(world_cgroup(NULL, 9, 1, ""), 9, 50, "decoy");
	struct cgroup *const inside[] = { target, below, world_cgroup(below, hierarchy, 53, "deep") };
	struct cgroup *const outside[] = { root, beside, world_cgroup(beside, hierarchy, 54, "x") };

	host_settings()->target_mode = SONDE_TARGET_CGROUP;
	host_settings()->target_cgroup = 50;
	host_settings()->target_v1 = v1;
	for (size_t i = 0; i < ARRAY_SIZE(inside); i++) {
		world_set_cgroups(p.task, v1 ? v2_root : inside[i], v1 ? inside[i] : NULL, NULL);
		assert_true(is_sampled(p.task));
		world_set_cgroups(p.task, v1 ? decoy : outside[i], v1 ? outside[i] : decoy, NULL);
		assert_false(is_sampled(p.task));
	}
}

static void test_cgroup_target(void **state)
{
	check_cgroup_target(false);
	setup(NULL);
	check_cgroup_target(true);
	setup(NULL);
	host.kernfs_rcu_parent = false;
	check_cgroup_target(false);
}

/* A v1 target where the kernel has no such controller: nothing is in it. */
static void test_cgroup_target_without_controller(void **state)
{
	struct cgroup *root = world_cgroup(NULL, 0, 1, "");

	host_settings()->target_mode = SONDE_TARGET_CGROUP;
	host_settings()->target_cgroup = 50;
	host_settings()->target_v1 = 1;
	host.has_pids = host.has_memory = false;
	world_set_cgroups(p.task, world_cgroup(root, 0, 50, "x"), NULL, NULL);
	assert_false(is_sampled(p.task));
	host.has_pids = true;
	assert_false(is_sampled(p.task)); /* no css: the controller is not mounted */
}

/* What user space does with a cgroup that it was told of. */
static void refuse(__u64 id)
{
	__u8 state = SONDE_FACT_REFUSED;

	assert_non_null(bpf_map_lookup_elem(&seen_facts, &id));
	assert_int_equal(bpf_map_update_elem(&seen_facts, &id, &state, BPF_ANY), 0);
}

/* Sampled until refused; then only that one is not, whatever hierarchy it is in. */
static void check_refused(struct cgroup *v2, struct cgroup *v1)
{
	struct cgroup *other = world_cgroup(world_cgroup(NULL, 0, 1, ""), 0, 60, "other");
	const struct sonde_cgroup *record;

	host_settings()->target_mode = SONDE_TARGET_CGROUPS;
	world_set_cgroups(p.task, v2, v1, NULL);
	assert_true(is_sampled(p.task));
	assert_true(is_sampled(p.task));
	record = ring_record(SONDE_RECORD_CGROUP, 0);
	refuse(record->head.id);
	assert_false(is_sampled(p.task));
	assert_false(is_sampled(world_thread(p.task, 105, "thread")));
	world_set_cgroups(p.task, other, v1, NULL);
	assert_true(is_sampled(p.task));
	assert_int_equal(ring_count(SONDE_RECORD_CGROUP), 2);
	world_set_cgroups(p.task, v2, v1, NULL);
	assert_false(is_sampled(p.task));
	/* Forgotten: told again. */
	bpf_map_delete_elem(&seen_facts, &record->head.id);
	assert_true(is_sampled(p.task));
	assert_int_equal(ring_count(SONDE_RECORD_CGROUP), 3);
}

static void test_refused_cgroups(void **state)
{
	struct cgroup *v2 = world_cgroup(world_cgroup(NULL, 0, 1, ""), 0, 50, "a");
	struct cgroup *v1 = world_cgroup(world_cgroup(NULL, 4, 1, ""), 4, 50, "a");

	check_refused(v2, NULL);
	setup(NULL);
	v2 = world_cgroup(NULL, 0, 1, "");
	v1 = world_cgroup(world_cgroup(NULL, 4, 1, ""), 4, 50, "a");
	check_refused(v2, v1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_processes, setup),
		cmocka_unit_test_setup(test_pid_used_again, setup),
		cmocka_unit_test_setup(test_starts_between_ticks, setup),
		cmocka_unit_test_setup(test_children_are_followed, setup),
		cmocka_unit_test_setup(test_child_of_a_pid_used_again, setup),
		cmocka_unit_test_setup(test_full_map_of_targets, setup),
		cmocka_unit_test_setup(test_end_of_a_target, setup),
		cmocka_unit_test_setup(test_cgroup_target, setup),
		cmocka_unit_test_setup(test_cgroup_target_without_controller, setup),
		cmocka_unit_test_setup(test_refused_cgroups, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
