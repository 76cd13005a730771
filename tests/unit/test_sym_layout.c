/* SPDX-License-Identifier: Apache-2.0 */
/* Files laid out in all the ways of linkers: file offsets must lead to the right functions. */
#include <inttypes.h>

#include "elf_lab.h"
#include "symbolizer/symbolizer.h"

static const char program[] =
	LAB_MARK "const char filler[70000] = { 1 };\n"
		 "#define FUNCTION(name, link) \\\n"
		 "	link __attribute__((noinline, used)) int name(int x) { MARK(name); return "
		 "x + 1; }\n"
		 "FUNCTION(alpha, )\nFUNCTION(beta, static)\nFUNCTION(gamma_3, )\n"
		 "__attribute__((section(\".hot_code\"))) FUNCTION(hot, )\n"
		 "int main(int argc, char **argv) {\n"
		 "	MARK(main); return alpha(beta(gamma_3(hot(argc)))) + filler[argc]; }\n";

static const struct layout {
	const char *name;
	const char *compile; /* completed by "-o FILE program.c" */
} layouts[] = {
	{ "bfd", "gcc -O1" },
	{ "bfd_no_pie", "gcc -O1 -no-pie" },
	{ "bfd_static", "gcc -O1 -static" },
	{ "bfd_one_segment", "gcc -O1 -Wl,-z,noseparate-code" },
	{ "bfd_16k", "gcc -O1 -Wl,-z,max-page-size=0x4000" },
	{ "bfd_64k", "gcc -O1 -Wl,-z,max-page-size=0x10000" },
	{ "bfd_2m", "gcc -O1 -Wl,-z,max-page-size=0x200000" },
	{ "two_code_segments", "gcc -O1 -no-pie -Wl,--section-start=.hot_code=0x900000" },
	{ "prelinked", "gcc -O1 -shared -fPIC -Wl,-Ttext-segment=0x3000000000" },
	{ "lld", "clang-14 -O1 -fuse-ld=lld" },
	{ "lld_shared", "clang-14 -O1 -fPIC -shared -fuse-ld=lld" },
	{ "lld_separate", "clang-14 -O1 -fuse-ld=lld -Wl,-z,separate-code" },
	{ "lld_16k", "clang-14 -O1 -fuse-ld=lld -Wl,-z,max-page-size=0x4000" },
	{ "lld_64k", "clang-14 -O1 -fuse-ld=lld -Wl,-z,max-page-size=0x10000" },
	{ "lld_2m", "clang-14 -O1 -fuse-ld=lld -Wl,-z,max-page-size=0x200000" },
	{ "lld_static_pie",
	  "clang-14 -O1 -fPIE -fuse-ld=lld -static-pie -Wl,--image-base=0x50000" },
	{ "gold", "gcc -O1 -fuse-ld=gold" },
};

enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]), FUNCTIONS = 5 };

static void layout_is_read_right(void **state)
{
	const struct layout *layout = *state;
	struct sym_file *file;

	lab_text("program.c", program);
	lab_run("%s -o %s program.c", layout->compile, layout->name);
	file = lab_load(layout->name);
	assert_true(lab_check_marks(layout->name, file, NULL) >= FUNCTIONS);
	assert_true(lab_check_nm(layout->name, "", file) >= FUNCTIONS);
	sym_file_free(file);
}

/* The premise of the others: with lld a virtual address is not the file offset. */
static void lld_moves_code(void **state)
{
	uint64_t vaddr, at;
	struct sym_file *file;
	size_t moved = 0;

	lab_text("program.c", program);
	lab_run("clang-14 -O1 -fuse-ld=lld -o moved program.c");
	file = lab_load("moved");
	at = lab_nm("moved", "", "alpha");
	for (uint64_t off = 0; off < at; off++)
		moved += sym_file_vaddr(file, off, &vaddr) && vaddr == at && off != at;
	assert_int_equal(moved, 1);
	assert_string_equal(lab_name(file, at), "alpha");
	sym_file_free(file);
}

static void offsets_outside_have_no_address(void **state)
{
	uint64_t vaddr = 42;
	struct sym_file *file;

	lab_text("program.c", program);
	lab_run("gcc -o outside program.c");
	file = lab_load("outside");
	assert_false(sym_file_vaddr(file, 1ULL << 40, &vaddr));
	assert_false(sym_file_vaddr(file, UINT64_MAX, &vaddr));
	assert_int_equal(vaddr, 42);
	assert_string_equal(lab_name(file, UINT64_MAX), "[no symbol covers the address]");
	sym_file_free(file);
}

/* Only exported functions are left; by either kind of hash table. */
static void check_no_sections(const char *flags)
{
	struct sym_file *file;
	uint64_t alpha, beta;

	lab_text("program.c", program);
	lab_run("gcc -O1 -fPIC -shared %s -o with_sections program.c", flags);
	alpha = lab_nm("with_sections", "-D", "alpha");
	beta = lab_nm("with_sections", "", "beta");
	lab_run("llvm-objcopy-14 --strip-sections with_sections bare");
	file = lab_load("bare");
	assert_true(sym_file_has_gnu_build_id(file));
	assert_string_equal(lab_name(file, alpha), "alpha");
	assert_true(lab_is_nameless(lab_name(file, beta)));
	assert_int_equal(lab_check_marks("bare", file, "beta"), FUNCTIONS);
	sym_file_free(file);
}

static void no_sections_gnu_hash(void **state)
{
	check_no_sections("-Wl,--hash-style=gnu");
}

static void no_sections_sysv_hash(void **state)
{
	check_no_sections("-Wl,--hash-style=sysv");
}

static void stripped_program_has_starts(void **state)
{
	struct sym_file *file;
	char expected[32];
	uint64_t alpha;

	lab_text("program.c", program);
	lab_run("gcc -O1 -no-pie -o stripped program.c");
	alpha = lab_nm("stripped", "", "alpha");
	lab_run("llvm-objcopy-14 --strip-sections stripped");
	file = lab_load("stripped");
	snprintf(expected, sizeof(expected), "sub_%" PRIx64, alpha);
	assert_string_equal(lab_name(file, alpha + 1), expected);
	sym_file_free(file);
}

static void vdso_has_names(void **state)
{
	struct sym_file *file;
	struct sym_hit hit;
	bool found = false;

	assert_int_equal(sym_file_load_vdso(NULL, &file), 0);
	for (uint64_t off = 0; off < 16384; off++) {
		uint64_t vaddr;

		found = found ||
			(sym_file_vaddr(file, off, &vaddr) &&
			 sym_file_find(file, vaddr, &hit) == SYM_OK && strstr(hit.name, "gettime"));
	}
	assert_true(found);
	assert_true(strlen(sym_file_build_id(file)) >= 2);
	sym_file_free(file);
}

int main(void)
{
	struct CMUnitTest tests[LAYOUTS + 6] = {
		cmocka_unit_test(lld_moves_code),
		cmocka_unit_test(offsets_outside_have_no_address),
		cmocka_unit_test(no_sections_gnu_hash),
		cmocka_unit_test(no_sections_sysv_hash),
		cmocka_unit_test(stripped_program_has_starts),
		cmocka_unit_test(vdso_has_names),
	};

	for (size_t i = 0; i < LAYOUTS; i++)
		tests[6 + i] = (struct CMUnitTest){ .name = layouts[i].name,
						    .test_func = layout_is_read_right,
						    .initial_state = (void *)&layouts[i] };
	return cmocka_run_group_tests_name("sym_layout", tests, lab_open, lab_close);
}
