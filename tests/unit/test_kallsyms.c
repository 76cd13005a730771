/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel symbols, from samples of the file's format and from this machine's kernel. */
#include "elf_lab.h"
#include "symbolizer/kallsyms.h"
#include "symbolizer/symbolizer.h"

static const char sample[] = "0000000000000000 A fixed_percpu_data\n"
			     "0000000000001000 A cpu_debug_store\n"
			     "ffffffff81000000 T startup_64\n"
			     "ffffffff81000000 T _stext\n"
			     "ffffffff81000000 T _text\n"
			     "ffffffff81000060 W arch_weak\n"
			     "ffffffff81000060 t __local_name\n"
			     "ffffffff81000060 T global_name\n"
			     "ffffffff81000100 t do_work.constprop.0\n"
			     "ffffffff81000180 D not_text\n"
			     "ffffffff81000200 T _RNvNtC6kernel5print9call_func\n"
			     "ffffffff81c00000 r rodata\n"
			     "ffffffffc0000000 t nf_hook\t[nf_tables]\n"
			     "ffffffffc0000040 t nf_last\t[nf_tables]\n"
			     "ffffffffc0000f00 T ext4_first\t[ext4]\n"
			     "ffffffffc0009000 t bpf_prog_6deef7357e7b4530_sd_fw\t[bpf]\n"
			     "ffffffffc0009400 t bpf_trampoline_64\t[bpf]\n"
			     "garbage\n\nffffffffc000a000 t\nffffffffc000a000 tx y\nzz t name\n";

static const struct sym_kernel_options any;

static struct sym_kernel *parse(const char *text)
{
	struct sym_kernel *kernel = NULL;

	assert_int_equal(sym_kernel_parse(text, strlen(text), 0, &any, &kernel), 0);
	return kernel;
}

/* "name module" at an address. */
static const char *at(const struct sym_kernel *kernel, uint64_t addr)
{
	static char text[256];
	struct sym_hit hit;

	if (sym_kernel_find(kernel, addr, &hit) != SYM_OK)
		return "-";
	assert_true(hit.start <= addr);
	snprintf(text, sizeof(text), "%s %s", hit.name, hit.module);
	return text;
}

static void kernel_proper(void **state)
{
	struct sym_kernel *k = parse(sample);

	assert_string_equal(at(k, 0), "-");
	assert_string_equal(at(k, 0x1000), "-");
	assert_string_equal(at(k, 0xffffffff80ffffff), "-");
	/* No leading underscore is better. */
	assert_string_equal(at(k, 0xffffffff81000005), "startup_64 [kernel.kallsyms]");
	assert_string_equal(at(k, 0xffffffff81000060), "global_name [kernel.kallsyms]");
	assert_string_equal(at(k, 0xffffffff8100017f), "do_work.constprop.0 [kernel.kallsyms]");
	assert_string_equal(at(k, 0xffffffff81000190), "do_work.constprop.0 [kernel.kallsyms]");
	assert_string_equal(at(k, 0xffffffff81000200),
			    "kernel::print::call_func [kernel.kallsyms]");
	assert_string_equal(at(k, 0x7fffffffffff), "-");
	sym_kernel_free(k);
}

/* Names of the linker script do not hide functions; alone they are better than nothing. */
static void borders_of_sections(void **state)
{
	struct sym_kernel *k = parse("ffffffff81000000 T _stext\n"
				     "ffffffff81000000 t __first\n"
				     "ffffffff82000000 T __softirqentry_text_start\n"
				     "ffffffff82000000 T __do_softirq\n"
				     "ffffffff82000300 T __softirqentry_text_end\n"
				     "ffffffff82000400 t __sched_text_start\n"
				     "ffffffff82000400 W __weak_one\n"
				     "ffffffff82000500 t context_start\n");

	assert_string_equal(at(k, 0xffffffff81000000), "__first [kernel.kallsyms]");
	assert_string_equal(at(k, 0xffffffff82000010), "__do_softirq [kernel.kallsyms]");
	assert_string_equal(at(k, 0xffffffff82000301), "__softirqentry_text_end [kernel.kallsyms]");
	assert_string_equal(at(k, 0xffffffff82000401), "__weak_one [kernel.kallsyms]");
	assert_string_equal(at(k, 0xffffffff82000501), "context_start [kernel.kallsyms]");
	sym_kernel_free(k);
}

static void where_the_text_begins(void **state)
{
	uint64_t addr = 7;

	lab_text("kallsyms", "0000000000000000 A fixed\nffffffff9c000000 T _stext\n"
			     "ffffffff9c000000 T _textual\nffffffff9c000010 T _text\n");
	assert_int_equal(sym_kernel_text("kallsyms", &addr), 0);
	assert_int_equal(addr, 0xffffffff9c000010);
	lab_text("kallsyms", "0000000000000000 T _text\n");
	assert_int_equal(sym_kernel_text("kallsyms", &addr), -EPERM);
	lab_text("kallsyms", "ffffffff9c000000 T start\n");
	assert_int_equal(sym_kernel_text("kallsyms", &addr), -ENODATA);
	assert_int_equal(sym_kernel_text("missing", &addr), -ENOENT);
	assert_int_equal(addr, 0xffffffff9c000010);
}

static void modules_and_bpf(void **state)
{
	struct sym_kernel *k = parse(sample);

	assert_string_equal(at(k, 0xffffffffc0000010), "nf_hook [nf_tables]");
	assert_string_equal(at(k, 0xffffffffc0000040), "nf_last [nf_tables]");
	assert_string_equal(at(k, 0xffffffffc0000eff), "nf_last [nf_tables]");
	assert_string_equal(at(k, 0xffffffffc0000f00), "ext4_first [ext4]");
	/* The last one of a module ends with the page after its own. */
	assert_string_equal(at(k, 0xffffffffc0002eff), "ext4_first [ext4]");
	assert_string_equal(at(k, 0xffffffffc0002fff), "-");
	assert_string_equal(at(k, 0xffffffffc0009001), "bpf_prog_6deef7357e7b4530_sd_fw [bpf]");
	assert_string_equal(at(k, 0xffffffffc0009400), "bpf_trampoline_64 [bpf]");
	assert_string_equal(at(k, 0xffffffffc000f000), "-");
	assert_string_equal(at(k, UINT64_MAX), "-");
	sym_kernel_free(k);
}

static void hidden_addresses(void **state)
{
	static const char hidden[] = "0000000000000000 A percpu\n0000000000000000 T _text\n"
				     "0000000000000000 t hook\t[mod]\n";
	struct sym_kernel *k = NULL;

	assert_int_equal(sym_kernel_parse(hidden, strlen(hidden), 0, &any, &k), -EPERM);
	assert_int_equal(sym_kernel_parse("", 0, 0, &any, &k), -ENODATA);
	assert_int_equal(sym_kernel_parse("text\n", 5, 0, &any, &k), -ENODATA);
	assert_int_equal(sym_kernel_load("/nonexistent", &any, &k), -ENOENT);
	assert_null(k);
	sym_kernel_free(NULL);
}

static void odd_modules(void **state)
{
	struct sym_kernel *k = parse("1000 t a\t[]\n2000 t b\t[x\n3000 t c [y]\n"
				     "4000 t d\t[0123456789012345678901234567890123456789"
				     "012345678901234567890123456789]\n");

	assert_string_equal(at(k, 0x1000), "a [kernel.kallsyms]");
	assert_string_equal(at(k, 0x2000), "b [kernel.kallsyms]");
	assert_string_equal(at(k, 0x3000), "c [y]");
	assert_string_equal(at(k, 0x4000), "d [kernel.kallsyms]");
	sym_kernel_free(k);
}

/* Told beforehand what will be asked, it answers the same. */
static void wanted_addresses(void **state)
{
	static const char unsorted[] = "1000 t a\t[m]\n1000 t aa\t[m]\n5000 t e\t[m]\n3000 t c\t[m]\n"
				       "3800 t \t[m]\n3900 t  \n"
				       "2000 t b\t[m]\n4000 t d\t[m]\n3000 t cc\t[m]\n9000 t z\n";
	struct sym_kernel *all = parse(unsorted), *some;

	for (uint64_t addr = 0x800; addr < 0xb000; addr += 0x7f) {
		const uint64_t wanted[] = { addr, 0x2fff, addr };
		const struct sym_kernel_options options = { .wanted = wanted, .wanted_count = 3 };
		char want[256];

		assert_int_equal(sym_kernel_parse(unsorted, sizeof(unsorted) - 1, 0, &options, &some), 0);
		strcpy(want, at(all, addr));
		assert_string_equal(at(some, addr), want);
		strcpy(want, at(all, 0x2fff));
		assert_string_equal(at(some, 0x2fff), want);
		sym_kernel_free(some);
	}
	sym_kernel_free(all);
}

static void wanted_of_this_kernel(void **state)
{
	uint64_t wanted[100], text;
	const struct sym_kernel_options options = { .wanted = wanted, .wanted_count = 100 };
	struct sym_kernel *all = NULL, *some = NULL;

	if (sym_kernel_text("/proc/kallsyms", &text)) {
		print_message("# skip: kallsyms hides addresses (kptr_restrict)\n");
		skip();
	}
	for (size_t i = 0; i < 100; i++)
		wanted[i] = text + i * 0x24681;
	assert_int_equal(sym_kernel_load("/proc/kallsyms", &any, &all), 0);
	assert_int_equal(sym_kernel_load("/proc/kallsyms", &options, &some), 0);
	assert_true(sym_kernel_bytes(some) < sym_kernel_bytes(all) / 10);
	for (size_t i = 0; i < 100; i++) {
		char want[256];

		strcpy(want, at(all, wanted[i]));
		assert_string_equal(at(some, wanted[i]), want);
	}
	sym_kernel_free(all);
	sym_kernel_free(some);
}

/* ---- copies ---- */

enum { SLIDE = 0x3000000 };

static const uint64_t sample_text = 0xffffffff81000000;

/* What parsing some text gives as a copy, "" if none can be made. */
static struct buf copy_of(const char *text, uint64_t from)
{
	struct buf copy;
	const struct sym_kernel_options options = { .copy = &copy, .text = from };
	struct sym_kernel *kernel;

	buf_init(&copy, 1 << 20);
	assert_int_equal(sym_kernel_parse(text, strlen(text), 0, &options, &kernel), 0);
	sym_kernel_free(kernel);
	assert_non_null(buf_cstr(&copy));
	return copy;
}

/* Whatever is asked of the kernel itself, the answer is the same; in another boot too. */
static void copies(void **state)
{
	struct buf copy = copy_of(sample, sample_text);
	struct sym_kernel *all = parse(sample), *again, *later;
	const char *text = (const char *)copy.data;
	char want[256];

	assert_null(strstr(text, "ffffffff8"));
	assert_null(strstr(text, "nf_hook"));
	assert_null(strstr(text, "not_text"));
	assert_int_equal(sym_kernel_parse(text, copy.len, sample_text, &any, &again), 0);
	assert_int_equal(sym_kernel_parse(text, copy.len, sample_text + SLIDE, &any, &later), 0);
	for (uint64_t addr = sample_text - 0x100; addr < sample_text + 0x3000; addr += 8) {
		strcpy(want, at(all, addr));
		assert_string_equal(at(again, addr), want);
		assert_string_equal(at(later, addr + SLIDE), want);
	}
	assert_string_equal(at(again, 0xffffffffc0000010), "-");
	assert_string_equal(at(later, sample_text), "-");
	sym_kernel_free(all);
	sym_kernel_free(again);
	sym_kernel_free(later);
	buf_fini(&copy);
}

/* Half a copy would give the last symbol's name to what was behind it. */
static void copies_that_are_cut(void **state)
{
	struct buf copy = copy_of(sample, sample_text);
	const char *text = (const char *)copy.data;
	struct sym_kernel *k = NULL;

	for (size_t len = 0; len < copy.len; len++)
		assert_true(sym_kernel_parse(text, len, sample_text, &any, &k) < 0);
	buf_put_str(&copy, "00001000 t behind_the_end\n");
	text = (const char *)copy.data;
	assert_int_equal(sym_kernel_parse(text, copy.len, sample_text, &any, &k), -EBADMSG);
	assert_int_equal(sym_kernel_load_copy(-1, 0, &any, &k), -EINVAL);
	assert_null(k);
	buf_fini(&copy);
}

static void kernels_that_have_no_copy(void **state)
{
	struct buf below = copy_of(sample, sample_text + 1), far = copy_of(sample, 0x1000);

	assert_int_equal(below.len, 0);
	assert_int_equal(far.len, 0);
	buf_fini(&below);
	buf_fini(&far);
}

static void copy_of_this_kernel(void **state)
{
	struct sym_kernel_options options = { 0 };
	struct sym_kernel *all = NULL, *again = NULL;
	struct buf copy;
	char want[256];
	int fd;

	if (sym_kernel_text("/proc/kallsyms", &options.text)) {
		print_message("# skip: kallsyms hides addresses (kptr_restrict)\n");
		skip();
	}
	buf_init(&copy, 64 << 20);
	options.copy = &copy;
	assert_int_equal(sym_kernel_load("/proc/kallsyms", &options, &all), 0);
	lab_write("copy", copy.data, copy.len);
	fd = open("copy", O_RDONLY | O_CLOEXEC);
	assert_int_equal(sym_kernel_load_copy(fd, options.text, &any, &again), 0);
	close(fd);
	for (uint64_t addr = options.text; addr < options.text + (32 << 20); addr += 0x135) {
		strcpy(want, at(all, addr));
		if (strstr(want, "[kernel.kallsyms]"))
			assert_string_equal(at(again, addr), want);
	}
	sym_kernel_free(all);
	sym_kernel_free(again);
	buf_fini(&copy);
}

static void this_kernel(void **state)
{
	struct sym_kernel *k = NULL;
	int err = sym_kernel_load("/proc/kallsyms", &any, &k);
	uint64_t addr;
	char line[64];
	FILE *grep;

	if (err == -EPERM) {
		print_message("# skip: kallsyms hides addresses (kptr_restrict)\n");
		skip();
	}
	assert_int_equal(err, 0);
	grep = popen("awk '$3 == \"schedule\" { print $1 }' /proc/kallsyms", "r");
	assert_non_null(fgets(line, sizeof(line), grep));
	pclose(grep);
	assert_int_equal(sscanf(line, "%lx", &addr), 1);
	assert_string_equal(at(k, addr + 1), "schedule [kernel.kallsyms]");
	assert_true(sym_kernel_bytes(k) < 16 << 20);
	sym_kernel_free(k);
}

static void kernel_build_id(void **state)
{
	static const uint8_t notes[] = { 4, 0, 0,   0,   2,   0, 0,    0,    9,    0,
					 0, 0, 'X', 'e', 'n', 0, 1,    2,    0,    0,
					 4, 0, 0,   0,   4,   0, 0,    0,    3,    0,
					 0, 0, 'G', 'N', 'U', 0, 0xde, 0xad, 0xbe, 0xef };
	char hex[64] = "old";

	lab_write("notes", notes, sizeof(notes));
	assert_int_equal(sym_kernel_build_id("notes", hex, 8), -ENOSPC);
	assert_string_equal(hex, "old");
	assert_int_equal(sym_kernel_build_id("notes", hex, 9), 0);
	assert_string_equal(hex, "deadbeef");
	lab_write("notes", notes, sizeof(notes) - 1);
	assert_int_equal(sym_kernel_build_id("notes", hex, sizeof(hex)), 0);
	assert_string_equal(hex, "");
	assert_int_equal(sym_kernel_build_id("missing", hex, sizeof(hex)), -ENOENT);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_proper),    cmocka_unit_test(borders_of_sections),
		cmocka_unit_test(where_the_text_begins),
		cmocka_unit_test(modules_and_bpf),
		cmocka_unit_test(hidden_addresses), cmocka_unit_test(odd_modules),
		cmocka_unit_test(wanted_addresses),
		cmocka_unit_test(wanted_of_this_kernel),
		cmocka_unit_test(copies),
		cmocka_unit_test(copies_that_are_cut),
		cmocka_unit_test(kernels_that_have_no_copy),
		cmocka_unit_test(copy_of_this_kernel),
		cmocka_unit_test(this_kernel),      cmocka_unit_test(kernel_build_id),
	};

	return cmocka_run_group_tests_name("kallsyms", tests, lab_open, lab_close);
}
