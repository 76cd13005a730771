/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of a mapped file: once, and again when it was refused or forgotten. */
#include "lab.h"

#include <stdio.h>

static struct lab_process p;

static int setup(void **state)
{
	host_reset();
	lab_process(&p, 100, 0, NULL, NULL);
	return 0;
}

/* From anonymous code, since the walk does not go on from a file whose table is on its way. */
static void take(void)
{
	lab_begin(&p, LAB_JIT + 0x100);
	lab_end(&p, LAB_LIB + 0x200);
	lab_sample(&p);
	lab_check_books();
}

static void test_file_record(void **state)
{
	const struct sonde_file *lib, *exe;

	take();
	lib = file_record(2000);
	assert_non_null(lib);
	assert_int_equal(lib->dev, LAB_DEV);
	assert_int_equal(lib->generation, 7);
	assert_int_equal(lib->mtime_sec, 1700000000);
	assert_int_equal(lib->mtime_nsec, 5);
	assert_int_equal(lib->vm_start, LAB_LIB);
	assert_int_equal(lib->vm_end, LAB_LIB + LAB_CODE_BYTES);
	assert_int_equal(lib->tgid, 100);
	assert_int_equal(lib->tid, 100);
	assert_true(lib->head.id & SONDE_FILE_ID_BIT);
	assert_int_equal(lib->head.size, 88 + lib->names_size);
	CHECK_NAMES(lib, "libc.so.6\0lib\0usr\0");
	/* The executable is seen first by /proc/<tid>/exe. */
	exe = file_record(1000);
	assert_int_equal(exe->vm_start, 0);
	assert_int_equal(exe->vm_end, 0);
	CHECK_NAMES(exe, "proc\0bin\0usr\0");
	assert_int_equal(host.ring_wakeups, 2);
}

static void test_file_is_sent_once(void **state)
{
	__u64 id;

	take();
	take();
	assert_int_equal(ring_count(SONDE_RECORD_FILE), 2);
	id = file_record(2000)->head.id;
	bpf_map_delete_elem(&files, &id);
	ring_clear();
	take();
	assert_int_equal(ring_count(SONDE_RECORD_FILE), 1);
	assert_int_equal(file_record(2000)->head.id, id);
	assert_int_equal(file_record(2000)->vm_start, LAB_LIB);
}

static void test_refused_file_is_sent_with_the_next_sample(void **state)
{
	/* In order: cgroup, process's file, process, file, stack. */
	take();
	setup(NULL);
	map_refuse(&files, true);
	take();
	assert_int_equal(counter(SONDE_COUNT_FILE_RETRY), 2);
	assert_int_equal(counter(SONDE_COUNT_KEPT), 1);
	map_refuse(&files, false);
	ring_clear();
	take();
	assert_non_null(file_record(2000));
	lab_take(&p); /* in the executable's mapping */
	assert_non_null(file_record(1000));
	assert_int_equal(counter(SONDE_COUNT_FILE_RETRY), 2);
	assert_int_equal(counter(SONDE_COUNT_KEPT), 3);
}

static __u64 lib_id(void)
{
	ring_clear();
	take();
	assert_non_null(file_record(2000));
	return file_record(2000)->head.id;
}

/* Each part of the identity makes another file of it: above all a rewrite in place. */
static void test_identity(void **state)
{
	static const enum host_mtime layouts[] = { HOST_MTIME_PLAIN, HOST_MTIME_PRIVATE,
						   HOST_MTIME_SEC };

	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		struct super_block *sb;
		__u64 ids[6];

		setup(NULL);
		host.mtime = layouts[i];
		world_file_set_mtime(p.exe, 1, 1);
		world_file_set_mtime(p.lib, 1700000000, 5);
		ids[0] = lib_id();
		world_file_set_mtime(p.lib, 1700000001, 5);
		ids[1] = lib_id();
		assert_int_equal(file_record(2000)->mtime_sec, 1700000001);
		world_file_set_mtime(p.lib, 1700000000, 999999999);
		ids[2] = lib_id();
		assert_int_equal(file_record(2000)->mtime_nsec, 999999999);
		world_inode(p.lib)->i_generation = 8;
		ids[3] = lib_id();
		sb = kernel_alloc(sizeof(*sb));
		sb->s_dev = 9;
		world_inode(p.lib)->i_sb = kernel_ptr(sb);
		ids[4] = lib_id();
		world_file_set_mtime(p.lib, -1, 0);
		ids[5] = lib_id();
		assert_int_equal(file_record(2000)->mtime_sec, -1);
		for (int a = 0; a < 6; a++) {
			for (int b = 0; b < a; b++)
				assert_int_not_equal(ids[a], ids[b]);
		}
	}
}

static void test_ids_depend_on_the_seed(void **state)
{
	__u64 first = lib_id();

	setup(NULL);
	host_settings()->seed = 0xfeed;
	assert_int_not_equal(lib_id(), first);
}

static void test_long_paths(void **state)
{
	char path[6000] = "", part[300], *at = path;
	const struct sonde_file *record;

	for (int i = 0; i < 60; i++)
		at += sprintf(at, "/d%d", i);
	host_reset();
	lab_process(&p, 100, 0, NULL, world_file(LAB_DEV, 2000, path));
	take();
	record = file_record(2000);
	assert_int_equal(record->name_count, SONDE_MAX_PATH_NAMES);
	assert_string_equal(record->names, "d59");
	/* Names as long as may be: as many as fit, whole. */
	memset(part, 'x', sizeof(part));
	part[255] = 0;
	at = path;
	for (int i = 0; i < 20; i++)
		at += sprintf(at, "/%s", part);
	host_reset();
	lab_process(&p, 100, 0, NULL, world_file(LAB_DEV, 2000, path));
	take();
	record = file_record(2000);
	assert_int_equal(record->name_count, 16);
	assert_int_equal(record->names_size, SONDE_MAX_PATH_BYTES);
	assert_string_equal(record->names, part);
	lab_check_books();
}

static void test_unreadable_name_ends_the_path(void **state)
{
	struct dentry *dentry = host_ptr((__u64)p.lib->f_path.dentry);
	struct dentry *parent = host_ptr((__u64)dentry->d_parent);

	parent->d_name.name = (void *)0x1234;
	take();
	CHECK_NAMES(file_record(2000), "libc.so.6\0");
}

/* `files` is written in NMI: programs of tracepoints only read it. */
static void test_tracepoints_note_apart_what_they_asked(void **state)
{
	struct walk_state *s = walk_state(SONDE_CONTEXT_TRACEPOINT);
	__u64 id = SONDE_FILE_ID_BIT | 5;
	__u8 known = SONDE_FILE_TABLE;

	s->context = SONDE_CONTEXT_TRACEPOINT;
	s->slot = SONDE_SLOT_TRACEPOINT;
	for (int i = 0; i < 2; i++)
		assert_int_equal(file_state(s, kernel_ptr(p.lib), id, LAB_LIB, LAB_LIB + 4096),
				 SONDE_FILE_ASKED);
	assert_int_equal(ring_count(SONDE_RECORD_FILE), 1);
	assert_int_equal(map_count_entries(&files), 0);
	assert_int_equal(map_count_entries(&exec_files), 1);
	assert_int_equal(bpf_map_update_elem(&files, &id, &known, BPF_ANY), 0);
	assert_int_equal(file_state(s, kernel_ptr(p.lib), id, LAB_LIB, LAB_LIB + 4096),
			 SONDE_FILE_TABLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_file_record, setup),
		cmocka_unit_test_setup(test_file_is_sent_once, setup),
		cmocka_unit_test_setup(test_refused_file_is_sent_with_the_next_sample, setup),
		cmocka_unit_test_setup(test_identity, setup),
		cmocka_unit_test_setup(test_ids_depend_on_the_seed, setup),
		cmocka_unit_test_setup(test_long_paths, setup),
		cmocka_unit_test_setup(test_unreadable_name_ends_the_path, setup),
		cmocka_unit_test_setup(test_tracepoints_note_apart_what_they_asked, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
