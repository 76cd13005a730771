/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of agent/health: a good machine made of files below a temporary directory, and looking
 * at one finding. Include after cmocka.h.
 */
#ifndef TESTS_UNIT_HEALTH_LAB_H
#define TESTS_UNIT_HEALTH_LAB_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/health_private.h"

enum { MAX_FINDINGS = 64, PATH_BYTES = 600 };

static char top[] = "/tmp/sonde-health-XXXXXX";
static char proc[64], sys[64], debug[64];
static struct health_world world;
static struct health_finding findings[MAX_FINDINGS];
static size_t finding_count;

/* ---- a machine ---- */

static void make_dirs(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(path, 0755);
		*slash = '/';
	}
}

static inline void put_bytes(const char *root, const char *name, const char *bytes, size_t len)
{
	char path[PATH_BYTES];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	make_dirs(path);
	unlink(path);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	fclose(f);
}

static inline void put(const char *root, const char *name, const char *text)
{
	put_bytes(root, name, text, strlen(text));
}

static inline void put_link(const char *name, const char *target)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s", proc, name);
	make_dirs(path);
	unlink(path);
	assert_int_equal(symlink(target, path), 0);
}

static inline void take_away(const char *root, const char *name)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	unlink(path);
}

#define LIMITS(files, locked)                                                                      \
	"Limit                     Soft Limit           Hard Limit           Units     \n"         \
	"Max open files            " files "                 4096                 files     \n"    \
	"Max locked memory         " locked "              " locked "              bytes     \n"

#define ALL_CAPS "Name:\tx\nCapInh:\t0\nCapEff:\t000001ffffffffff\nCapBnd:\t0\n"

/* A hardware host of today with cgroup v2, as root. */
static int set_up(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'/*", top);
	assert_int_equal(system(command), 0);
	put(proc, "sys/kernel/osrelease", "6.12.4-amd64\n");
	put(proc, "sys/kernel/version", "#1 SMP Debian 6.12.4-1\n");
	put(proc, "sys/kernel/unprivileged_bpf_disabled", "2\n");
	put(proc, "sys/kernel/perf_event_paranoid", "2\n");
	put(proc, "sys/kernel/perf_event_max_sample_rate", "100000\n");
	put(proc, "sys/kernel/perf_cpu_time_max_percent", "25\n");
	put(proc, "sys/kernel/nmi_watchdog", "0\n");
	put(proc, "sys/kernel/kptr_restrict", "1\n");
	put(proc, "kallsyms", "0000000000000000 A fixed\nffffffff81000000 T _text\n");
	put(proc, "self/status", ALL_CAPS);
	put(proc, "self/limits", LIMITS("1024", "65536"));
	put(proc, "self/mounts",
	    "tracefs /sys/kernel/tracing tracefs rw 0 0\n"
	    "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
	put_link("self/ns/pid", "pid:[4026531836]");
	put(sys, "kernel/btf/vmlinux", "x");
	put(sys, "kernel/security/lockdown", "[none] integrity confidentiality\n");
	put(sys, "devices/system/cpu/online", "0-3,8\n");
	put(debug, ".build-id/ab/cdef.debug", "x");
	world = (struct health_world){ .roots = { proc, sys, debug } };
	return 0;
}

static int make_top(void **state)
{
	assert_non_null(mkdtemp(top));
	snprintf(proc, sizeof(proc), "%s/proc", top);
	snprintf(sys, sizeof(sys), "%s/sys", top);
	snprintf(debug, sizeof(debug), "%s/debug", top);
	return 0;
}

static int remove_top(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", top);
	return system(command);
}

/* ---- looking ---- */

static const struct health_finding *look(const char *id)
{
	memset(findings, 'x', sizeof(findings));
	finding_count = health_examine(&world, findings, MAX_FINDINGS);
	for (size_t i = 0; i < finding_count; i++) {
		if (strcmp(findings[i].id, id) == 0)
			return &findings[i];
	}
	fail_msg("no check '%s'", id);
	return NULL;
}

/* Status, and a word of `found`, `lost` and `cure` each. */
static inline void expect(const char *id, enum health_status status, const char *found,
			  const char *lost, const char *cure)
{
	const struct health_finding *f = look(id);

	if (f->status != status || !strstr(f->found, found) || !strstr(f->lost, lost) ||
	    !strstr(f->cure, cure))
		fail_msg("%s: %s, found '%s', lost '%s', cure '%s'", id,
			 health_status_name(f->status), f->found, f->lost, f->cure);
	assert_int_equal(status == HEALTH_OK, f->lost[0] == 0);
	assert_int_equal(status == HEALTH_OK, f->cure[0] == 0);
}

static inline void expect_ok(const char *id, const char *found)
{
	expect(id, HEALTH_OK, found, "", "");
}

#endif
