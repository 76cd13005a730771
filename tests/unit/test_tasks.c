/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/resolve/tasks: processes, names, and perf maps below a /proc of the test. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/resolve/tasks.h"

enum {
	TGID = 100,
	TID = 105,
	NS_TGID = 7,
	TICKS = 5000,
	ID = 11,
	ID_AFTER_EXEC = 12,
	ADDR = 0x1010
};

static char root[] = "/tmp/sonde-tasks-XXXXXX";
static struct task_tables tables;

static void make_dirs(const char *path)
{
	char part[256];

	for (size_t i = 1; i <= strlen(path); i++) {
		if (path[i] != '/' && path[i] != 0)
			continue;
		memcpy(part, path, i);
		part[i] = 0;
		mkdir(part, 0755);
	}
}

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void write_stat(uint32_t pid, uint64_t ticks)
{
	char path[256], text[256];

	snprintf(path, sizeof(path), "%s/%u", root, pid);
	make_dirs(path);
	snprintf(path, sizeof(path), "%s/%u/stat", root, pid);
	snprintf(text, sizeof(text),
		 "%u (x) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 %lu 2 3\n", pid, ticks);
	write_text(path, text);
}

static void write_map(uint32_t pid, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%u/root/tmp", root, pid);
	make_dirs(path);
	snprintf(path, sizeof(path), "%s/%u/root/tmp/perf-%u.map", root, pid, NS_TGID);
	write_text(path, text);
}

static int setup(void **state)
{
	strcpy(root + sizeof(root) - 7, "XXXXXX");
	if (!mkdtemp(root))
		return -1;
	task_tables_init(&tables, root, false);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	task_tables_fini(&tables);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void put_process(uint64_t id, const char *comm, uint32_t now)
{
	struct sonde_process record = { .tgid = TGID,
					.tid = TID,
					.ns_tgid = NS_TGID,
					.euid = geteuid(),
					.start_ns = TICKS * SONDE_NS_PER_TICK + 123 };
	struct event event = { .type = SONDE_RECORD_PROCESS, .id = id, .process = &record };

	memcpy(record.comm, comm, strnlen(comm, sizeof(record.comm)));
	assert_int_equal(task_tables_event(&tables, &event, now), 0);
}

static struct known_process *process(uint64_t id, uint32_t now)
{
	struct known_process *p = known_get(&tables.processes, id, now);

	assert_non_null(p);
	return p;
}

static struct sym_jit *jit(uint64_t id, uint32_t now)
{
	struct sym_jit *j = process_jit(&tables, id, process(id, now), now, UINT64_MAX - 1);

	assert_non_null(j);
	return j;
}

static void check_name(struct sym_jit *j, const char *want)
{
	struct sym_hit hit;

	assert_int_equal(sym_jit_find(j, ADDR, &hit), SYM_OK);
	assert_string_equal(hit.name, want);
}

static void check_unnamed(struct sym_jit *j)
{
	struct sym_hit hit;

	assert_int_equal(sym_jit_find(j, ADDR, &hit), SYM_NO_JIT_MAP);
}

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

/* ---- perf maps ---- */

static void test_perf_map(void **state)
{
	uint32_t version;

	put_process(ID, "jit", 1);
	write_stat(TGID, TICKS);
	check_unnamed(jit(ID, 1));
	write_map(TGID, "1000 20 first\n");
	check_unnamed(jit(ID, 1)); /* once a drain */
	check_name(jit(ID, 2), "first");
	version = sym_jit_version(jit(ID, 2));
	check_name(jit(ID, 3), "first");
	assert_int_equal(sym_jit_version(jit(ID, 3)), version);
	write_map(TGID, "1000 20 first\n1000 20 second\n");
	check_name(jit(ID, 4), "second");
	assert_int_not_equal(sym_jit_version(jit(ID, 4)), version);
}

static void test_leader_has_exited(void **state)
{
	put_process(ID, "jit", 1);
	write_stat(TGID, TICKS);
	write_map(TID, "1000 20 by_thread\n");
	check_name(jit(ID, 1), "by_thread");
}

/* The map of a process that has gone stays, that of its successor is not taken. */
static void test_pid_used_again(void **state)
{
	put_process(ID, "jit", 1);
	write_stat(TGID, TICKS);
	write_map(TGID, "1000 20 mine\n");
	check_name(jit(ID, 1), "mine");
	write_stat(TGID, TICKS + 1);
	write_map(TGID, "1000 20 of_another_process\n");
	check_name(jit(ID, 2), "mine");
}

static void test_pid_used_again_before_the_first_look(void **state)
{
	put_process(ID, "jit", 1);
	write_stat(TGID, TICKS + 1);
	write_map(TGID, "1000 20 of_another_process\n");
	check_unnamed(jit(ID, 1));
}

/* Same pid, same start: only that a newer record is there tells. */
static void test_after_exec(void **state)
{
	put_process(ID, "before", 1);
	write_stat(TGID, TICKS);
	write_map(TGID, "1000 20 before\n");
	check_name(jit(ID, 1), "before");
	put_process(ID_AFTER_EXEC, "after", 2);
	write_map(TGID, "1000 20 after_exec\n");
	check_name(jit(ID, 2), "before");
	check_name(jit(ID_AFTER_EXEC, 2), "after_exec");
}

/* A record that comes again keeps what is known, and the thing is known anew. */
static void test_record_sent_again(void **state)
{
	struct forget_list list = { 0 };
	uint32_t now = 1;

	put_process(ID, "jit", now);
	write_stat(TGID, TICKS);
	write_map(TGID, "1000 20 f\n");
	check_name(jit(ID, now), "f");
	while (list.count == 0 && now < 100)
		known_expire(&tables.processes, ++now, &list);
	assert_int_equal(list.count, 1);
	put_process(ID, "jit", now + 1);
	known_expire(&tables.processes, now + 1, &list);
	known_expire(&tables.processes, now + 2, &list);
	known_expire(&tables.processes, now + 3, &list);
	assert_non_null(process(ID, now + 3)->jit);
	free(list.ids);
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
		cmocka_unit_test_setup_teardown(test_perf_map, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leader_has_exited, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pid_used_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pid_used_again_before_the_first_look, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_after_exec, setup, teardown),
		cmocka_unit_test_setup_teardown(test_record_sent_again, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
