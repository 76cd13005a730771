/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests that make real ELF files with the tools of the machine: a temporary directory,
 * building, reading, and the truth to compare with.
 *
 * Functions in test programs carry a text "MARK:name!" among their instructions. Its place in
 * the file is found by plain search, which owes nothing to any ELF parser: looked up by that
 * offset, the symbolizer must say `name`.
 */
#ifndef TESTS_UNIT_ELF_LAB_H
#define TESTS_UNIT_ELF_LAB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "symbolizer/sym_file.h"

#define LAB_MARK                                                                                   \
	"#define MARK(name) asm volatile(\"jmp 1f\\n.ascii \\\"MARK:\" #name \"!\\\"\\n1:\")\n"

static char lab_dir[64];

/* Group set-up and tear-down. */
static inline int lab_open(void **state)
{
	snprintf(lab_dir, sizeof(lab_dir), "/tmp/sonde-elf-XXXXXX");
	/* Tools that the tests call are no subject of leak checks. */
	setenv("LSAN_OPTIONS", "detect_leaks=0", 0);
	return mkdtemp(lab_dir) && chdir(lab_dir) == 0 ? 0 : -1;
}

static inline int lab_close(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", lab_dir);
	return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static inline void lab_write(const char *path, const void *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, bytes, len), 0);
	close(fd);
}

static inline void lab_text(const char *path, const char *text)
{
	lab_write(path, text, strlen(text));
}

/* Runs a shell command in the directory; it must succeed. */
static inline void lab_run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void lab_run(const char *format, ...)
{
	char command[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	if (system(command) != 0)
		fail_msg("failed: %s", command);
}

static inline struct buf lab_read(const char *path)
{
	struct buf b;

	buf_init(&b, 256 * 1024 * 1024);
	assert_int_equal(file_read_path(path, &b), 0);
	return b;
}

static inline struct sym_file *lab_load_with(const char *path,
					     const struct sym_file_options *options)
{
	struct sym_file *file = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;

	assert_true(fd >= 0);
	err = sym_file_load(fd, options, &file);
	close(fd);
	if (err)
		fail_msg("%s: error %d", path, err);
	return file;
}

static inline struct sym_file *lab_load(const char *path)
{
	return lab_load_with(path, NULL);
}

/* The name at a virtual address, or the reason's text in brackets. */
static inline const char *lab_name(struct sym_file *file, uint64_t vaddr)
{
	static char text[512];
	struct sym_hit hit;
	enum sym_reason reason = sym_file_find(file, vaddr, &hit);

	if (reason == SYM_OK || reason == SYM_START_ONLY) {
		assert_true(hit.start <= vaddr);
		return hit.name;
	}
	snprintf(text, sizeof(text), "[%s]", sym_reason_text(reason));
	return text;
}

/* No name, or only the function's start, which unwind data tell. */
static inline bool lab_is_nameless(const char *name)
{
	return strcmp(name, "[no symbol covers the address]") == 0 || strncmp(name, "sub_", 4) == 0;
}

/* The address that nm gives a symbol. */
static inline uint64_t lab_nm(const char *path, const char *options, const char *symbol)
{
	char command[512], line[512];
	uint64_t addr = 0;
	FILE *nm;

	snprintf(command, sizeof(command), "nm %s %s | awk '$NF == \"%s\" { print $1 }'", options,
		 path, symbol);
	nm = popen(command, "r");
	assert_non_null(nm);
	if (!fgets(line, sizeof(line), nm) || sscanf(line, "%lx", &addr) != 1)
		fail_msg("%s: nm knows no %s", path, symbol);
	pclose(nm);
	return addr;
}

/*
 * Looks up every mark of the file; returns how many there were. `unnamed` is a name that must
 * not be found, or NULL.
 */
static inline size_t lab_check_marks(const char *path, struct sym_file *file, const char *unnamed)
{
	struct buf b = lab_read(path);
	size_t count = 0;

	for (size_t off = 0; off + 16 < b.len; off++) {
		char name[64];
		uint64_t vaddr;

		if (memcmp(b.data + off, "MARK:", 5) != 0 ||
		    sscanf((const char *)b.data + off, "MARK:%63[a-z0-9_]!", name) != 1)
			continue;
		assert_true(sym_file_vaddr(file, off, &vaddr));
		if (unnamed && strcmp(name, unnamed) == 0)
			assert_true(lab_is_nameless(lab_name(file, vaddr)));
		else
			assert_string_equal(lab_name(file, vaddr), name);
		count++;
	}
	buf_fini(&b);
	return count;
}

/* Whether nm has a function of this name, whatever its version, at this address. */
static inline bool lab_nm_has(const char *list, uint64_t addr, const char *name)
{
	char line[1024];

	snprintf(line, sizeof(line), "\n%lx %.*s\n", addr, (int)strcspn(name, "@"), name);
	return strstr(list, line) != NULL;
}

/*
 * Compares with nm: at the first and last byte of each function of the file, and of each label
 * in code, the answer must be one that nm has, and begin no lower. Returns how many there were.
 */
static inline size_t lab_check_nm(const char *path, const char *options, struct sym_file *file)
{
	char name[512];
	uint64_t addr, size;
	size_t count = 0;
	struct buf list;
	FILE *nm;

	lab_run("nm -f sysv --defined-only %s %s | tr -d ' ' | awk -F'|' '"
		"$4 ~ /FUNC|specific>:10/ || ($4 == \"NOTYPE\" && $7 ~ /^.(text|init|fini)$/) {"
		" sub(/@.*/, \"\", $1); sub(/^0+/, \"\", $2); print $2, ($5 == \"\" ? 1 : $5), $1 "
		"}'"
		" >nm.full",
		options, path);
	lab_run("(echo; awk '{ print $1, $3 }' nm.full) >nm.short");
	list = lab_read("nm.short");
	nm = fopen("nm.full", "r");
	assert_non_null(nm);
	while (fscanf(nm, "%lx %lx %511s", &addr, &size, name) == 3) {
		struct sym_hit hit;

		for (int last = 0; last < 2; last++) {
			uint64_t at = last ? addr + size - 1 : addr;

			if (sym_file_find(file, at, &hit) != SYM_OK)
				fail_msg("%s: nothing at %lx: %s", path, at, name);
			if (hit.start < addr ||
			    !lab_nm_has(buf_cstr(&list), hit.start, hit.raw_name))
				fail_msg("%s: %lx is %s, not %s", path, at, hit.raw_name, name);
		}
		count++;
	}
	fclose(nm);
	buf_fini(&list);
	return count;
}

#endif
