/* SPDX-License-Identifier: Apache-2.0 */
/* Identities of files, odd and damaged ones too, and debug files found by them. */
#include "elf_lab.h"
#include "symbolizer/build_id.h"
#include "symbolizer/symbolizer.h"

static void id_of(const char *path, char *ret_id, bool expect_gnu)
{
	struct sym_file *file = lab_load(path);

	assert_true(sym_file_has_gnu_build_id(file) == expect_gnu);
	snprintf(ret_id, BUILD_ID_HEX_SIZE, "%s", sym_file_build_id(file));
	assert_true(strlen(ret_id) >= 2 && strspn(ret_id, "0123456789abcdef") == strlen(ret_id));
	sym_file_free(file);
}

/* Two programs that differ in one constant, built with the same flags. */
static void build_two(const char *flags)
{
	for (int i = 1; i <= 2; i++) {
		char source[128];

		snprintf(source, sizeof(source), "int f(void) { return %d; }\n", i);
		lab_text("id.c", source);
		lab_run("gcc -shared -fPIC %s -o id%d.so id.c 2>ld.log", flags, i);
	}
}

static void usual_one(void **state)
{
	char id[BUILD_ID_HEX_SIZE], expected[BUILD_ID_HEX_SIZE + 1] = "";
	struct buf b;

	build_two("-Wl,--build-id");
	lab_run("readelf -n id1.so | awk '/Build ID/ { printf \"%%s\", $3 }' >id.txt");
	b = lab_read("id.txt");
	memcpy(expected, b.data, b.len < BUILD_ID_HEX_SIZE ? b.len : BUILD_ID_HEX_SIZE);
	buf_fini(&b);
	id_of("id1.so", id, true);
	assert_string_equal(id, expected);
}

static void missing_or_zero_is_replaced(void **state)
{
	static const char *const flags[] = { "-Wl,--build-id=none", "-Wl,--build-id=0x00",
					     "-Wl,--build-id=0x00000000" };
	char id[2][BUILD_ID_HEX_SIZE], again[BUILD_ID_HEX_SIZE];

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		build_two(flags[i]);
		id_of("id1.so", id[0], false);
		id_of("id2.so", id[1], false);
		assert_string_not_equal(id[0], id[1]);
		assert_int_equal(strlen(id[0]), 32);
		lab_run("cp id1.so copy.so");
		id_of("copy.so", again, false);
		assert_string_equal(id[0], again);
	}
}

static void short_one_passes(void **state)
{
	char id[BUILD_ID_HEX_SIZE];

	build_two("-Wl,--build-id=0x46");
	id_of("id1.so", id, true);
	assert_string_equal(id, "46");
}

/* Where the build-id note begins in the file. */
static size_t find_note(const struct buf *b)
{
	static const uint8_t head[] = { 4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0 };

	for (size_t i = 0; i + sizeof(head) < b->len; i++) {
		if (memcmp(b->data + i, head, sizeof(head)) == 0)
			return i;
	}
	fail_msg("no build-id note");
	return 0;
}

static void damaged_note_is_ignored(void **state)
{
	static const struct {
		size_t field; /* offset in the note */
		uint32_t value;
	} damages[] = { { 0, 0xffffffff }, { 0, 0xfffffffd }, { 0, 5000 },
			{ 0, 3 },          { 4, 0xffffffff }, { 4, 0xfffffff0 },
			{ 4, 0 },          { 4, 65 },         { 8, 77 } };
	char id[BUILD_ID_HEX_SIZE];
	struct buf b;
	size_t note;

	build_two("-Wl,--build-id");
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		b = lab_read("id1.so");
		note = find_note(&b);
		memcpy(b.data + note + damages[i].field, &damages[i].value, 4);
		lab_write("damaged.so", b.data, b.len);
		buf_fini(&b);
		id_of("damaged.so", id, false);
	}
}

static void other_notes_first(void **state)
{
	char id[BUILD_ID_HEX_SIZE], plain[BUILD_ID_HEX_SIZE];

	lab_text("id.c", "asm(\".section .note.aaa,\\\"a\\\",@note\\n.long 4, 5, 3\\n"
			 ".asciz \\\"XYZ\\\"\\n.byte 1, 2, 3, 4, 5, 0, 0, 0\\n.text\");\n"
			 "int f(void) { return 1; }\n");
	lab_run("gcc -shared -fPIC -fcf-protection=full -Wl,--build-id=0x0123456789abcdef -o id.so "
		"id.c");
	id_of("id.so", id, true);
	assert_string_equal(id, "0123456789abcdef");
	lab_run("llvm-objcopy-14 --strip-sections id.so bare.so");
	id_of("bare.so", plain, true);
	assert_string_equal(plain, id);
}

static void go_programs_stay_apart(void **state)
{
	char id[2][BUILD_ID_HEX_SIZE];
	static const char *const ids[] = { "abcdefghijklmnop/qrstuvwxyz/one",
					   "abcdefghijklmnop/qrstuvwxyz/two" };

	for (int i = 0; i < 2; i++) {
		char source[512];

		snprintf(source, sizeof(source),
			 "asm(\".section .note.go.buildid,\\\"a\\\",@note\\n.long 4, 31, 4\\n"
			 ".asciz \\\"Go\\\\0\\\"\\n.ascii \\\"%s\\\"\\n.byte 0\\n.text\");\n"
			 "int f(void) { return 1; }\n",
			 ids[i]);
		lab_text("go.c", source);
		lab_run("gcc -shared -fPIC -Wl,--build-id=none -o go.so go.c");
		id_of("go.so", id[i], false);
		lab_run("printf x >>go.so");
		id_of("go.so", source, false);
		assert_string_equal(source, id[i]); /* by the note, not by the content */
	}
	assert_string_not_equal(id[0], id[1]);
}

/* Makes prog (stripped) and debug/.build-id/xx/rest.debug with its symbols. */
static void make_split(const char *build_id)
{
	lab_text(
		"split.c", LAB_MARK
		"static __attribute__((noinline)) int inner(int x) { MARK(inner); return x + 1; }\n"
		"int main(int c, char **v) { MARK(main); return inner(c); }\n");
	lab_run("gcc -O1 -g -Wl,--build-id=0x%s -o prog split.c", build_id);
	lab_run("mkdir -p debug/.build-id/%.2s && objcopy --only-keep-debug prog "
		"debug/.build-id/%.2s/%s.debug && strip prog",
		build_id, build_id, build_id + 2);
}

static void debug_file_by_build_id(void **state)
{
	struct sym_file_options options = { .debug_dir = "debug" };
	struct sym_file *file;

	make_split("a1b2c3d4e5");
	file = lab_load("prog");
	assert_string_equal(lab_name(file, 0x1000), "[no symbol covers the address]");
	sym_file_free(file);
	file = lab_load_with("prog", &options);
	assert_int_equal(lab_check_marks("prog", file, NULL), 2);
	sym_file_free(file);
}

static void debug_file_of_another_build(void **state)
{
	struct sym_file_options options = { .debug_dir = "debug" };
	struct sym_file *file;
	struct sym_hit hit;
	uint64_t vaddr;
	struct buf b;

	make_split("1111111111");
	make_split("2222222222");
	lab_run("cp debug/.build-id/11/11111111.debug debug/.build-id/22/22222222.debug");
	file = lab_load_with("prog", &options);
	b = lab_read("prog");
	for (size_t off = 0; off < b.len; off++) {
		/* Stubs have names of their own. */
		if (sym_file_vaddr(file, off, &vaddr) &&
		    sym_file_find(file, vaddr, &hit) == SYM_OK)
			assert_non_null(strstr(hit.name, "plt"));
	}
	buf_fini(&b);
	sym_file_free(file);
}

static void debug_file_that_is_none(void **state)
{
	struct sym_file_options options = { .debug_dir = "debug" };

	make_split("3333333333");
	lab_run("rm debug/.build-id/33/33333333.debug && mkfifo debug/.build-id/33/33333333.debug");
	sym_file_free(lab_load_with("prog", &options));
	lab_run("rm debug/.build-id/33/33333333.debug && echo text "
		">debug/.build-id/33/33333333.debug");
	sym_file_free(lab_load_with("prog", &options));
	lab_run("rm debug/.build-id/33/33333333.debug && mkdir debug/.build-id/33/33333333.debug");
	sym_file_free(lab_load_with("prog", &options));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(usual_one),
		cmocka_unit_test(missing_or_zero_is_replaced),
		cmocka_unit_test(short_one_passes),
		cmocka_unit_test(damaged_note_is_ignored),
		cmocka_unit_test(other_notes_first),
		cmocka_unit_test(go_programs_stay_apart),
		cmocka_unit_test(debug_file_by_build_id),
		cmocka_unit_test(debug_file_of_another_build),
		cmocka_unit_test(debug_file_that_is_none),
	};

	return cmocka_run_group_tests_name("build_id", tests, lab_open, lab_close);
}
