/* SPDX-License-Identifier: Apache-2.0 */
/* Jitdump files: records, times, moves; finding one in a process; growing and hostile ones. */
#include "elf_lab.h"

#include "jitdump_lab.h"
#include "symbolizer/jitdump.h"

static struct jitdump *parse(uint64_t from)
{
	struct jitdump *dump = NULL;

	assert_int_equal(jitdump_parse(file.data, file.len, PID, from, &dump), 0);
	return dump;
}

/* The name at an address for samples since `from`, or the reason. */
static const char *name_at(struct jitdump *dump, uint64_t addr, uint64_t from)
{
	struct sym_hit hit;
	enum sym_reason reason = jitdump_find(dump, addr, from, &hit);

	return reason == SYM_OK            ? hit.name
	       : reason == SYM_JIT_CHANGED ? "changed"
	       : reason == SYM_NOT_COVERED ? "-"
					   : sym_reason_text(reason);
}

static void loads(void **state)
{
	struct jitdump *dump;

	begin();
	put_load(1100, 0x1000, 0x20, "LFoo;.bar(I)V");
	prefix(2, 32, 1150); /* debug info, of no entry */
	put64(0x2000);
	put64(0);
	prefix(4, 40, 1150); /* unwinding info */
	put64(0);
	put64(0);
	put64(0);
	put_load(1200, 0x2000, 0x20, "_ZN3foo3barEv");
	dump = parse(5000);
	assert_string_equal(name_at(dump, 0x1000, 5000), "Foo.bar(int)");
	assert_string_equal(name_at(dump, 0x101f, 5000), "Foo.bar(int)");
	assert_string_equal(name_at(dump, 0x1020, 5000), "-");
	assert_string_equal(name_at(dump, 0x2000, 5000), "foo::bar()");
	assert_int_equal(jitdump_bad_records(dump), 0);
	assert_true(jitdump_bytes(dump) > 100);
	jitdump_free(dump);
}

/* Which of two it was depends on when the sample was taken. */
static void reused_addresses(void **state)
{
	struct jitdump *dump;

	begin();
	put_load(1100, 0x1000, 0x100, "first");
	put_load(1200, 0x3000, 0x100, "stays");
	put_load(2000, 0x1000, 0x80, "second");
	dump = parse(1500);
	assert_true(jitdump_is_moving(dump, 1500));
	assert_string_equal(name_at(dump, 0x1000, 1500), "changed");
	assert_string_equal(name_at(dump, 0x1080, 1500), "first");
	assert_string_equal(name_at(dump, 0x3000, 1500), "stays");
	assert_false(jitdump_is_moving(dump, 2001));
	assert_string_equal(name_at(dump, 0x1000, 2001), "second");
	jitdump_free(dump);
	/* Read late, all of it: the times are what tells. */
	dump = parse(2500);
	assert_string_equal(name_at(dump, 0x1000, 2500), "second");
	jitdump_free(dump);
	/* The clock of the time stamps is not known: any of them may be of now. */
	begin_as(PID, 1);
	put_load(7, 0x1000, 0x100, "first");
	put_load(8, 0x1000, 0x80, "second");
	put_load(9, 0x3000, 0x80, "third");
	dump = parse(2500);
	assert_string_equal(name_at(dump, 0x1000, 2500), "changed");
	assert_string_equal(name_at(dump, 0x3000, 2500), "third");
	jitdump_free(dump);
}

static void moves(void **state)
{
	struct jitdump *dump;

	begin();
	put_load(1100, 0x1000, 0x100, "walker");
	put_load(1150, 0x5000, 0x100, "sitter");
	put_move(1200, 0x1000, 0x2000, 0x100);
	put_move(2000, 0x2000, 0x3000, 0x100);
	put_move(2100, 0x5000, 0x2000, 0x100);
	put_move(2200, 0x9000, 0xa000, 0x100); /* of nobody */
	dump = parse(1500);
	assert_string_equal(name_at(dump, 0x1000, 1500), "-");
	assert_string_equal(name_at(dump, 0x2000, 1500), "changed");
	assert_string_equal(name_at(dump, 0x3000, 1500), "walker");
	assert_string_equal(name_at(dump, 0x5000, 1500), "sitter"); /* it was, for a while */
	assert_string_equal(name_at(dump, 0x2000, 3000), "sitter");
	assert_string_equal(name_at(dump, 0x3000, 3000), "walker");
	assert_string_equal(name_at(dump, 0x5000, 3000), "-");
	assert_string_equal(name_at(dump, 0xa000, 3000), "-");
	assert_int_equal(jitdump_bad_records(dump), 1);
	jitdump_free(dump);
	/* Onto itself, a little further. */
	begin();
	put_load(1100, 0x1000, 0x100, "walker");
	put_move(1200, 0x1000, 0x1040, 0x100);
	dump = parse(1300);
	assert_string_equal(name_at(dump, 0x1000, 1300), "-");
	assert_string_equal(name_at(dump, 0x1040, 1300), "walker");
	assert_string_equal(name_at(dump, 0x113f, 1300), "walker");
	jitdump_free(dump);
}

/* After the end of the runtime the addresses may be anybody's. */
static void closed(void **state)
{
	struct jitdump *dump;

	begin();
	put_load(1100, 0x1000, 0x100, "a");
	put_close(2000);
	put_load(2100, 0x2000, 0x100, "behind");
	dump = parse(1500);
	assert_string_equal(name_at(dump, 0x1000, 1500), "a");
	assert_string_equal(name_at(dump, 0x2000, 1500), "-");
	assert_string_equal(name_at(dump, 0x1000, 2001), "-");
	jitdump_free(dump);
}

static void refused_headers(void **state)
{
	static const size_t fields[] = { 0, 4, 8 };
	struct jitdump *dump;

	for (size_t i = 0; i < 3; i++) {
		begin();
		memset(file.data + fields[i], i == 2 ? 0 : 0x7f, 4);
		assert_int_equal(jitdump_parse(file.data, file.len, PID, 1, &dump), -EBADMSG);
	}
	begin();
	for (size_t len = 0; len < HEADER; len++)
		assert_int_equal(jitdump_parse(file.data, len, PID, 1, &dump), -EBADMSG);
	/* That of the parent, inherited over a fork. */
	begin_as(PID + 1, 0);
	assert_int_equal(jitdump_parse(file.data, file.len, PID, 1, &dump), -EBADMSG);
}

static void bad_records(void **state)
{
	static const struct {
		size_t field; /* of the second load record, 8 bytes */
		uint64_t value;
		bool ends; /* nothing behind it can be found */
	} cases[] = {
		{ 4, 3, true },            /* total size, and half of the time */
		{ 40, UINT64_MAX, false }, /* code size */
		{ 40, 0, false },
		{ 32, UINT64_MAX - 4, false }, /* address that wraps */
		{ LOAD, 0, false },            /* no name */
	};
	struct jitdump *dump;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t second;

		begin();
		put_load(1100, 0x1000, 0x20, "good");
		second = file.len;
		put_load(1200, 0x2000, 0x20, "damaged");
		put_load(1300, 0x3000, 0x20, "behind");
		memcpy(file.data + second + cases[i].field, &cases[i].value, 8);
		dump = parse(1);
		assert_int_equal(jitdump_bad_records(dump), 1);
		assert_string_equal(name_at(dump, 0x1000, 1), "good");
		assert_string_equal(name_at(dump, 0x2000, 1), "-");
		assert_string_equal(name_at(dump, 0x3000, 1), cases[i].ends ? "-" : "behind");
		jitdump_free(dump);
	}
	/* A name without an end takes all of the record. */
	begin();
	prefix(0, LOAD + 4 + 4, 1100);
	put64(0);
	put64(0x1000);
	put64(0x1000);
	put64(4);
	put64(1);
	buf_put(&file, "abcdabcd", 8);
	dump = parse(1);
	assert_int_equal(jitdump_bad_records(dump), 1);
	jitdump_free(dump);
}

static void cut_anywhere(void **state)
{
	begin();
	put_load(1100, 0x1000, 0x20, "a");
	put_move(1200, 0x1000, 0x2000, 0x20);
	put_close(1300);
	for (size_t len = HEADER; len <= file.len; len++) {
		uint8_t *copy = malloc(len);
		struct jitdump *dump;

		memcpy(copy, file.data, len);
		assert_int_equal(jitdump_parse(copy, len, PID, 1, &dump), 0);
		assert_int_equal(jitdump_bad_records(dump), 0);
		jitdump_free(dump);
		free(copy);
	}
}

/* ---- in a process ---- */

static const char path[] = "proc/77/root/var/jit dir/jit-5.dump";

static void save(size_t from)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, file.data + from, file.len - from), file.len - from);
	close(fd);
}

static void make_process(const char *mapped)
{
	lab_run("rm -rf proc && mkdir -p 'proc/77/root/var/jit dir'");
	lab_text("proc/77/maps", "");
	lab_run("printf '%%s\\n' '55d0-55d1 r-xp 00000000 08:01 13 /bin/jit-5.dump.not' "
		"'7f00-7f01 r-xp 00000000 00:00 0 ' '7f02-7f03 r-xp 00000000 08:01 131 %s' "
		">proc/77/maps",
		mapped);
}

static int load(uint64_t from, struct jitdump **ret_dump)
{
	int fd = open("proc/77", O_PATH | O_DIRECTORY | O_CLOEXEC), err;

	err = jitdump_load(fd, PID, getuid(), from, false, ret_dump);
	close(fd);
	return err;
}

static int refresh(struct jitdump *dump, uint64_t from)
{
	int fd = open("proc/77", O_PATH | O_DIRECTORY | O_CLOEXEC), err;

	err = jitdump_refresh(dump, fd, getuid(), from);
	close(fd);
	return err;
}

static void found_by_its_mapping(void **state)
{
	struct jitdump *dump;
	size_t half;

	make_process("/var/jit dir/jit-5.dump");
	assert_int_equal(load(1, &dump), -ENOENT);
	begin();
	put_load(1100, 0x1000, 0x20, "a");
	half = file.len;
	put_load(1200, 0x2000, 0x20, "b");
	file.len -= 5;
	save(0);
	file.len += 5;
	assert_int_equal(load(5000, &dump), 0);
	assert_string_equal(name_at(dump, 0x1000, 5000), "a");
	assert_string_equal(name_at(dump, 0x2000, 5000), "-");
	assert_int_equal(refresh(dump, 5000), 0);
	save(file.len - 5);
	assert_true(half < file.len);
	assert_int_equal(refresh(dump, 5000), 1);
	assert_string_equal(name_at(dump, 0x2000, 5000), "b");
	/* Written anew: the old names are of no use. */
	begin();
	put_load(1150, 0x2000, 0x20, "c");
	assert_int_equal(truncate(path, 0), 0);
	save(0);
	assert_int_equal(refresh(dump, 5000), 1);
	assert_string_equal(name_at(dump, 0x1000, 5000), "-");
	assert_string_equal(name_at(dump, 0x2000, 5000), "c");
	jitdump_free(dump);
}

static void not_found(void **state)
{
	static const char *const mapped[] = { "", "/var/jit dir/jit-55.dump", "/x/xjit-5.dump",
					      "/var/jit dir/jit-5.dump (deleted)",
					      "/../../proc/77/secret/jit-5.dump" };
	struct jitdump *dump;

	for (size_t i = 0; i < sizeof(mapped) / sizeof(mapped[0]); i++) {
		make_process(mapped[i]);
		begin();
		save(0);
		lab_run("mkdir -p proc/77/secret && cp '%s' proc/77/secret", path);
		assert_int_equal(load(1, &dump), -ENOENT);
	}
}

static void hostile_files(void **state)
{
	static const char *const makers[] = { "mkfifo '%s'", "mkdir '%s'",
					      "ln -s /etc/passwd '%s'" };
	struct jitdump *dump;

	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
		char command[128];

		make_process("/var/jit dir/jit-5.dump");
		snprintf(command, sizeof(command), makers[i], path);
		lab_run("%s", command);
		assert_int_equal(load(1, &dump), -EPERM);
	}
	/* 10 GB of zeros behind a good record. */
	make_process("/var/jit dir/jit-5.dump");
	begin();
	put_load(1100, 0x1000, 0x20, "a");
	save(0);
	assert_int_equal(truncate(path, 10LL << 30), 0);
	assert_int_equal(load(5000, &dump), 0);
	assert_int_equal(jitdump_bad_records(dump), 1);
	jitdump_free(dump);
}

static int close_lab(void **state)
{
	buf_fini(&file);
	return lab_close(state);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(loads),           cmocka_unit_test(reused_addresses),
		cmocka_unit_test(moves),           cmocka_unit_test(closed),
		cmocka_unit_test(refused_headers), cmocka_unit_test(bad_records),
		cmocka_unit_test(cut_anywhere),    cmocka_unit_test(found_by_its_mapping),
		cmocka_unit_test(not_found),       cmocka_unit_test(hostile_files),
	};

	return cmocka_run_group_tests_name("jitdump", tests, lab_open, close_lab);
}
