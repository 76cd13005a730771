/* SPDX-License-Identifier: Apache-2.0 */
/* Perf maps that grow, are written anew or replaced: what lay at an address, and when. */
#include "perf_map_lab.h"

#include <time.h>

#include "base/clock.h"
#include "symbolizer/symbolizer.h"

/* Reads on, with samples since from_ns. */
static int refresh(struct sym_perfmap *map, uint64_t from_ns)
{
	int fd = open_proc("proc/77"), err;

	err = sym_perfmap_refresh(map, fd, 5, getuid(), from_ns);
	close(fd);
	return err;
}

/* The file's time stamp, as seconds ago: what a reading knows of when lines were written. */
static void set_age(long seconds)
{
	struct timespec t[2];

	clock_gettime(CLOCK_REALTIME, &t[0]);
	t[0].tv_sec -= seconds;
	t[1] = t[0];
	assert_int_equal(utimensat(AT_FDCWD, "proc/77/root/tmp/perf-5.map", t, 0), 0);
}

static uint64_t seconds_ago(uint64_t seconds)
{
	return clock_monotonic() - seconds * NSEC_PER_SEC;
}

static void growing_file_is_read_on(void **state)
{
	struct sym_perfmap *map;

	make_process();
	write_map("1000 10 a\nbad\n2000 10 half");
	set_age(100);
	assert_int_equal(load(getuid(), &map), 0);
	assert_string_equal(name_at(map, 0x1000), "a");
	assert_string_equal(name_at(map, 0x2000), "-");
	assert_int_equal(sym_perfmap_bad_lines(map), 1);
	assert_int_equal(refresh(map, seconds_ago(50)), 0);
	lab_run("printf '_done\n3000 10 b\n' >>proc/77/root/tmp/perf-5.map");
	assert_int_equal(refresh(map, seconds_ago(50)), 1);
	assert_string_equal(name_at(map, 0x1000), "a");
	assert_string_equal(name_at(map, 0x2000), "half_done");
	assert_string_equal(name_at(map, 0x3000), "b");
	assert_int_equal(sym_perfmap_bad_lines(map), 1);
	/* The process is gone: what was read is the best there is. */
	lab_run("rm -rf proc && mkdir -p proc/77");
	assert_int_equal(refresh(map, seconds_ago(50)), -ENOENT);
	assert_string_equal(name_at(map, 0x3000), "b");
	sym_perfmap_free(map);
}

/* Who was there when a sample was taken nobody knows; later it is the newer one. */
static void reused_address_has_no_name_meanwhile(void **state)
{
	struct sym_perfmap *map;

	make_process();
	write_map("1000 10 old\n2000 10 same\n");
	set_age(100);
	assert_int_equal(load(getuid(), &map), 0);
	lab_run("printf '1008 10 new\n2000 10 same\n3000 10 x\n3000 10 y\n' "
		">>proc/77/root/tmp/perf-5.map");
	set_age(20);
	assert_int_equal(refresh(map, seconds_ago(50)), 1);
	assert_true(sym_perfmap_is_moving(map, seconds_ago(50)));
	assert_int_equal(reason_at(map, 0x1008, seconds_ago(50)), SYM_JIT_CHANGED);
	assert_int_equal(reason_at(map, 0x1007, seconds_ago(50)), SYM_OK);
	assert_int_equal(reason_at(map, 0x1017, seconds_ago(50)), SYM_OK);
	assert_int_equal(reason_at(map, 0x2000, seconds_ago(50)), SYM_OK);
	assert_int_equal(reason_at(map, 0x3000, seconds_ago(50)), SYM_JIT_CHANGED);
	assert_false(sym_perfmap_is_moving(map, seconds_ago(10)));
	assert_int_equal(reason_at(map, 0x1008, seconds_ago(10)), SYM_OK);
	assert_string_equal(name_at(map, 0x1008), "new");
	assert_string_equal(name_at(map, 0x3000), "y");
	sym_perfmap_free(map);
}

/* As jcmd does it: the same file, from its head. */
static void rewritten_file_replaces_all(void **state)
{
	struct sym_perfmap *map;

	make_process();
	write_map("1000 10 gone\n2000 10 stays\n3000 10 before\n");
	set_age(100);
	assert_int_equal(load(getuid(), &map), 0);
	write_map("3000 10 after!\n2000 10 stays\n4000 10 fresh\n5000 10 fresh2\n");
	set_age(20);
	assert_int_equal(refresh(map, seconds_ago(50)), 1);
	assert_int_equal(reason_at(map, 0x1000, seconds_ago(50)), SYM_JIT_CHANGED);
	assert_int_equal(reason_at(map, 0x2000, seconds_ago(50)), SYM_OK);
	assert_int_equal(reason_at(map, 0x3000, seconds_ago(50)), SYM_JIT_CHANGED);
	assert_int_equal(reason_at(map, 0x4000, seconds_ago(50)), SYM_OK);
	assert_int_equal(reason_at(map, 0x1000, seconds_ago(10)), SYM_NOT_COVERED);
	assert_string_equal(name_at(map, 0x3000), "after!");
	/* Emptied: nothing is left to say. */
	write_map("");
	set_age(5);
	assert_int_equal(refresh(map, seconds_ago(10)), 1);
	assert_int_equal(reason_at(map, 0x2000, seconds_ago(10)), SYM_JIT_CHANGED);
	assert_int_equal(reason_at(map, 0x2000, seconds_ago(1)), SYM_NOT_COVERED);
	sym_perfmap_free(map);
}

/* Another file of the same length and time stamp is another file. */
static void replaced_file_is_read_anew(void **state)
{
	struct sym_perfmap *map;

	make_process();
	write_map("1000 10 one\n");
	set_age(100);
	assert_int_equal(load(getuid(), &map), 0);
	lab_run("mv proc/77/root/tmp/perf-5.map proc/77/root/tmp/other");
	write_map("1000 10 two\n");
	set_age(100);
	assert_int_equal(refresh(map, seconds_ago(50)), 1);
	assert_string_equal(name_at(map, 0x1000), "two");
	sym_perfmap_free(map);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(growing_file_is_read_on),
		cmocka_unit_test(reused_address_has_no_name_meanwhile),
		cmocka_unit_test(rewritten_file_replaces_all),
		cmocka_unit_test(replaced_file_is_read_anew),
	};

	return cmocka_run_group_tests_name("perf_map_growth", tests, lab_open, lab_close);
}
