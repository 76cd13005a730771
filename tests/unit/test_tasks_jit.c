/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/resolve/tasks: perf maps, read by the reader, below a /proc of the test. */
#include "agent/resolve/tasks.h"
#include "tasks_lab.h"

/* Until the reader has looked at all that it was given. */
static void settle(uint32_t now)
{
	struct pollfd results = { .fd = reader_fd(reader), .events = POLLIN };
	struct read_result result;

	while (tables.jits_away) {
		assert_int_equal(poll(&results, 1, -1), 1);
		assert_true(reader_next(reader, &result));
		assert_int_equal(result.part, READ_JIT);
		task_tables_take_jit(&tables, &result, now);
	}
}

static void look(uint64_t id, uint32_t now)
{
	process_look_at_jit(&tables, id, process(id, now), now, UINT64_MAX - 1);
}

static struct sym_jit *jit(uint64_t id, uint32_t now)
{
	static struct reader *started;

	if (started != reader)
		assert_int_equal(reader_start(reader), 0);
	started = reader;
	look(id, now);
	settle(now);
	assert_false(process_jit_is_read(process(id, now)));
	assert_non_null(process_jit(process(id, now)));
	return process_jit(process(id, now));
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

/* Counted once, however often the file is looked at, and whatever becomes of its process. */
static void test_bad_lines(void **state)
{
	put_process(ID, "jit", 1);
	write_stat(TGID, TICKS);
	write_map(TGID, "1000 20 first\nno line\nneither\n");
	check_name(jit(ID, 1), "first");
	assert_int_equal(tables.jit_bad.map_lines, 2);
	check_name(jit(ID, 2), "first");
	assert_int_equal(tables.jit_bad.map_lines, 2);
	write_map(TGID, "1000 20 first\nno line\nneither\n1000 20 second\nnor this\n");
	look(ID, 3);
	put_process(ID_AFTER_EXEC, "after", 3);
	settle(3);
	assert_null(process_jit(process(ID, 3)));
	assert_int_equal(tables.jit_bad.map_lines, 3);
	assert_int_equal(tables.jit_bad.dump_records, 0);
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

/* Nobody else has it while it is looked at; what was sampled since then needs another look. */
static void test_while_it_is_read(void **state)
{
	put_process(ID, "jit", 1);
	write_stat(TGID, TICKS);
	write_map(TGID, "1000 20 first\n");
	look(ID, 1);
	assert_true(process_jit_is_read(process(ID, 1)));
	assert_null(process_jit(process(ID, 1)));
	look(ID, 1);
	assert_int_equal(tables.jits_away, 1);
	look(ID, 2);
	assert_int_equal(tables.jits_away, 1);
	assert_int_equal(reader_start(reader), 0);
	settle(2);
	assert_true(process_jit_is_read(process(ID, 2)));
	assert_null(process_jit(process(ID, 2)));
	write_map(TGID, "1000 20 first\n1000 20 second\n");
	look(ID, 2);
	settle(2);
	assert_false(process_jit_is_read(process(ID, 2)));
	check_name(process_jit(process(ID, 2)), "second");
}

static void test_no_room_in_the_reader(void **state)
{
	write_stat(TGID, TICKS);
	write_map(TGID, "1000 20 f\n");
	for (uint64_t id = 1000; id < 1000 + READER_MAX_JOBS; id++) {
		put_process(id, "jit", 1);
		look(id, 1);
	}
	put_process(ID, "jit", 1);
	look(ID, 1);
	assert_int_equal(tables.jits_away, READER_MAX_JOBS);
	assert_true(process_jit_is_read(process(ID, 1)));
	assert_int_equal(reader_start(reader), 0);
	settle(1);
	assert_null(process_jit(process(ID, 1)));
	look(ID, 1);
	settle(1);
	check_name(process_jit(process(ID, 1)), "f");
}

/* What comes back of a process that is not known any more belongs to nobody. */
static void test_forgotten_while_it_is_read(void **state)
{
	struct forget_list list = { 0 };

	put_process(ID, "jit", 1);
	write_stat(TGID, TICKS);
	write_map(TGID, "1000 20 f\n");
	look(ID, 1);
	for (uint32_t now = 2; known_age(&tables.processes, ID, now) != UINT32_MAX; now++) {
		assert_true(now < 100);
		known_expire(&tables.processes, now, &list);
	}
	put_process(ID, "jit", 100);
	look(ID, 100);
	assert_int_equal(tables.jits_away, 2);
	assert_int_equal(reader_start(reader), 0);
	settle(100);
	check_name(process_jit(process(ID, 100)), "f");
	free(list.ids);
}

/* The files may have been those of the new program already. */
static void test_exec_while_it_is_read(void **state)
{
	put_process(ID, "before", 1);
	write_stat(TGID, TICKS);
	write_map(TGID, "1000 20 after_exec\n");
	look(ID, 1);
	put_process(ID_AFTER_EXEC, "after", 1);
	assert_int_equal(reader_start(reader), 0);
	settle(1);
	assert_null(process_jit(process(ID, 1)));
	assert_int_equal(tables.jit_bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_while_it_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_room_in_the_reader, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forgotten_while_it_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exec_while_it_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_perf_map, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leader_has_exited, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pid_used_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pid_used_again_before_the_first_look, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_after_exec, setup, teardown),
		cmocka_unit_test_setup_teardown(test_record_sent_again, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
