/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where unwind data may be: .eh_frame with and without section headers, from several linkers, and
 * .debug_frame, also compressed and in a separate file. And what code without it gets.
 */
#include "symbolizer/unwind.h"
#include "unwind_lab.h"

static void write_program(void)
{
	lab_text("program.c",
		 "#include <alloca.h>\n#include <string.h>\n"
		 "#define F(name) __attribute__((noinline)) int name(int x)\n"
		 "F(small) { return x * 3; }\n"
		 "F(large) { char b[5000]; memset(b, x, sizeof(b)); return b[x] + small(x); }\n"
		 "F(moving) { char *b = alloca(x); memset(b, x, x); return b[x / 2] + large(x); }\n"
		 "int main(int c, char **v) { return moving(c) + large(c) + small(c); }\n");
}

static bool have(const char *program)
{
	char command[64];

	snprintf(command, sizeof(command), "command -v %s >/dev/null", program);
	return system(command) == 0;
}

/* Code that pushes rbp and sets it: the rule behind that is known without any table. */
static void check_program(const char *path, const struct unwind_table *t)
{
	assert_string_equal(rule_at(t, offset_of(path, "small")), "sp+8 same");
	assert_string_equal(rule_at(t, offset_of(path, "moving")), "sp+8 same");
	assert_string_equal(rule_at(t, offset_of(path, "moving") + 20), "fp+16 cfa-16");
	assert_int_equal(t->bad_fdes, 0);
}

static void test_linkers(void **state)
{
	static const char *const builds[] = {
		"gcc -O1 -o out program.c",
		"gcc -O1 -no-pie -o out program.c",
		"gcc -O1 -static -o out program.c",
		"gcc -O1 -Wl,--no-eh-frame-hdr -o out program.c",
		"gcc -O1 -Wl,-z,max-page-size=0x10000 -Wl,-z,noseparate-code -o out program.c",
		"clang-14 -O1 -fuse-ld=lld -o out program.c",
		"clang-14 -O1 -fuse-ld=lld -Wl,-z,max-page-size=0x200000 -o out program.c",
		"clang-14 -O1 -mcmodel=large -o out program.c",
	};

	write_program();
	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		struct unwind_table *t;

		lab_run("%s", builds[i]);
		t = table_of("out");
		check_program("out", t);
		unwind_table_free(t);
	}
}

static void test_gold(void **state)
{
	struct unwind_table *t;

	if (!have("ld.gold")) {
		print_message("no ld.gold: its section type is tested by an image only\n");
		return;
	}
	write_program();
	lab_run("gcc -O1 -fuse-ld=gold -o gold program.c");
	t = table_of("gold");
	check_program("gold", t);
	unwind_table_free(t);
}

static void test_no_sections(void **state)
{
	struct unwind_table *full, *without;

	write_program();
	lab_run("gcc -O1 -o full program.c && llvm-objcopy-14 --strip-sections full bare");
	full = table_of("full");
	without = table_of("bare");
	assert_true(full->row_count > 10);
	assert_true(tables_equal(full, without));
	unwind_table_free(full);
	unwind_table_free(without);
}

#define NO_TABLES "-O1 -fno-asynchronous-unwind-tables -fno-unwind-tables"

/* .debug_frame in its forms must give the same rows as .eh_frame does. */
static void test_debug_frame(void **state)
{
	static const char *const forms[] = {
		"cp debug out",
		"objcopy --compress-debug-sections=zlib debug out",
		"objcopy --compress-debug-sections=zstd debug out",
	};

	write_program();
	lab_run("gcc " NO_TABLES " -g -o debug program.c && gcc " NO_TABLES " -o none program.c");
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct unwind_table *t;

		if (system(forms[i]) != 0) {
			print_message("skipped: %s\n", forms[i]);
			continue;
		}
		t = table_of("out");
		check_program("out", t);
		unwind_table_free(t);
		t = table_of("none");
		assert_string_equal(rule_at(t, offset_of("none", "moving")), "none");
		unwind_table_free(t);
	}
	lab_run("readelf -S out | grep -q debug_frame");
}

static void test_separate_file(void **state)
{
	struct unwind_table *t;

	write_program();
	lab_run("gcc " NO_TABLES " -g -Wl,--build-id=0xaabbccdd -o whole program.c");
	lab_run("mkdir -p debug.d/.build-id/aa && "
		"objcopy --only-keep-debug whole debug.d/.build-id/aa/bbccdd.debug");
	lab_run("strip -g -o lean whole");
	t = table_of("lean");
	assert_string_equal(rule_at(t, offset_of("lean", "moving")), "none");
	unwind_table_free(t);
	t = table_with("lean", "debug.d");
	check_program("lean", t);
	unwind_table_free(t);
	/* A file of another build is none of ours. */
	lab_run("gcc " NO_TABLES " -g -Wl,--build-id=0xaabbccde -o other program.c && "
		"objcopy --only-keep-debug other debug.d/.build-id/aa/bbccdd.debug");
	t = table_with("lean", "debug.d");
	assert_string_equal(rule_at(t, offset_of("lean", "moving")), "none");
	unwind_table_free(t);
}

/* Objects with and without tables in one program: each keeps its own. */
static void test_mixed(void **state)
{
	struct unwind_table *t;
	uint64_t bare;

	write_program();
	lab_text("bare.c", "int bare(int x) { volatile int y = x; return y + 1; }\n");
	lab_text("main.c", "int bare(int);\nint before(int x) { return bare(x) + 1; }\n"
			   "int main(int c, char **v) { return before(c); }\n");
	lab_text("after.c", "int after(int x) { return x; }\n");
	lab_run("gcc " NO_TABLES " -c bare.c && gcc -O1 -o mixed main.c bare.o after.c");
	t = table_of("mixed");
	bare = offset_of("mixed", "bare");
	assert_string_equal(rule_at(t, offset_of("mixed", "before")), "sp+8 same");
	assert_string_equal(rule_at(t, bare), "none");
	assert_string_equal(rule_at(t, bare + 4), "none");
	assert_string_equal(rule_at(t, offset_of("mixed", "after")), "sp+8 same");
	unwind_table_free(t);
}

/* musl's restorer has no FDE; it lies among other code without. */
static void test_restorer(void **state)
{
	struct unwind_table *t;
	uint64_t off;

	lab_text("restorer.s", ".text\nf: .cfi_startproc\nret\n.cfi_endproc\nnop\n"
			       "restorer: mov $15, %rax\nsyscall\n"
			       "behind: ret\n.skip 300, 0xc3\n"
			       "again: mov $15, %rax\nsyscall\nlast: ret\n");
	lab_run("gcc -shared -nostdlib -o restorer.so restorer.s");
	t = table_of("restorer.so");
	off = offset_of("restorer.so", "restorer");
	assert_string_equal(rule_at(t, off - 2), "sp+8 same");
	/* A return address is looked up minus one. */
	assert_string_equal(rule_at(t, off - 1), "signal 0");
	assert_string_equal(rule_at(t, off + 8), "signal 0");
	assert_string_equal(rule_at(t, off + 9), "bare");
	off = offset_of("restorer.so", "again");
	assert_string_equal(rule_at(t, off), "signal 0");
	assert_string_equal(rule_at(t, offset_of("restorer.so", "last")), "none");
	unwind_table_free(t);
	/* Also where no FDE is left at all. */
	lab_run("objcopy --remove-section .eh_frame --remove-section .eh_frame_hdr restorer.so no");
	t = table_of("no");
	assert_string_equal(rule_at(t, off), "signal 0");
	assert_int_equal(t->row_count, 4);
	unwind_table_free(t);
}

static void test_other_files(void **state)
{
	struct unwind_table *t = NULL;
	struct buf b;
	int fd;

	write_program();
	lab_run("gcc " NO_TABLES
		" -shared -nostdlib -fno-builtin -DEMPTY -xc -o empty.so - </dev/null");
	t = table_of("empty.so");
	assert_int_equal(t->row_count, 0);
	assert_string_equal(rule_at(t, 0x1000), "none");
	unwind_table_free(t);
	lab_text("text",
		 "no ELF file at all, but long enough to be one, if it only wanted to be\n");
	fd = open("text", O_RDONLY | O_CLOEXEC);
	assert_int_equal(unwind_table_build(fd, NULL, &t), -ENOEXEC);
	close(fd);
	lab_run("gcc -O1 -o full program.c");
	b = lab_read("full");
	((Elf64_Ehdr *)b.data)->e_machine = EM_AARCH64;
	assert_int_equal(unwind_table_build_image(b.data, b.len, NULL, &t), -ENOTSUP);
	buf_fini(&b);
}

/* Long pieces of code without an FDE: whether anything in them sets up a frame pointer. */
static void test_bare_code(void **state)
{
	static const char *const ways[][2] = {
		{ "nop; nop", "bare" },
		{ "push %rbp; mov %rsp, %rbp", "none" },
		{ "push %rbp; xor %eax, %eax; .byte 0x48, 0x8b, 0xec", "none" },
		{ "push %rbp; .skip 20, 0x90; mov %rsp, %rbp", "bare" },
		{ "mov %rsp, %rbp", "bare" },
	};

	/* In the middle, and across two pieces that are read one after the other. */
	static const int places[] = { 100, 65530, 65534 };

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		for (size_t p = 0; p < sizeof(places) / sizeof(places[0]); p++) {
			struct unwind_table *t;
			char source[512];
			uint64_t f;

			snprintf(source, sizeof(source),
				 ".text\n.globl f, g, h\n"
				 "f: .cfi_startproc\nret\n.cfi_endproc\n"
				 "g: .skip %d, 0x90\n%s\n.skip 100, 0x90\n"
				 "h: .cfi_startproc\nret\n.cfi_endproc\n.skip 63, 0x90\n",
				 places[p], ways[i][0]);
			lab_text("bare.s", source);
			lab_run("gcc -shared -nostdlib -o bare.so bare.s");
			t = table_of("bare.so");
			f = offset_of("bare.so", "g");
			assert_string_equal(rule_at(t, f - 1), "sp+8 same");
			assert_string_equal(rule_at(t, f), ways[i][1]);
			f = offset_of("bare.so", "h");
			assert_string_equal(rule_at(t, f - 1), ways[i][1]);
			assert_string_equal(rule_at(t, f), "sp+8 same");
			assert_string_equal(rule_at(t, f + 1), "none"); /* short */
			unwind_table_free(t);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_linkers),       cmocka_unit_test(test_gold),
		cmocka_unit_test(test_no_sections),   cmocka_unit_test(test_debug_frame),
		cmocka_unit_test(test_separate_file), cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_restorer),      cmocka_unit_test(test_other_files),
		cmocka_unit_test(test_bare_code),
	};

	return cmocka_run_group_tests(tests, lab_open, lab_close);
}
