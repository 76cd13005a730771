/* SPDX-License-Identifier: Apache-2.0 */
/* What is told once of processes, threads and cgroups, and told again when refused. */
#include "lab.h"

#include <stdio.h>

static struct lab_process p;

static int setup(void **state)
{
	host_reset();
	lab_process(&p, 100, 0, NULL, NULL);
	return 0;
}

/* ---- processes ---- */

static void test_process_record(void **state)
{
	const struct sonde_process *record;
	struct task_struct *thread = world_thread(p.task, 105, "worker");
	struct cred *cred = host_ptr((__u64)p.task->real_cred);

	cred->euid.val = 1001;
	p.task->self_exec_id = 3;
	thread->self_exec_id = 3;
	world_set_ns_pid(p.task, 2, 42);
	p.task = thread;
	lab_take(&p);
	lab_take(&p);
	assert_int_equal(ring_count(SONDE_RECORD_PROCESS), 1);
	record = ring_record(SONDE_RECORD_PROCESS, 0);
	assert_int_equal(record->tgid, 100);
	assert_int_equal(record->tid, 105);
	assert_int_equal(record->exec_id, 3);
	assert_int_equal(record->start_ns, 100000000000);
	assert_int_equal(record->ns_tgid, 42);
	assert_int_equal(record->euid, 1001);
	assert_string_equal(record->comm, "proc"); /* the leader's */
	assert_int_equal(record->exe_file, file_record(1000)->head.id);
	assert_int_equal(lab_key(NULL)->process, record->head.id);
}

static void test_pid_of_the_first_namespace(void **state)
{
	world_set_ns_pid(p.task, 0, 0);
	lab_take(&p);
	assert_int_equal(((const struct sonde_process *)ring_record(SONDE_RECORD_PROCESS, 0))->ns_tgid,
			 100);
}

/* All threads are one process; a PID used again and an exec are others. */
static void test_process_ids(void **state)
{
	struct task_struct *leader = p.task;

	lab_take(&p);
	p.task = world_thread(leader, 101, "thread");
	lab_take(&p);
	assert_int_equal(ring_count(SONDE_RECORD_PROCESS), 1);
	p.task = leader;
	p.task->self_exec_id++;
	lab_take(&p);
	assert_int_equal(ring_count(SONDE_RECORD_PROCESS), 2);
	p.task->start_boottime++;
	lab_take(&p);
	assert_int_equal(ring_count(SONDE_RECORD_PROCESS), 3);
	assert_int_equal(map_count_entries(&counts_0), 3);
	assert_int_equal(ring_count(SONDE_RECORD_USER_STACK), 1);
}

static void test_kernel_thread(void **state)
{
	const struct sonde_process *record;

	p.task = world_kthread(2, "kthreadd");
	lab_begin(&p, LAB_CODE);
	lab_sample_kernel(&p);
	record = ring_record(SONDE_RECORD_PROCESS, 0);
	assert_int_equal(record->exe_file, 0);
	assert_string_equal(record->comm, "kthreadd");
	assert_int_equal(ring_count(SONDE_RECORD_FILE), 0);
}

static void test_refused_facts_are_sent_again(void **state)
{
	const struct sonde_count_key *key;

	host.ring_refusals = 2; /* cgroup, executable; the rest is taken */
	lab_take(&p);
	assert_int_equal(counter(SONDE_COUNT_FACT_RETRY), 1);
	assert_int_equal(counter(SONDE_COUNT_FILE_RETRY), 1);
	assert_int_equal(ring_count(SONDE_RECORD_CGROUP), 0);
	assert_int_equal(ring_count(SONDE_RECORD_PROCESS), 1);
	key = lab_key(NULL);
	lab_take(&p);
	assert_non_null(ring_find(SONDE_RECORD_CGROUP, key->cgroup));
	assert_int_equal(ring_count(SONDE_RECORD_PROCESS), 1);
	assert_int_equal(counter(SONDE_COUNT_KEPT), 2);
	assert_int_equal(map_count_entries(&counts_0), 1);
}

static void test_full_map_of_facts(void **state)
{
	map_limit(&seen_facts, 0);
	lab_take(&p);
	lab_take(&p);
	assert_int_equal(counter(SONDE_COUNT_FACT_RETRY), 4);
	assert_int_equal(ring_count(SONDE_RECORD_PROCESS), 2);
	assert_int_equal(counter(SONDE_COUNT_KEPT), 2);
}

/* ---- threads ---- */

static void test_thread_names(void **state)
{
	struct task_struct *leader = p.task;
	const struct sonde_thread_name *record;

	lab_take(&p);
	assert_int_equal(lab_key(NULL)->thread, 0);
	setup(NULL);
	leader = p.task;
	host_settings()->thread_names = 1;
	p.task = world_thread(leader, 101, "worker");
	lab_take(&p);
	record = ring_record(SONDE_RECORD_THREAD_NAME, 0);
	assert_string_equal(record->comm, "worker");
	assert_int_equal(lab_key(NULL)->thread, record->head.id);
	p.task = world_thread(leader, 102, "worker");
	lab_take(&p);
	assert_int_equal(map_count_entries(&counts_0), 1);
	p.task = world_thread(leader, 103, "worker2");
	lab_take(&p);
	assert_int_equal(map_count_entries(&counts_0), 2);
	assert_int_equal(ring_count(SONDE_RECORD_THREAD_NAME), 2);
}

/* ---- cgroups ---- */

static const struct sonde_cgroup *cgroup_of(struct cgroup *v2, struct cgroup *pids,
					    struct cgroup *memory)
{
	const struct sonde_cgroup *record;

	if (map_count_entries(&counts_0))
		bpf_map_delete_elem(&counts_0, lab_key(NULL));
	world_set_cgroups(p.task, v2, pids, memory);
	lab_take(&p);
	record = ring_find(SONDE_RECORD_CGROUP, lab_key(NULL)->cgroup);
	assert_non_null(record);
	assert_int_equal(record->head.size, 32 + record->names_size);
	return record;
}

/* Both paths of a record: names of v2, then those of v1. */
static void check_both(const struct sonde_cgroup *record, __u32 v2_count, __u32 v1_count,
		       const char *names, size_t size)
{
	assert_int_equal(record->v2_count, v2_count);
	assert_int_equal(record->v1_count, v1_count);
	assert_int_equal(record->names_size, size);
	assert_memory_equal(record->names, names, size);
}

#define CHECK_BOTH(record, v2, v1, names) check_both(record, v2, v1, names, sizeof(names) - 1)

static void check_choice(void)
{
	struct cgroup *v2_root = world_cgroup(NULL, 0, 1, "");
	struct cgroup *v2 = world_cgroup(world_cgroup(v2_root, 0, 20, "system.slice"), 0, 21, "a.service");
	struct cgroup *pids_root = world_cgroup(NULL, 4, 1, "");
	struct cgroup *pids = world_cgroup(world_cgroup(pids_root, 4, 30, "docker"), 4, 31, "0123");
	struct cgroup *memory = world_cgroup(world_cgroup(NULL, 5, 1, ""), 5, 40, "m");

	CHECK_BOTH(cgroup_of(v2, pids, memory), 3, 3, "a.service\0system.slice\0\0" "0123\0docker\0\0");
	CHECK_BOTH(cgroup_of(v2_root, pids, memory), 1, 3, "\0" "0123\0docker\0\0");
	CHECK_BOTH(cgroup_of(v2_root, pids_root, memory), 1, 0, "\0");
	CHECK_BOTH(cgroup_of(v2, pids_root, memory), 3, 0, "a.service\0system.slice\0\0");
	CHECK_BOTH(cgroup_of(v2_root, v2, v2), 1, 0, "\0"); /* the controller is on v2 */
	CHECK_BOTH(cgroup_of(v2, NULL, NULL), 3, 0, "a.service\0system.slice\0\0");
	host.has_pids = false;
	CHECK_BOTH(cgroup_of(v2_root, pids, memory), 1, 2, "\0" "m\0\0");
	host.has_memory = false;
	CHECK_BOTH(cgroup_of(v2, pids, memory), 3, 0, "a.service\0system.slice\0\0");
}

static void test_choice_of_the_cgroup(void **state)
{
	check_choice();
	setup(NULL);
	host.kernfs_rcu_parent = false;
	check_choice();
}

/* A task that moves in either hierarchy is elsewhere; equal numbers in two are two cgroups. */
static void test_cgroup_ids(void **state)
{
	struct cgroup *root = world_cgroup(NULL, 0, 1, "");
	struct cgroup *a = world_cgroup(root, 0, 33, "a");
	struct cgroup *b = world_cgroup(world_cgroup(NULL, 7, 1, ""), 7, 33, "b");
	struct cgroup *c = world_cgroup(world_cgroup(NULL, 8, 1, ""), 8, 33, "c");
	__u64 ids[] = {
		cgroup_of(a, NULL, NULL)->head.id, cgroup_of(root, NULL, NULL)->head.id,
		cgroup_of(root, b, NULL)->head.id, cgroup_of(a, b, NULL)->head.id,
		cgroup_of(a, c, NULL)->head.id,
	};

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(ids[i], ids[j]);
	}
	assert_int_equal(cgroup_of(a, b, NULL)->head.id, ids[3]);
	assert_int_equal(ring_count(SONDE_RECORD_CGROUP), ARRAY_SIZE(ids));
}

static void test_deep_cgroup(void **state)
{
	struct cgroup *group = world_cgroup(NULL, 0, 1, "");
	const struct sonde_cgroup *record;
	char name[256];

	for (int i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "%0240d", i);
		group = world_cgroup(group, 0, 100 + (__u64)i, name);
	}
	record = cgroup_of(group, NULL, NULL);
	assert_int_equal(record->v2_count, 17);
	assert_string_equal(record->names, name);
	assert_true(record->names_size <= sizeof(record->names));
	/* No room is left for another path. */
	record = cgroup_of(group, world_cgroup(world_cgroup(NULL, 7, 1, ""), 7, 33, "b"), NULL);
	assert_int_equal(record->v2_count, 17);
	assert_int_equal(record->v1_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_process_record, setup),
		cmocka_unit_test_setup(test_pid_of_the_first_namespace, setup),
		cmocka_unit_test_setup(test_process_ids, setup),
		cmocka_unit_test_setup(test_kernel_thread, setup),
		cmocka_unit_test_setup(test_refused_facts_are_sent_again, setup),
		cmocka_unit_test_setup(test_full_map_of_facts, setup),
		cmocka_unit_test_setup(test_thread_names, setup),
		cmocka_unit_test_setup(test_choice_of_the_cgroup, setup),
		cmocka_unit_test_setup(test_cgroup_ids, setup),
		cmocka_unit_test_setup(test_deep_cgroup, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
