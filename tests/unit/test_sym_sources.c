/* SPDX-License-Identifier: Apache-2.0 */
/* Names of stripped files: MiniDebugInfo, separate debug files, function starts, 32-bit files. */
#include "elf_lab.h"
#include "symbolizer/elf_debug.h"
#include "symbolizer/elf_minidebug.h"
#include "symbolizer/symbolizer.h"

/* three: an exported function that calls a static one, and main. */
static void build(const char *flags)
{
	lab_text(
		"three.c", LAB_MARK
		"static __attribute__((noinline)) int inner(int x) { MARK(inner); return x + 1; }\n"
		"__attribute__((noinline)) int shown(int x) { MARK(shown); return inner(x) * 2; }\n"
		"int main(int c, char **v) { MARK(main); return shown(c); }\n");
	lab_run("rm -rf three three.debug .debug debug && gcc -O1 -g -rdynamic %s -o three three.c",
		flags);
}

static uint64_t place_of(const char *name)
{
	return lab_nm("three", "", name);
}

static void check_name(const struct sym_file_options *options, uint64_t addr, const char *name)
{
	struct sym_file *file = lab_load_with("three", options);

	assert_string_equal(lab_name(file, addr), name);
	sym_file_free(file);
}

/* As Fedora's find-debuginfo makes it: symbols that .dynsym has are left out. */
static void make_minidebug(void)
{
	lab_run("nm -D three --format=posix --defined-only | awk '{ print $1 }' | sort >dynamic; "
		"nm three --format=posix --defined-only | awk '$2 ~ /[tT]/ { print $1 }' | sort "
		">all; "
		"comm -13 dynamic all >keep; objcopy --only-keep-debug three mini; "
		"objcopy -S --remove-section .gdb_index --remove-section .comment "
		"--keep-symbols=keep mini; rm -f mini.xz; xz -k mini");
}

static void attach_minidebug(void)
{
	lab_run("strip -s three && objcopy --add-section .gnu_debugdata=mini.xz three");
}

/* Names do not depend on how the debug sections beside them are compressed. */
static void compressed_debug_sections(void **state)
{
	static const char *const kinds[] = { "zlib", "zlib-gnu", "zstd" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		uint64_t inner, shown;

		build("");
		inner = place_of("inner");
		shown = place_of("shown");
		lab_run("objcopy --compress-debug-sections=%s three", kinds[i]);
		check_name(NULL, inner, "inner");
		check_name(NULL, shown, "shown");
	}
}

static void minidebuginfo_and_dynsym(void **state)
{
	uint64_t inner, shown;

	build("");
	inner = place_of("inner");
	shown = place_of("shown");
	make_minidebug();
	attach_minidebug();
	check_name(NULL, inner, "inner");
	check_name(NULL, shown, "shown");
}

static void minidebuginfo_damaged(void **state)
{
	static const char *const damages[] = {
		"truncate -s 200 mini.xz",
		"printf 'XXXX' | dd of=mini.xz bs=1 seek=150 conv=notrunc status=none",
		"printf 'no xz' >mini.xz",
		"echo no elf | xz >mini.xz",
	};
	char start[64];
	uint64_t inner, shown;

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		build("");
		inner = place_of("inner");
		shown = place_of("shown");
		make_minidebug();
		lab_run("%s", damages[i]);
		attach_minidebug();
		snprintf(start, sizeof(start), "sub_%lx", inner);
		check_name(NULL, inner, start);
		check_name(NULL, shown, "shown");
	}
}

static void minidebuginfo_bomb(void **state)
{
	struct elf_source source;
	struct buf b;
	uint8_t *bytes;
	size_t size;

	lab_run("head -c 300M /dev/zero | xz -1 >bomb.xz");
	b = lab_read("bomb.xz");
	source = elf_source_image(b.data, b.len);
	assert_int_equal(elf_minidebug_unpack(&source, 0, b.len, ELF_MINIDEBUG_MAX, &bytes, &size),
			 -EFBIG);
	assert_int_equal(elf_minidebug_unpack(&source, 0, b.len - 1, 1000, &bytes, &size), -EFBIG);
	buf_fini(&b);
}

static void split(const char *link)
{
	lab_run("objcopy --only-keep-debug three three.debug && strip -s three && "
		"objcopy --add-gnu-debuglink=three.debug three %s",
		link);
}

static void debug_link_by_place(void **state)
{
	static const struct {
		const char *move;
		bool is_found;
	} cases[] = {
		{ "true", true },
		{ "mkdir .debug && mv three.debug .debug/", true },
		{ "mkdir -p usr/lib/debug/app && mv three.debug usr/lib/debug/app/", true },
		{ "mkdir -p debug/app && mv three.debug debug/app/", true },
		{ "rm three.debug", false },
		{ "echo x >>three.debug", false },
		{ "rm three.debug && mkfifo three.debug", false },
		{ "rm three.debug && ln -s /dev/zero three.debug", false },
		{ "cp three three.debug", false },
	};
	struct sym_file_options options = { .debug_dir = "debug",
					    .root = ".",
					    .path = "/app/three" };
	uint64_t inner;
	char start[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		build("-Wl,--build-id=none");
		inner = place_of("inner");
		split("");
		lab_run("rm -rf app usr debug; %s; mkdir -p app; mv three.debug .debug app/ "
			"2>/dev/null; true",
			cases[i].move);
		snprintf(start, sizeof(start), "three!sub_%lx", inner);
		check_name(&options, inner, cases[i].is_found ? "inner" : start);
		lab_run("rm -rf app usr debug .debug");
	}
}

static void debug_link_of_another_build(void **state)
{
	struct sym_file_options options = { .root = ".", .path = "/three" };
	uint64_t inner;
	char start[64];

	/* The CRC is that of the file, but its build-id is another one: the id decides. */
	build("");
	inner = place_of("inner");
	lab_run("objcopy --only-keep-debug three three.debug; gcc -O1 -rdynamic -DX "
		"-Wl,--build-id=0x1234"
		" -o three three.c && strip -s three && "
		"objcopy --add-gnu-debuglink=three.debug three");
	snprintf(start, sizeof(start), "three!sub_%lx", inner);
	check_name(&options, inner, start);
}

static void debug_link_names(void **state)
{
	static const struct {
		const char *name;
		bool is_good;
	} cases[] = {
		{ "three.debug", true },
		{ "../three.debug", false },
		{ "/etc/passwd", false },
		{ "..", false },
		{ "", false },
	};
	char name[256];
	uint32_t crc;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct elf_file elf;
		struct elf_source source;
		struct buf b;

		build("");
		lab_run("printf '%s\\0\\0\\0\\0' >link; truncate -s %%4 link; "
			"printf '\\1\\2\\3\\4' >>link; "
			"objcopy --add-section .gnu_debuglink=link three",
			cases[i].name);
		b = lab_read("three");
		source = elf_source_image(b.data, b.len);
		assert_int_equal(elf_file_open(&source, &elf), 0);
		if (elf_debug_link(&elf, name, &crc))
			assert_true(cases[i].is_good && strcmp(name, cases[i].name) == 0);
		else
			assert_false(cases[i].is_good);
		elf_file_close(&elf);
		buf_fini(&b);
	}
}

/* No link in a container leads to the host's files. */
static void root_is_not_left(void **state)
{
	struct sym_file_options options = { .root = "root", .path = "/app/three" };
	char start[64];
	uint64_t inner;

	build("-Wl,--build-id=none");
	inner = place_of("inner");
	split("");
	lab_run("rm -rf root; mkdir -p root/app; ln -s $PWD/three.debug root/app/three.debug");
	snprintf(start, sizeof(start), "three!sub_%lx", inner);
	check_name(&options, inner, start);
	/* The same text of the link, followed inside. */
	lab_run("mkdir -p root/$PWD; cp three.debug root/$PWD/");
	check_name(&options, inner, "inner");
}

static void build_id_in_root_and_symfs(void **state)
{
	static const char place[] = "usr/lib/debug/.build-id/ab/cdef01.debug";
	struct sym_file_options in_root = { .root = "root" }, in_symfs = { .symfs = "root" };
	struct sym_file_options copy = { .symfs = "copies", .path = "/opt/three" };
	uint64_t inner;

	build("-Wl,--build-id=0xabcdef01");
	inner = place_of("inner");
	lab_run("rm -rf root copies; mkdir -p root/usr/lib/debug/.build-id/ab copies/opt; "
		"cp three copies/opt/three; objcopy --only-keep-debug three root/%s; strip -s "
		"three",
		place);
	check_name(&in_root, inner, "inner");
	check_name(&in_symfs, inner, "inner");
	check_name(&copy, inner, "inner");
	/* A file of another build at the same path. */
	lab_run("gcc -O1 -o copies/opt/three three.c");
	copy.path = "/opt/three";
	{
		struct sym_file *file = lab_load_with("three", &copy);
		struct sym_hit hit;

		assert_int_equal(sym_file_find(file, inner, &hit), SYM_START_ONLY);
		sym_file_free(file);
	}
}

static void starts_of_stripped_code(void **state)
{
	struct sym_file_options options = { .path = "/opt/x/three" };
	uint64_t inner, shown, end;
	struct sym_file *file;
	struct sym_hit hit;

	build("");
	inner = place_of("inner");
	shown = place_of("shown");
	lab_run("strip -s three");
	file = lab_load_with("three", &options);
	assert_int_equal(sym_file_find(file, inner + 1, &hit), SYM_START_ONLY);
	assert_int_equal(hit.start, inner);
	assert_true(strncmp(hit.name, "three!sub_", 10) == 0);
	assert_int_equal(strtoull(hit.name + 10, NULL, 16), inner);
	assert_int_equal(sym_file_find(file, shown, &hit), SYM_OK);
	assert_string_equal(hit.name, "shown");
	for (end = inner; sym_file_find(file, end, &hit) == SYM_START_ONLY && hit.start == inner;)
		end++;
	assert_true(end > inner + 3 && end <= inner + 64);
	sym_file_free(file);
}

/* A label of the assembler does not reach over the function behind it. */
static void unsized_symbol_ends_with_its_function(void **state)
{
	struct sym_file *file;
	uint64_t bare, hidden;

	lab_text("bare.s",
		 ".text\n.globl bare\nbare: .fill 20, 1, 0x90\nret\n"
		 ".type hidden, @function\nhidden:\n.cfi_startproc\n.fill 20, 1, 0x90\nret\n"
		 ".cfi_endproc\n.size hidden, .-hidden\n");
	lab_run("gcc -shared -nostdlib -Wl,-z,noexecstack -o bare bare.s");
	bare = lab_nm("bare", "", "bare");
	hidden = lab_nm("bare", "", "hidden");
	lab_run("strip bare");
	file = lab_load("bare");
	assert_string_equal(lab_name(file, bare), "bare");
	assert_string_equal(lab_name(file, hidden - 1), "bare");
	assert_true(strcmp(lab_name(file, hidden), "bare") != 0);
	sym_file_free(file);
}

static void narrow_files(void **state)
{
	struct sym_file *file;
	struct sym_hit hit;

	lab_text("narrow.s",
		 ".text\n.globl _start\n.type _start, @function\n_start: nop\nnop\nret\n"
		 ".size _start, .-_start\n.globl second\n.type second, @function\n"
		 "second: .fill 9, 1, 0x90\n.size second, .-second\n");
	lab_run("as --32 -o narrow.o narrow.s && ld -m elf_i386 -shared -o narrow narrow.o");
	file = lab_load("narrow");
	assert_true(lab_check_nm("narrow", "", file) >= 2);
	sym_file_free(file);
	lab_run("strip narrow");
	file = lab_load("narrow");
	assert_true(lab_check_nm("narrow", "-D", file) >= 2);
	sym_file_free(file);
	lab_run("nm -D narrow | awk '$3 == \"second\" { print $1 }' >addr; "
		"llvm-objcopy-14 --strip-sections narrow");
	file = lab_load("narrow");
	{
		struct buf b = lab_read("addr");

		assert_int_equal(sym_file_find(file, strtoull(buf_cstr(&b), NULL, 16) + 8, &hit),
				 SYM_OK);
		buf_fini(&b);
	}
	assert_string_equal(hit.name, "second");
	sym_file_free(file);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(compressed_debug_sections),
		cmocka_unit_test(minidebuginfo_and_dynsym),
		cmocka_unit_test(minidebuginfo_damaged),
		cmocka_unit_test(minidebuginfo_bomb),
		cmocka_unit_test(debug_link_by_place),
		cmocka_unit_test(debug_link_of_another_build),
		cmocka_unit_test(debug_link_names),
		cmocka_unit_test(root_is_not_left),
		cmocka_unit_test(build_id_in_root_and_symfs),
		cmocka_unit_test(starts_of_stripped_code),
		cmocka_unit_test(unsized_symbol_ends_with_its_function),
		cmocka_unit_test(narrow_files),
	};

	return cmocka_run_group_tests(tests, lab_open, lab_close);
}
