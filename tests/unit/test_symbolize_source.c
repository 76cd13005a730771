/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of cli/symbolize_source: which file names a mapping, in folders with this program in them. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/kernel_copy.h"
#include "cli/symbolize.h"
#include "symbolizer/build_id.h"

static char dir[] = "/tmp/sonde-source-XXXXXX";
static char build_id[BUILD_ID_HEX_SIZE];

/* In the folder. */
static void shell(const char *script)
{
	char command[512];

	snprintf(command, sizeof(command), "cd %s && %s", dir, script);
	assert_int_equal(system(command), 0);
}

/* A program at /real/bin/prog of another machine, and its links to it. */
static int setup(void **state)
{
	const struct sym_file_options options = { 0 };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct sym_file *self;
	char script[256];

	strcpy(dir + sizeof(dir) - 7, "XXXXXX");
	if (fd < 0 || !mkdtemp(dir) || sym_file_load(fd, &options, &self))
		return -1;
	close(fd);
	snprintf(build_id, sizeof(build_id), "%s", sym_file_build_id(self));
	sym_file_free(self);
	snprintf(script, sizeof(script), "mkdir -p real/bin && cp /proc/%d/exe real/bin/prog", getpid());
	shell(script);
	shell("ln -s real/bin relative; ln -s /real/bin absolute; ln -s ../../.. real/up");
	return build_id[0] ? 0 : -1;
}

static int teardown(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static enum sym_reason find(const char *symfs, const char *path, const char *id)
{
	const struct symbolize_options options = { .symfs = symfs };
	const struct symbolize_mapping mapping = { .path = path, .build_id = id, .release = "" };
	struct symbolize_source source;
	enum sym_reason reason = symbolize_source_open(&options, &mapping, &source);

	symbolize_source_close(&source);
	return reason;
}

/* Links below the folder are those of the machine that it is a copy of. */
static void test_below_symfs(void **state)
{
	static const char *const paths[] = { "/real/bin/prog", "/relative/prog", "/absolute/prog",
					     "/real/up/real/bin/prog" };

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_int_equal(find(dir, paths[i], build_id), SYM_OK);
	assert_int_equal(find(dir, "/real/bin/prog", "0123"), SYM_FILE_CHANGED);
	assert_int_equal(find(dir, "/real/bin", build_id), SYM_NO_FILE);
	assert_int_equal(find(dir, "/nothing", build_id), SYM_NO_FILE);
}

static void test_without_symfs(void **state)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/relative/prog", dir);
	assert_int_equal(find(NULL, path, build_id), SYM_OK);
	snprintf(path, sizeof(path), "%s/absolute/prog", dir);
	assert_int_equal(find(NULL, path, build_id), SYM_NO_FILE);
	assert_int_equal(find(NULL, "relative/prog", build_id), SYM_NO_FILE);
	assert_int_equal(find(NULL, "/nothing", ""), SYM_NO_FILE);
	assert_int_equal(find(NULL, "[jit]", ""), SYM_NO_JIT_MAP);
}

/* A path is the profile's word: what it names is not opened unless it is a file. */
static void test_no_file_is_left_alone(void **state)
{
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	char path[96], event[256];

	shell("mkfifo fifo");
	snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_true(inotify_add_watch(watch, path, IN_OPEN) >= 0);
	assert_int_equal(find(NULL, path, build_id), SYM_NO_FILE);
	assert_int_equal(find(dir, "/fifo", build_id), SYM_NO_FILE);
	assert_int_equal(read(watch, event, sizeof(event)), -1);
	close(watch);
}

/* A kernel of another boot, or another machine: by what was kept of its build. */
static void test_kernel_that_does_not_run(void **state)
{
	static const char id[] = "00112233445566778899aabbccddeeff00112233", kept[] = "00000010 t f\n# 1\n";
	const struct symbolize_options options = { .cache_dir = dir };
	struct symbolize_mapping mapping = { .path = "[kernel.kallsyms]", .build_id = id,
					     .release = "", .kernel_text = 0x7000 };
	struct symbolize_source source;
	struct sym_hit hit;
	struct buf text;

	assert_int_not_equal(symbolize_source_open(&options, &mapping, &source), SYM_OK);
	symbolize_source_close(&source);
	buf_init(&text, 1024);
	buf_put_str(&text, kept);
	assert_int_equal(kernel_copy_save(dir, id, &text), 0);
	buf_fini(&text);
	assert_int_equal(symbolize_source_open(&options, &mapping, &source), SYM_OK);
	assert_int_equal(symbolize_source_find(&source, 0x7018, &hit), SYM_OK);
	assert_string_equal(hit.name, "f");
	assert_int_equal(symbolize_source_find(&source, 0x7008, &hit), SYM_NOT_COVERED);
	symbolize_source_close(&source);
	mapping.kernel_text = 0; /* the profile does not tell */
	assert_int_equal(symbolize_source_open(&options, &mapping, &source), SYM_NO_KALLSYMS);
	symbolize_source_close(&source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_below_symfs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_symfs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_file_is_left_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kernel_that_does_not_run, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
