/* SPDX-License-Identifier: Apache-2.0 */
/* Which symbol an address gets, and which ones it must never get. */
#include "elf_lab.h"
#include "symbolizer/symbolizer.h"

static const char not_covered[] = "[no symbol covers the address]";

static void label_without_size(void **state)
{
	struct sym_file *file;
	uint64_t bare, after;

	lab_text("bare.c", "__attribute__((noinline)) int before(int x) { return x * 3; }\n"
			   "asm(\".text\\n.globl bare\\nbare: .fill 40, 1, 0x90\\nret\\n"
			   ".globl bare_next\\nbare_next: .fill 8, 1, 0x90\\nret\\n\");\n"
			   "int main(int c, char **v) { return before(c); }\n");
	/* At -O1 the order in the file is that of the source. */
	lab_run("gcc -O1 -fno-toplevel-reorder -o bare bare.c");
	file = lab_load("bare");
	bare = lab_nm("bare", "", "bare");
	after = lab_nm("bare", "", "bare_next");
	assert_string_equal(lab_name(file, bare), "bare");
	assert_string_equal(lab_name(file, bare + 40), "bare");
	assert_string_equal(lab_name(file, after - 1), "bare");
	assert_string_equal(lab_name(file, after), "bare_next");
	assert_true(lab_check_nm("bare", "", file) > 5);
	sym_file_free(file);
}

/* A label inside a function with a size is a part of that function. */
static void label_inside_function(void **state)
{
	struct sym_file *file;
	uint64_t outer, inner;

	lab_text("inner.s",
		 ".text\n.globl outer\n.type outer, @function\nouter: .fill 16, 1, 0x90\n"
		 "inner: .fill 16, 1, 0x90\nret\n.size outer, .-outer\n");
	lab_run("gcc -shared -Wl,-z,noexecstack -o inner inner.s");
	outer = lab_nm("inner", "", "outer");
	inner = lab_nm("inner", "", "inner");
	assert_int_equal(inner - outer, 16);
	file = lab_load("inner");
	assert_string_equal(lab_name(file, inner), "outer");
	assert_string_equal(lab_name(file, inner + 16), "outer");
	assert_string_equal(lab_name(file, inner + 17), not_covered);
	sym_file_free(file);
}

static void stripped_neighbour_is_not_swallowed(void **state)
{
	struct sym_file *file;

	lab_text(
		"three.c", LAB_MARK
		"static __attribute__((noinline)) int one(int x) { MARK(one); return x + 1; }\n"
		"static __attribute__((noinline)) int two(int x) { MARK(two); return x + 2; }\n"
		"static __attribute__((noinline)) int three(int x) { MARK(three); return x + 3; }\n"
		"int main(int c, char **v) { return one(two(three(c))); }\n");
	lab_run("gcc -O1 -o three three.c && strip -N two three");
	file = lab_load("three");
	assert_int_equal(lab_check_marks("three", file, "two"), 3);
	sym_file_free(file);
}

static void versions_and_ifunc(void **state)
{
	struct sym_file *file;

	lab_text("lib.map",
		 "V1 { global: pick; old_name; dup; local: *; };\nV2 { global: dup; } V1;\n");
	lab_text("lib.c",
		 LAB_MARK "static int pick_fast(int x) { MARK(pick_fast); return x; }\n"
			  "static int (*choose(void))(int) { MARK(choose); return pick_fast; }\n"
			  "int pick(int) __attribute__((ifunc(\"choose\")));\n"
			  "int old_name(int x) { MARK(old_name); return x; }\n"
			  "int dup_v1(int x) { return x + 1; }\n"
			  "int dup_v2(int x) { return x + 2; }\n"
			  "asm(\".symver dup_v1, dup@V1\\n.symver dup_v2, dup@@V2\");\n");
	lab_run("gcc -O1 -shared -fPIC -Wl,--version-script=lib.map -o lib.so lib.c");
	file = lab_load("lib.so");
	assert_int_equal(lab_check_marks("lib.so", file, NULL), 3);
	assert_true(lab_check_nm("lib.so", "", file) > 5);
	/* V1 and V2 are absolute symbols of value 0: no low address is theirs. */
	for (uint64_t addr = 0; addr < 0x100; addr++)
		assert_string_equal(lab_name(file, addr), not_covered);
	sym_file_free(file);

	lab_run("strip lib.so");
	file = lab_load("lib.so");
	assert_int_equal(lab_check_nm("lib.so", "-D", file), 4);
	sym_file_free(file);
}

static void version_is_cut_from_the_name(void **state)
{
	struct sym_hit hit;
	struct sym_file *file;
	uint64_t addr;

	/* Here the label is left with its version in .symtab only. */
	lab_text("v.map", "V1 { global: *; };\n");
	lab_text("v.s", ".text\n.globl impl\n.hidden impl\n.type impl, @function\nimpl: nop\nret\n"
			".size impl, .-impl\n.symver impl, shown@@V1\n");
	lab_run("gcc -shared -Wl,-z,noexecstack -Wl,--version-script=v.map -o v.so v.s");
	addr = lab_nm("v.so", "", "shown@@V1");
	file = lab_load("v.so");
	assert_int_equal(sym_file_find(file, addr, &hit), SYM_OK);
	assert_string_equal(hit.name, "shown");
	sym_file_free(file);
}

static bool is_stub_name(const char *name)
{
	size_t len = strlen(name);

	return strcmp(name, "[plt]") == 0 || (len > 4 && strcmp(name + len - 4, "@plt") == 0);
}

/*
 * Checks that each address of the sections has the name of a stub, without section headers at most
 * that of a function's start; returns how many addresses there were.
 */
static size_t check_stubs(const char *path, const char *sections, bool is_bare,
			  struct sym_file *file)
{
	uint64_t addr, size, count = 0;
	char name[64];
	FILE *list;

	lab_run("readelf -SW %s | tr -d '[]' | awk '$2 ~ /^(%s)$/ { print $2, $4, $6 }' >sections",
		path, sections);
	list = fopen("sections", "r");
	assert_non_null(list);
	while (fscanf(list, "%63s %lx %lx", name, &addr, &size) == 3) {
		for (uint64_t at = addr; at < addr + size; at++) {
			const char *found = lab_name(file, at);

			if (is_bare ? strcmp(found, not_covered) != 0 &&
					      strncmp(found, "sub_", 4) != 0
				    : !is_stub_name(found))
				fail_msg("%s: %lx is %s", path, at, found);
		}
		count += size;
	}
	fclose(list);
	return count;
}

/* objdump's labels, as "ADDR name@plt", all have the same name here. */
static size_t check_stub_names(const char *path, struct sym_file *file)
{
	uint64_t addr;
	char name[256];
	size_t count = 0;
	FILE *list;

	lab_run("objdump -d %s | sed -n 's/^\\([0-9a-f]*\\) <\\(.*@plt\\)>:$/\\1 \\2/p' >labels",
		path);
	list = fopen("labels", "r");
	assert_non_null(list);
	for (; fscanf(list, "%lx %255s", &addr, name) == 2; count++) {
		assert_string_equal(lab_name(file, addr), name);
		assert_string_equal(lab_name(file, addr + 7), name);
	}
	fclose(list);
	return count;
}

static void check_plt(const char *compile)
{
	struct sym_file *file;

	lab_text("plt.c", "#include <stdio.h>\n#include <stdlib.h>\n"
			  "asm(\".section .init\\nlast_before_plt: nop\\n.text\");\n"
			  "void *keep = puts;\n"
			  "int f(int x) { puts(\"a\"); free(malloc(x)); return x; }\n");
	lab_run("%s -shared -fPIC -o plt.so plt.c", compile);
	file = lab_load("plt.so");
	assert_true(check_stubs("plt.so", "[.]plt([.].*)?", false, file) >= 16);
	/* puts, and __cxa_finalize of the start-up code. */
	assert_true(check_stub_names("plt.so", file) >= 2);
	sym_file_free(file);
	lab_run("strip plt.so");
	file = lab_load("plt.so");
	assert_true(check_stub_names("plt.so", file) >= 2);
	sym_file_free(file);

	/* Only the sizes in .dynsym can tell now. */
	lab_run("cp plt.so plt_bare.so && llvm-objcopy-14 --strip-sections plt_bare.so");
	file = lab_load("plt_bare.so");
	assert_true(check_stubs("plt.so", "[.]plt([.].*)?", true, file) >= 16);
	assert_string_equal(lab_name(file, lab_nm("plt.so", "-D", "f")), "f");
	sym_file_free(file);
}

static void plt_entries_are_named(void **state)
{
	check_plt("gcc -O1 -fcf-protection=full");
	check_plt("gcc -O1 -fcf-protection=none");
	check_plt("clang-14 -O1 -fuse-ld=lld");
}

static void aliases_by_rule(void **state)
{
	static const struct {
		const char *place;
		const char *expected;
	} cases[] = { { "at_weak", "at_weak" }, { "at_local", "global_one" },
		      { "__under", "under" },   { "longer_name", "longer_name" },
		      { "aaa", "aaa" },         { "_Zsized", "_Zsized" } };
	struct sym_file *file;

	lab_text("alias.s",
		 ".macro fn names:vararg\n.irp n, \\names\n.type \\n, "
		 "@function\n\\n:\n.endr\nnop\nret\n"
		 ".irp n, \\names\n.size \\n, .-\\n\n.endr\n.endm\n.text\n"
		 ".globl at_weak, global_one, __under, under, short, longer_name, aaa, aab, "
		 "_Zsized\n"
		 ".weak weak_but_longer_name\n"
		 "fn weak_but_longer_name, at_weak\nfn at_local, global_one\nfn __under, under\n"
		 "fn short, longer_name\nfn aab, aaa\n"
		 ".globl unsized_and_so_much_longer\nunsized_and_so_much_longer:\nfn _Zsized\n");
	lab_run("gcc -shared -Wl,-z,noexecstack -o alias.so alias.s");
	for (int stripped = 0; stripped < 2; stripped++) {
		file = lab_load("alias.so");
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			uint64_t addr = lab_nm("alias.so", stripped ? "-D" : "", cases[i].expected);

			assert_string_equal(lab_name(file, addr), cases[i].expected);
		}
		sym_file_free(file);
		lab_run("strip alias.so");
	}
}

static void clones_and_demangling(void **state)
{
	struct sym_file_options raw = { .no_demangle = true };
	struct sym_hit hit;
	struct sym_file *file;
	uint64_t addr;

	lab_text("clone.s", ".text\n.type \"_ZN1a1bEv.part.0\", @function\n"
			    "\"_ZN1a1bEv.part.0\": nop\nret\n"
			    ".size \"_ZN1a1bEv.part.0\", 2\n");
	lab_run("gcc -shared -Wl,-z,noexecstack -o clone.so clone.s");
	addr = lab_nm("clone.so", "", "_ZN1a1bEv.part.0");
	file = lab_load("clone.so");
	assert_int_equal(sym_file_find(file, addr + 1, &hit), SYM_OK);
	assert_string_equal(hit.name, "a::b() [clone .part.0]");
	assert_string_equal(hit.raw_name, "_ZN1a1bEv.part.0");
	assert_true(hit.start == addr);
	sym_file_free(file);
	file = lab_load_with("clone.so", &raw);
	assert_string_equal(lab_name(file, addr), "_ZN1a1bEv.part.0");
	sym_file_free(file);
}

/* Over the bound .symtab goes, and what is exported keeps its name: all of it, and nothing else. */
static void memory_bound_is_kept(void **state)
{
	struct sym_file_options tight = { .max_bytes = 4096 }, wide = { .max_bytes = 256 * 1024 };
	struct sym_file_options middle = { .max_bytes = 32 * 1024 };
	struct sym_hit hit;
	struct sym_file *file = NULL;
	int fd;

	lab_run("(for i in $(seq 1000); do echo \".globl fn_$i\"; echo \".type fn_$i, @function\";"
		" echo \"fn_$i: nop\"; echo \".size fn_$i, 1\"; done) >many.s"
		" && gcc -shared -Wl,-z,noexecstack -o many.so many.s");
	fd = open("many.so", O_RDONLY | O_CLOEXEC);
	assert_int_equal(sym_file_load(fd, &tight, &file), 0);
	assert_int_equal(sym_file_find(file, lab_nm("many.so", "", "fn_7"), &hit), SYM_NO_MEMORY);
	assert_true(sym_file_bytes(file) < 8192);
	sym_file_free(file);
	close(fd);
	lab_run("(cat many.s | sed 's/globl/local/'; echo '.globl shown'; echo '.type shown, @function';"
		" echo 'shown: nop'; echo '.size shown, 1') >some.s"
		" && gcc -shared -Wl,-z,noexecstack -o some.so some.s");
	file = lab_load_with("some.so", &middle);
	assert_int_equal(sym_file_find(file, lab_nm("some.so", "", "fn_7"), &hit), SYM_NO_MEMORY);
	assert_string_equal(lab_name(file, lab_nm("some.so", "", "shown")), "shown");
	sym_file_free(file);
	file = lab_load_with("some.so", &wide);
	assert_string_equal(lab_name(file, lab_nm("some.so", "", "fn_7")), "fn_7");
	sym_file_free(file);
	file = lab_load_with("many.so", &wide);
	assert_true(sym_file_bytes(file) > 1000 * 16);
	assert_true(sym_file_bytes(file) < 1000 * 32);
	assert_true(lab_check_nm("many.so", "", file) >= 1000);
	sym_file_free(file);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(label_without_size),
		cmocka_unit_test(label_inside_function),
		cmocka_unit_test(stripped_neighbour_is_not_swallowed),
		cmocka_unit_test(versions_and_ifunc),
		cmocka_unit_test(version_is_cut_from_the_name),
		cmocka_unit_test(plt_entries_are_named),
		cmocka_unit_test(aliases_by_rule),
		cmocka_unit_test(clones_and_demangling),
		cmocka_unit_test(memory_bound_is_kept),
	};

	return cmocka_run_group_tests_name("sym_choice", tests, lab_open, lab_close);
}
