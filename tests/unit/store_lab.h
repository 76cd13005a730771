/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the journal and the store: small profiles, directories, and what is in them. */
#ifndef TESTS_UNIT_STORE_LAB_H
#define TESTS_UNIT_STORE_LAB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "proto/profile.h"

static inline uint32_t lab_string(struct profile *p, const char *text)
{
	int64_t number = profile_string(p, text);

	assert_true(number >= 0);
	return (uint32_t)number;
}

/* A profile of `cpu` with one sample of the function and the value. */
static inline struct profile *lab_profile(const char *event, const char *function, int64_t value,
					  int64_t start_s, int64_t seconds)
{
	struct profile_function f = { 0 };
	struct profile_line line = { 0 };
	struct profile *p;
	uint32_t location;

	assert_int_equal(profile_new(1 << 20, &p), 0);
	assert_true(profile_add_type(p, event, "nanoseconds") > 0);
	p->period_type =
		(struct profile_type){ lab_string(p, event), lab_string(p, "nanoseconds") };
	p->period = 1;
	p->time_ns = start_s * (int64_t)NSEC_PER_SEC;
	p->duration_ns = seconds * (int64_t)NSEC_PER_SEC;
	f.name = lab_string(p, function);
	line.function_id = (uint32_t)profile_add_function(p, &f);
	location = (uint32_t)profile_add_location(p, 0, 0, &line, 1);
	assert_int_equal(profile_add_sample(p, &location, 1, &value, NULL, 0), 0);
	assert_int_equal(profile_add_comment(p, "host: lab"), 0);
	assert_int_equal(profile_add_comment(p, "kernel: 6.1"), 0);
	assert_int_equal(profile_add_comment(p, "sonde.received=%lld", (long long)value), 0);
	return p;
}

/* The sum of the first value of all samples. */
static inline int64_t lab_sum(const struct profile *p)
{
	int64_t sum = 0;

	for (size_t i = 0; i < p->sample_count; i++)
		sum += p->samples[i].values[0];
	return sum;
}

static inline bool lab_has_comment(const struct profile *p, const char *text)
{
	for (size_t i = 0; i < p->comment_count; i++) {
		if (strcmp(profile_text(p, p->comments[i]), text) == 0)
			return true;
	}
	return false;
}

static inline void lab_make_dir(char path[64])
{
	strcpy(path, "/tmp/test_store_XXXXXX");
	assert_non_null(mkdtemp(path));
}

__attribute__((format(printf, 1, 2))) static inline void lab_run(const char *format, ...)
{
	char command[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	assert_int_equal(system(command), 0);
}

static inline void lab_remove_dir(const char *path)
{
	lab_run("rm -rf '%s'", path);
}

/* How many files in the directory have this ending. */
static inline size_t lab_count(const char *dir, const char *sub, const char *ending)
{
	char path[512];
	struct dirent *entry;
	size_t count = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%s/%s", dir, sub);
	d = opendir(path);
	while (d && (entry = readdir(d)) != NULL) {
		size_t len = strlen(entry->d_name), want = strlen(ending);

		count += len > want && strcmp(entry->d_name + len - want, ending) == 0;
	}
	if (d)
		closedir(d);
	return count;
}

/* A file system of its own at `dir`, seen by this process only; skips the test without root. */
static inline void lab_mount(const char *dir, const char *options)
{
	if (geteuid() != 0) {
		print_message("# skip: mounting a file system needs root\n");
		rmdir(dir);
		skip();
	}
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", dir, "tmpfs", 0, options) < 0) {
		print_message("# skip: mounting is not allowed here\n");
		rmdir(dir);
		skip();
	}
}

/* As after an I/O error with errors=remount-ro: also with files that are open for writing. */
static inline void lab_make_readonly(const char *dir)
{
	assert_int_equal(mount(dir, dir, NULL, MS_BIND, NULL), 0);
	assert_int_equal(mount(NULL, dir, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL), 0);
}

static inline void lab_make_writable(const char *dir)
{
	assert_int_equal(umount(dir), 0);
}

static inline void lab_unmount(const char *dir)
{
	assert_int_equal(umount(dir), 0);
	rmdir(dir);
}

/* Writes zeros until the file system is full; the file is <dir>/ballast. */
static inline void lab_fill_up(const char *dir)
{
	static const char zeros[4096];
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/ballast", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	setbuf(f, NULL);
	while (fwrite(zeros, 1, sizeof(zeros), f) == sizeof(zeros))
		;
	fclose(f);
}

#endif
