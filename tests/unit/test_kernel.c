/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/resolve/kernel: names by a thread, reading again, build-ids of modules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/resolve/kernel.h"

static char root[] = "/tmp/sonde-kernel-XXXXXX";

static void write_file(const char *name, const void *bytes, size_t size)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

static void write_text(const char *name, const char *text)
{
	write_file(name, text, strlen(text));
}

static int setup(void **state)
{
	char command[256];

	strcpy(root + sizeof(root) - 7, "XXXXXX");
	if (!mkdtemp(root))
		return -1;
	snprintf(command, sizeof(command), "mkdir -p %s/kernel %s/module/ext4/notes", root, root);
	return system(command);
}

static int teardown(void **state)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static struct kernel_names *names_new(void)
{
	struct kernel_names *names;

	assert_int_equal(kernel_names_new(root, root, false, &names), 0);
	return names;
}

static void test_names(void **state)
{
	struct kernel_names *names;
	struct sym_hit hit;

	write_text("kallsyms", "ffffffff81000000 T start\nffffffffc0000000 t hook\t[ext4]\n");
	names = names_new();
	assert_int_equal(kernel_names_find(names, 0xffffffffc0000001, 1, &hit), SYM_OK);
	assert_string_equal(hit.name, "hook");
	assert_string_equal(hit.module, "[ext4]");
	assert_false(kernel_names_are_coming(names));
	kernel_names_free(names);
}

static void test_hidden(void **state)
{
	struct kernel_names *names;
	struct sym_hit hit;

	write_text("kallsyms", "0000000000000000 T start\n0000000000000000 t next\n");
	names = names_new();
	assert_int_equal(kernel_names_find(names, 0xffffffff81000001, 1, &hit), SYM_NO_KALLSYMS);
	kernel_names_free(names);
	kernel_names_free(NULL);
}

static void test_without_names(void **state)
{
	struct kernel_names *names;
	struct sym_hit hit;

	assert_int_equal(kernel_names_new(NULL, root, false, &names), 0);
	assert_int_equal(kernel_names_find(names, 0xffffffff81000001, 99, &hit), SYM_LEFT_OUT);
	assert_false(kernel_names_are_coming(names));
	kernel_names_free(names);
}

/* A module that was loaded later: found some look-ups after, once it is read. */
static void test_read_again(void **state)
{
	const nsec_t TOO_EARLY = 119 * NSEC_PER_SEC, LATER = 121 * NSEC_PER_SEC;
	struct kernel_names *names;
	struct sym_hit hit;
	enum sym_reason reason;

	write_text("kallsyms", "ffffffff81000000 T start\n");
	names = names_new();
	assert_int_equal(kernel_names_find(names, 0xffffffff81000001, 1, &hit), SYM_OK);
	write_text("kallsyms", "ffffffff81000000 T start\nffffffffc0000000 t hook\t[ext4]\n");
	assert_int_equal(kernel_names_find(names, 0xffffffffc0000001, TOO_EARLY, &hit),
			 SYM_NOT_COVERED);
	assert_false(kernel_names_are_coming(names));
	reason = kernel_names_find(names, 0xffffffffc0000001, LATER, &hit);
	while (kernel_names_are_coming(names))
		reason = kernel_names_find(names, 0xffffffffc0000001, LATER, &hit);
	assert_int_equal(reason, SYM_OK);
	assert_string_equal(hit.name, "hook");
	kernel_names_free(names);
}

static void test_build_ids(void **state)
{
	static const uint32_t note[] = { 4, 4, 3, 0x00554e47, 0x04030201 };
	struct kernel_names *names;

	write_text("kallsyms", "");
	write_file("kernel/notes", note, sizeof(note));
	write_file("module/ext4/notes/.note.gnu.build-id", note, sizeof(note));
	names = names_new();
	assert_string_equal(kernel_names_build_id(names, KERNEL_MODULE), "01020304");
	assert_string_equal(kernel_names_build_id(names, "[ext4]"), "01020304");
	assert_string_equal(kernel_names_build_id(names, "[none]"), "");
	assert_string_equal(kernel_names_build_id(names, "[bpf]"), "");
	assert_string_equal(kernel_names_build_id(names, "[../kernel]"), "");
	assert_string_equal(kernel_names_build_id(names, ""), "");
	kernel_names_free(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hidden, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_read_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_build_ids, setup, teardown),
	};

	return cmocka_run_group_tests_name("kernel", tests, NULL, NULL);
}
