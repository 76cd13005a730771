/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's stack switches: rules for the runtime's functions, by names in a pclntab of each layout and
 * by their code; and those of a program by the Go of this machine, as it is and stripped.
 */
#include "symbolizer/unwind.h"

#include "go_lab.h"
#include "unwind_lab.h"

/* --- a program by hand: code, then pclntab, found by its section ------------------------------ */

enum { SYSTEMSTACK = 1, PLAIN, MORESTACK, MCALL, GOEXIT, SYSTEMSTACK1, FUNCTIONS };

static const char *const names[FUNCTIONS] = {
	"go.buildid",     "runtime.systemstack",  "main.main", "runtime.morestack", "runtime.mcall",
	"runtime.goexit", "runtime.systemstack1",
};

/* Frame at 1 to 4, the thread's stack at 8. */
static const uint8_t framed[] = { 0x55, 0x48, 0x89, 0xe5, 0x90, 0x90, 0x90,
				  0x90, 0x48, 0x8b, 0x62, 0x38, 0xff, 0xd7 };
/* The same, as Go wrote it before 1.21: frame at 5, and one that is large. */
static const uint8_t small_frame[] = { 0x48, 0x89, 0x6c, 0x24, 0x10, 0x48, 0x8d, 0x6c, 0x24, 0x10 };
static const uint8_t large_frame[] = { 0x90, 0x48, 0x8d, 0xac, 0x24, 0, 1, 0, 0 };
static const uint8_t frameless[] = { 0x90, 0x90, 0x48, 0x8b, 0xa3, 0x38, 0, 0, 0, 0xe8 };

struct parts {
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;
	Elf64_Shdr sections[3];
	char names[24];
};

enum { CODE_AT = 0x1000, TABLE_AT = 0x2000 };

static uint64_t at(size_t function, uint64_t into)
{
	return CODE_AT + function * GO_LAB_STEP + into;
}

static struct buf program(unsigned int version, const uint8_t *systemstack, size_t len)
{
	struct buf table = go_lab_table(version, 8, names, FUNCTIONS), b;
	struct parts parts = {
		.ehdr = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_EXEC,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_phoff = offsetof(struct parts, phdr),
			  .e_shoff = offsetof(struct parts, sections),
			  .e_ehsize = sizeof(Elf64_Ehdr),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 1,
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = 3,
			  .e_shstrndx = 2 },
		.phdr = { .p_type = PT_LOAD,
			  .p_flags = PF_R | PF_X,
			  .p_offset = CODE_AT,
			  .p_vaddr = GO_LAB_TEXT,
			  .p_filesz = FUNCTIONS * GO_LAB_STEP,
			  .p_memsz = FUNCTIONS * GO_LAB_STEP },
		.sections = { [1] = { .sh_name = 1,
				      .sh_type = SHT_PROGBITS,
				      .sh_flags = SHF_ALLOC,
				      .sh_offset = TABLE_AT,
				      .sh_size = table.len },
			      [2] = { .sh_name = 12,
				      .sh_type = SHT_STRTAB,
				      .sh_offset = offsetof(struct parts, names),
				      .sh_size = sizeof(parts.names) } },
		.names = "\0.gopclntab\0.names",
	};
	static const uint8_t zeros[TABLE_AT];

	if (version >= 18)
		go_set(&table, 8 + 2 * 8, GO_LAB_TEXT, 8);
	buf_init(&b, 1 << 20);
	buf_put(&b, zeros, TABLE_AT);
	memcpy(b.data, &parts, sizeof(parts));
	buf_put(&b, table.data, table.len);
	buf_fini(&table);
	for (size_t i = 0; i < FUNCTIONS; i++)
		memcpy(b.data + at(i, 0), framed, sizeof(framed));
	memcpy(b.data + at(SYSTEMSTACK, 0), systemstack, len);
	memcpy(b.data + at(MORESTACK, 0), frameless, sizeof(frameless));
	return b;
}

static struct unwind_table *table_of_program(struct buf *b)
{
	struct unwind_table *t;

	assert_int_equal(unwind_table_build_image(b->data, b->len, NULL, &t), 0);
	check_table(t);
	buf_fini(b);
	return t;
}

static void check_rest(const struct unwind_table *t)
{
	/* Others of the same code, or of a name that is only alike, are left alone. */
	for (size_t i = 0; i < GO_LAB_STEP; i++) {
		assert_string_equal(rule_at(t, at(0, i)), "none");
		assert_string_equal(rule_at(t, at(PLAIN, i)), "none");
		assert_string_equal(rule_at(t, at(SYSTEMSTACK1, i)), "none");
		assert_string_equal(rule_at(t, at(GOEXIT, i)), "end");
		assert_string_equal(rule_at(t, at(MORESTACK, i)), i <= 2 ? "none" : "unsupported");
		assert_string_equal(rule_at(t, at(MCALL, i)), i <= 8 ? "none" : "end");
	}
	assert_string_equal(rule_at(t, at(FUNCTIONS, 0)), "none");
}

static void test_layouts(void **state)
{
	static const unsigned int versions[] = { 2, 16, 18, 20 };

	for (size_t v = 0; v < 4; v++) {
		struct buf b = program(versions[v], framed, sizeof(framed));
		struct unwind_table *t = table_of_program(&b);

		for (size_t i = 0; i < GO_LAB_STEP; i++)
			assert_string_equal(rule_at(t, at(SYSTEMSTACK, i)),
					    i < 4 ? "none" : "switch fp+16 cfa-16");
		check_rest(t);
		unwind_table_free(t);
	}
}

static void test_frames(void **state)
{
	static const struct {
		const uint8_t *code;
		size_t len, behind;
	} ways[] = {
		{ small_frame, sizeof(small_frame), 10 },
		{ large_frame, sizeof(large_frame), 9 },
		{ frameless, sizeof(frameless), GO_LAB_STEP },
	};

	for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
		uint8_t code[GO_LAB_STEP];
		struct unwind_table *t;
		struct buf b;

		memset(code, 0x90, sizeof(code));
		memcpy(code, ways[w].code, ways[w].len);
		b = program(20, code, sizeof(code));
		t = table_of_program(&b);
		for (size_t i = 0; i < GO_LAB_STEP; i++)
			assert_string_equal(rule_at(t, at(SYSTEMSTACK, i)),
					    i < ways[w].behind ? "none" : "switch fp+16 cfa-16");
		check_rest(t);
		unwind_table_free(t);
	}
}

/* Cut or with any byte of pclntab damaged: a table, perhaps without these rules. */
static void test_damage(void **state)
{
	struct buf whole = program(20, framed, sizeof(framed));
	struct unwind_table *t;

	for (size_t i = TABLE_AT; i < whole.len; i++) {
		uint8_t byte = whole.data[i];

		for (int bit = 0; bit < 8; bit++) {
			whole.data[i] = byte ^ (uint8_t)(1 << bit);
			assert_int_equal(unwind_table_build_image(whole.data, whole.len, NULL, &t),
					 0);
			check_table(t);
			unwind_table_free(t);
		}
		whole.data[i] = byte;
		assert_int_equal(unwind_table_build_image(whole.data, i, NULL, &t), 0);
		check_table(t);
		assert_string_equal(rule_at(t, at(GOEXIT, 0)), "none");
		unwind_table_free(t);
	}
	buf_fini(&whole);
}

/*
 * Rows of Go's .debug_frame that are of no use leave gaps in the middle of functions: no padding, even
 * where they end at a multiple of 16 and both sides have one rule.
 */
static void test_gap_in_a_function(void **state)
{
	static const char source[] = ".cfi_sections .debug_frame\n.text\n.p2align 4\n"
				     "f: .cfi_startproc\n.skip 7, 0x90\n"
				     ".cfi_def_cfa_offset 16\n.skip 9, 0x90\n"
				     ".cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.p2align 4\n"
				     "g: .cfi_startproc\nret\n.cfi_endproc\n"
				     ".section .go.buildinfo,\"a\"\n.quad 1\n";
	struct unwind_table *t;
	uint64_t f;

	lab_text("gap.s", source);
	lab_run("gcc -shared -nostdlib -o gap.so gap.s");
	t = table_of("gap.so");
	f = offset_of("gap.so", "f");
	for (uint64_t i = 0; i < 32; i++)
		assert_string_equal(rule_at(t, f + i), i < 7 || i >= 16 ? "sp+8 same" : "none");
	unwind_table_free(t);
}

/* --- a real one ------------------------------------------------------------------------------- */

static void test_real(void **state)
{
	static const char *const flags[] = { "", "-ldflags='-s -w'", "-buildmode=pie" };
	static const char *const roots[] = { "runtime.goexit", "runtime.mstart", "runtime.rt0_go" };

	setenv("PATH", "/usr/local/go/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	if (system("command -v go >/dev/null") != 0) {
		print_message("# skip: no Go here (golang-go): its programs are not tried\n");
		skip();
	}
	lab_text("main.go", "package main\nfunc main() { println(1) }\n");
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		struct unwind_table *t;
		uint64_t begin, end;
		size_t followed = 0;

		/* The same code, with symbols to ask for. */
		lab_run("export GOFLAGS= GO111MODULE=off GOTOOLCHAIN=local GOCACHE=$PWD/cache && "
			"go build -o prog %s main.go && go build -o with %s main.go",
			flags[i], i == 1 ? "" : flags[i]);
		t = table_of("prog");
		for (size_t r = 0; r < sizeof(roots) / sizeof(roots[0]); r++) {
			char symbol[64];

			snprintf(symbol, sizeof(symbol), "%s.abi0", roots[r]);
			assert_string_equal(rule_at(t, offset_of("with", symbol)), "end");
		}
		begin = offset_of("with", "runtime.systemstack.abi0") + 4; /* push, mov */
		for (uint64_t off = begin; off < begin + 0x40; off++)
			assert_string_equal(rule_at(t, off), "switch fp+16 cfa-16");
		begin = offset_of("with", "runtime.nanotime1.abi0");
		assert_string_equal(rule_at(t, begin + 16), "switch fp+16 cfa-16");
		begin = offset_of("with", "runtime.morestack.abi0");
		end = offset_of("with", "runtime.morestack_noctxt.abi0");
		assert_string_not_equal(rule_at(t, begin), "unsupported");
		for (uint64_t off = begin; off < end; off++)
			followed += strncmp(rule_at(t, off), "go fs-8 m+", 10) == 0;
		assert_in_range(followed, 10, 80);
		assert_string_equal(rule_at(t, offset_of("with", "runtime.execute")), "end");
		unwind_table_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layouts), cmocka_unit_test(test_frames),
		cmocka_unit_test(test_damage),  cmocka_unit_test(test_gap_in_a_function),
		cmocka_unit_test(test_real),
	};

	return cmocka_run_group_tests(tests, lab_open, lab_close);
}
