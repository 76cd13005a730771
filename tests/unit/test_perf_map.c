/* SPDX-License-Identifier: Apache-2.0 */
/* Perf maps: what the lines mean, and which files are trusted. Run as root for all of it. */
#include "perf_map_lab.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "symbolizer/symbolizer.h"

static struct sym_perfmap *parse(const char *text)
{
	struct sym_perfmap *map = NULL;

	assert_int_equal(sym_perfmap_parse(text, strlen(text), &map), 0);
	return map;
}

static void lines_of_all_writers(void **state)
{
	struct sym_perfmap *map = parse("7f00001000 20 LazyCompile:~run /app/a b.js:1\n"
					"0x00007f0000002000 0x00000010 java.lang.String;;hash(I)\n"
					"0X3000 0XA0 py::f:/x.py\r\n"
					"4000 10   indented\n"
					"5000 10 _ZN3foo3barEv\n"
					"6000 10 JS:*f /node_modules/@scope/x.js:1:2\n");
	struct sym_hit hit;

	assert_int_equal(sym_perfmap_bad_lines(map), 0);
	assert_string_equal(name_at(map, 0x7f0000101f), "LazyCompile:~run /app/a b.js:1");
	assert_string_equal(name_at(map, 0x7f00001020), "-");
	assert_string_equal(name_at(map, 0x7f00000fff), "-");
	assert_string_equal(name_at(map, 0x7f0000002008), "java.lang.String;;hash(I)");
	assert_string_equal(name_at(map, 0x309f), "py::f:/x.py");
	assert_string_equal(name_at(map, 0x4000), "indented");
	assert_int_equal(sym_perfmap_find(map, 0x5004, UINT64_MAX, &hit), SYM_OK);
	assert_string_equal(hit.name, "foo::bar()");
	assert_string_equal(hit.raw_name, "_ZN3foo3barEv");
	assert_int_equal(hit.start, 0x5000);
	assert_string_equal(name_at(map, 0x6000), "JS:*f /node_modules/@scope/x.js:1:2");
	assert_true(sym_perfmap_bytes(map) > 100);
	sym_perfmap_free(map);
}

static void bad_lines_are_counted(void **state)
{
	static const char *const bad[] = { "",
					   "1000",
					   "1000 10",
					   "1000 10 ",
					   "1000  ",
					   "g000 10 x",
					   "1000 zz x",
					   "1000 0 empty",
					   "1000 -1 x",
					   "0x 10 x",
					   "11112222333344445 10 x",
					   "1000\t10\tx",
					   " 1000 10 x",
					   "ffffffffffffffff 10 wraps",
					   "1000 10 \r" };
	enum { COUNT = sizeof(bad) / sizeof(bad[0]) };
	struct sym_perfmap *map;
	char text[1024] = "";

	for (size_t i = 0; i < COUNT; i++) {
		strcat(text, bad[i]);
		strcat(text, "\n");
	}
	strcat(text, "2000 10 good\n");
	map = parse(text);
	assert_int_equal(sym_perfmap_bad_lines(map), COUNT);
	assert_string_equal(name_at(map, 0x1000), "-");
	assert_string_equal(name_at(map, 0x2000), "good");
	sym_perfmap_free(map);
}

/* The writer may be in the middle of the last line. */
static void unfinished_line_waits(void **state)
{
	struct sym_perfmap *map = parse("1000 10 whole\n2000 10 hal");

	assert_string_equal(name_at(map, 0x1000), "whole");
	assert_string_equal(name_at(map, 0x2000), "-");
	assert_int_equal(sym_perfmap_bad_lines(map), 0);
	sym_perfmap_free(map);
	map = parse("");
	assert_string_equal(name_at(map, 0), "-");
	sym_perfmap_free(map);
}

static void later_line_wins(void **state)
{
	struct sym_perfmap *map = parse("1000 100 old\n1080 100 newer\n1000 10 newest\n"
					"3000 100 a\n3000 100 b\n"
					"4040 10 hidden\n4000 100 over\n");

	assert_string_equal(name_at(map, 0x1000), "newest");
	assert_string_equal(name_at(map, 0x1010), "old");
	assert_string_equal(name_at(map, 0x107f), "old");
	assert_string_equal(name_at(map, 0x1080), "newer");
	assert_string_equal(name_at(map, 0x117f), "newer");
	assert_string_equal(name_at(map, 0x3050), "b");
	assert_string_equal(name_at(map, 0x4048), "over");
	sym_perfmap_free(map);
}

static void strange_bytes(void **state)
{
	static const char text[] =
		"1000 10 a\xff\x01;b\n2000 10 cut\0behind\n3000 10 \0\n\0\n4000 10 ok\n";
	struct sym_perfmap *map;

	assert_int_equal(sym_perfmap_parse(text, sizeof(text) - 1, &map), 0);
	assert_string_equal(name_at(map, 0x1000), "a\xff\x01;b");
	assert_string_equal(name_at(map, 0x2000), "cut");
	assert_string_equal(name_at(map, 0x3000), "-");
	assert_string_equal(name_at(map, 0x4000), "ok");
	assert_int_equal(sym_perfmap_bad_lines(map), 2);
	sym_perfmap_free(map);
}

static void loads_from_the_target_root(void **state)
{
	struct sym_perfmap *map = NULL;

	make_process();
	assert_int_equal(load(getuid(), &map), -ENOENT);
	lab_run("mkdir proc/78");
	assert_int_equal(load_at("proc/78", 5, 0, &map), -ENOENT);
	write_map("1000 10 name\n");
	assert_int_equal(load(getuid(), &map), 0);
	assert_string_equal(name_at(map, 0x1001), "name");
	sym_perfmap_free(map);
}

static void owner_must_fit(void **state)
{
	struct sym_perfmap *map = NULL;

	if (getuid() != 0) {
		print_message("# skip: needs root\n");
		skip();
	}
	make_process();
	write_map("1000 10 a\n");
	assert_int_equal(chown("proc/77/root/tmp/perf-5.map", 1234, 1234), 0);
	assert_int_equal(load(1235, &map), -EPERM);
	assert_int_equal(load(0, &map), -EPERM);
	assert_int_equal(load(1234, &map), 0);
	sym_perfmap_free(map);
	assert_int_equal(chown("proc/77/root/tmp/perf-5.map", 0, 0), 0);
	assert_int_equal(load(1234, &map), 0);
	sym_perfmap_free(map);
}

static void only_regular_files(void **state)
{
	static const char *const makers[] = { "mkfifo proc/77/root/tmp/perf-5.map",
					      "mkdir proc/77/root/tmp/perf-5.map",
					      "ln -s /etc/passwd proc/77/root/tmp/perf-5.map",
					      "ln -s ../secret/map proc/77/root/tmp/perf-5.map" };
	struct sym_perfmap *map = NULL;

	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
		make_process();
		lab_text("proc/77/root/secret/map", "1000 10 secret\n");
		lab_run("%s", makers[i]);
		assert_int_equal(load(getuid(), &map), -EPERM);
		assert_null(map);
	}
	if (getuid() != 0)
		return;
	make_process();
	lab_run("mknod proc/77/root/tmp/perf-5.map c 1 5"); /* /dev/zero, endless */
	assert_int_equal(load(0, &map), -EPERM);
}

/* A link in place of /tmp may point where it likes: it is resolved inside the target's root. */
static void links_stay_in_the_root(void **state)
{
	struct sym_perfmap *map = NULL;

	make_process();
	lab_run("mkdir outside && echo 1000 10 outside >outside/perf-5.map"
		" && rmdir proc/77/root/tmp && ln -s %s/outside proc/77/root/tmp",
		lab_dir);
	assert_int_equal(load(getuid(), &map), -EPERM); /* inside, it leads to itself */
	lab_run("rm proc/77/root/tmp && ln -s ../../../outside proc/77/root/tmp");
	assert_int_equal(load(getuid(), &map), -ENOENT);
	lab_run("rm proc/77/root/tmp && ln -s /secret proc/77/root/tmp"
		" && echo 1000 10 inside >proc/77/root/secret/perf-5.map");
	assert_int_equal(load(getuid(), &map), 0);
	assert_string_equal(name_at(map, 0x1000), "inside");
	sym_perfmap_free(map);
	lab_run("rm -r outside");
}

static void size_is_bounded(void **state)
{
	struct sym_perfmap *map = NULL;

	make_process();
	/* 10 GB of nothing, then a line: the end is read, and what it does not tell has a reason. */
	write_map("1000 10 a\n");
	assert_int_equal(truncate("proc/77/root/tmp/perf-5.map", 10LL << 30), 0);
	lab_run("printf '\n2000 10 b\n' >>proc/77/root/tmp/perf-5.map");
	assert_int_equal(load(getuid(), &map), 0);
	assert_string_equal(name_at(map, 0x2000), "b");
	assert_int_equal(reason_at(map, 0x1000, UINT64_MAX), SYM_JIT_UNREAD);
	assert_true(sym_perfmap_bytes(map) < 4096);
	sym_perfmap_free(map);
	/* Ten megabytes without an end of line, then a good one. */
	write_map("1000 10 a\n");
	assert_int_equal(truncate("proc/77/root/tmp/perf-5.map", 10 << 20), 0);
	lab_run("printf '\\n2000 10 b\\n' >>proc/77/root/tmp/perf-5.map");
	assert_int_equal(load(getuid(), &map), 0);
	assert_string_equal(name_at(map, 0x1000), "a");
	assert_string_equal(name_at(map, 0x2000), "b");
	assert_int_equal(sym_perfmap_bad_lines(map), 1);
	sym_perfmap_free(map);
}

static void long_files_are_read_in_pieces(void **state)
{
	struct sym_perfmap *map;
	char expected[64];

	make_process();
	lab_run("seq 1 20000 | awk '{ printf \"%%x 10 function_number_%%d\\n\", $1 * 16, $1 }'"
		" >proc/77/root/tmp/perf-5.map");
	assert_int_equal(load(getuid(), &map), 0);
	assert_int_equal(sym_perfmap_bad_lines(map), 0);
	for (unsigned int i = 1; i <= 20000; i++) {
		snprintf(expected, sizeof(expected), "function_number_%u", i);
		assert_string_equal(name_at(map, i * 16 + 15), expected);
	}
	sym_perfmap_free(map);
}

/* A real process with its own pid and mount namespace, and /proc as the kernel has it. */
static void inside_namespaces(void **state)
{
	struct sym_perfmap *map = NULL;
	char path[32];
	int ready[2];
	pid_t pid;
	char byte;

	if (getuid() != 0) {
		print_message("# skip: needs root\n");
		skip();
	}
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char command[256];

		snprintf(command, sizeof(command),
			 "exec unshare --mount sh -c 'mount -t tmpfs none /tmp &&"
			 " echo 1000 10 in_container >/tmp/perf-1.map && echo >&%d; exec sleep 60'",
			 ready[1]);
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	snprintf(path, sizeof(path), "/proc/%d", pid);
	assert_int_equal(load_at(path, 1, 0, &map), 0);
	assert_string_equal(name_at(map, 0x1000), "in_container");
	assert_int_equal(load_at("/proc/self", 1, 0, &map), -ENOENT);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	sym_perfmap_free(map);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_all_writers),
		cmocka_unit_test(bad_lines_are_counted),
		cmocka_unit_test(unfinished_line_waits),
		cmocka_unit_test(later_line_wins),
		cmocka_unit_test(strange_bytes),
		cmocka_unit_test(loads_from_the_target_root),
		cmocka_unit_test(owner_must_fit),
		cmocka_unit_test(only_regular_files),
		cmocka_unit_test(links_stay_in_the_root),
		cmocka_unit_test(size_is_bounded),
		cmocka_unit_test(long_files_are_read_in_pieces),
		cmocka_unit_test(inside_namespaces),
	};

	return cmocka_run_group_tests_name("perf_map", tests, lab_open, lab_close);
}
