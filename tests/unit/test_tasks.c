/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/resolve/tasks: processes, thread names, cgroups and filters. */
#include "agent/resolve/tasks.h"
#include "tasks_lab.h"

static void test_process(void **state)
{
	put_process(ID, "name", 1);
	assert_int_equal(process(ID, 1)->tgid, TGID);
	assert_int_equal(process(ID, 1)->start_ticks, TICKS);
	assert_string_equal(process(ID, 1)->comm, "name");
}

static void test_dirty_names(void **state)
{
	put_process(1, "a\nb\x1b", 1);
	assert_string_equal(process(1, 1)->comm, "a\\x0ab\\x1b");
	put_process(2, "\xff\xfe\xc3\xa9", 1);
	assert_string_equal(process(2, 1)->comm, "\\xff\\xfe\xc3\xa9");
	put_process(3, "sixteen bytes ab", 1); /* no NUL in it */
	assert_string_equal(process(3, 1)->comm, "sixteen bytes ab");
	put_process(4, "", 1);
	assert_string_equal(process(4, 1)->comm, "");
}

static const struct known_cgroup *cgroup(uint64_t id)
{
	const struct known_cgroup *found = known_get(&tables.cgroups, id, 1);

	assert_non_null(found);
	return found;
}

static void test_thread_and_cgroup(void **state)
{
	const struct sonde_thread_name name = { .comm = "worker\x01" };
	struct event event = { .type = SONDE_RECORD_THREAD_NAME, .id = 1, .thread_name = &name };

	assert_int_equal(task_tables_event(&tables, &event, 1), 0);
	assert_string_equal(known_get(&tables.threads, 1, 1), "worker\\x01");
	event = (struct event){ .type = SONDE_RECORD_CGROUP,
				.id = 1,
				.cgroup.v2 = { "b\n\0a\0\0", 6, 3 } };
	assert_int_equal(task_tables_event(&tables, &event, 1), 0);
	assert_string_equal(cgroup(1)->path, "/a/b\\x0a");
	event = (struct event){ .type = SONDE_RECORD_CGROUP, .id = 2, .cgroup.v2 = { "\0", 1, 1 } };
	assert_int_equal(task_tables_event(&tables, &event, 1), 0);
	assert_string_equal(cgroup(2)->path, "/");
	assert_null(cgroup(2)->container_id);
	event.type = SONDE_RECORD_FILE;
	assert_int_equal(task_tables_event(&tables, &event, 1), -EINVAL);
}

/* ---- cgroups ---- */

#define CONTAINER "8b0a3d5f1c7e92468b0a3d5f1c7e92468b0a3d5f1c7e92468b0a3d5f1c7e9246"
#define POD_UID "5c1a6e7b-0d2f-4c3e-9a8b-7f6e5d4c3b2a"

/* Names of a path, innermost first, each with the NUL behind it. */
#define NAMES(text, names) { text "\0", sizeof(text "\0") - 1, names }
#define ROOT { "\0", 1, 1 }
#define SERVICE NAMES("containerd.service\0system.slice\0", 3)
#define DOCKER NAMES(CONTAINER "\0docker\0", 3)
#define POD NAMES(CONTAINER "\0pod" POD_UID "\0kubepods\0", 4)

static const struct known_cgroup *put_cgroup(uint64_t id, struct path_names v2,
					     struct path_names v1)
{
	struct event event = { .type = SONDE_RECORD_CGROUP, .id = id, .cgroup = { v2, v1 } };

	assert_int_equal(task_tables_event(&tables, &event, 1), 0);
	return cgroup(id);
}

#define PUT(id, v2, v1) put_cgroup(id, (struct path_names)v2, (struct path_names)v1)
#define NO_V1 { NULL, 0, 0 }

static void test_identity(void **state)
{
	const struct known_cgroup *c = PUT(1, POD, NO_V1);

	assert_string_equal(c->path, "/kubepods/pod" POD_UID "/" CONTAINER);
	assert_string_equal(c->container_id, CONTAINER);
	assert_string_equal(c->pod_uid, POD_UID);
	assert_null(c->unit);
	c = PUT(2, SERVICE, NO_V1);
	assert_string_equal(c->unit, "containerd.service");
	assert_null(c->container_id);
	assert_null(c->pod_uid);
	/* As systemctl shows it, while a path keeps what could be mistaken for an escape apart. */
	c = PUT(3, NAMES("a\\x2db.service\0system.slice\0", 3), NO_V1);
	assert_string_equal(c->unit, "a\\x2db.service");
	c = PUT(4, NAMES("a\xff.service\0system.slice\0", 3), NO_V1);
	assert_string_equal(c->unit, "a\\xff.service");
	c = PUT(5, NAMES("lxc.payload.a\n\0", 2), NO_V1);
	assert_string_equal(c->container_id, "a\\x0a");
	assert_false(c->refused);
}

/* Hybrid hosts: an older runtime moves its containers under v1 only (M-01). */
static void test_hybrid(void **state)
{
	assert_string_equal(PUT(1, ROOT, DOCKER)->container_id, CONTAINER);
	assert_string_equal(PUT(2, SERVICE, DOCKER)->container_id, CONTAINER);
	assert_string_equal(PUT(2, SERVICE, DOCKER)->path, "/docker/" CONTAINER);
	assert_string_equal(PUT(3, DOCKER, SERVICE)->path, "/docker/" CONTAINER);
	assert_string_equal(PUT(4, DOCKER, DOCKER)->path, "/docker/" CONTAINER);
	assert_string_equal(PUT(5, SERVICE, ROOT)->unit, "containerd.service");
	assert_string_equal(PUT(6, SERVICE, NAMES("a\0", 2))->unit, "containerd.service");
	assert_string_equal(PUT(7, ROOT, NAMES("a\0", 2))->path, "/a");
	assert_string_equal(PUT(8, NAMES("b\0", 2), NAMES("a\0", 2))->path, "/b");
}

static void check_filter(const char *containers, const char *pods, bool docker, bool pod)
{
	tables.filter = (struct cgroup_filter){ containers, pods };
	tables.refused.count = 0;
	assert_int_equal(PUT(1, DOCKER, NO_V1)->refused, !docker);
	assert_int_equal(PUT(2, POD, NO_V1)->refused, !pod);
	assert_true(PUT(3, SERVICE, NO_V1)->refused);
	assert_true(PUT(4, ROOT, NO_V1)->refused);
	assert_int_equal(tables.refused.count, 2 + !docker + !pod);
	assert_int_equal(tables.refused.ids[tables.refused.count - 1], 4);
}

static void test_filter(void **state)
{
	check_filter(CONTAINER, NULL, true, true);
	check_filter("8b0a3d5f1c7e", NULL, true, true);
	check_filter("8b0a3d5f1c7f", NULL, false, false);
	check_filter("aa,8b,cc", NULL, true, true);
	check_filter(CONTAINER "0", NULL, false, false);
	check_filter(NULL, POD_UID, false, true);
	check_filter(NULL, "5c1a6e7b", false, true);
	check_filter(NULL, "x,5c1a6e7b-0d2f-", false, true);
	check_filter("xx", "5c1a", false, true);
	check_filter(NULL, "", false, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dirty_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_thread_and_cgroup, setup, teardown),
		cmocka_unit_test_setup_teardown(test_identity, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hybrid, setup, teardown),
		cmocka_unit_test_setup_teardown(test_filter, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
