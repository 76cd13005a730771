/* SPDX-License-Identifier: Apache-2.0 */
/* Health of what is mounted and installed: tracefs, cgroups, debug files. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/health_private.h"

/*
 * Which file systems of interest are mounted, by the third word of each line of
 * /proc/self/mounts.
 */
struct mounts {
	bool tracefs, cgroup1, cgroup2;
};

static void note_mount(struct mounts *m, const char *type, const char *options)
{
	if (strcmp(type, "tracefs") == 0)
		m->tracefs = true;
	else if (strcmp(type, "cgroup2") == 0)
		m->cgroup2 = true;
	else if (strcmp(type, "cgroup") == 0 && !strstr(options, "name="))
		m->cgroup1 = true; /* named ones are the service manager's, without a controller */
}

static int read_mounts(const struct health_world *w, struct mounts *ret_mounts)
{
	struct mounts m = { 0 };
	char *line, *rest;
	struct buf text;
	int err = health_read_file(w->roots.proc, "self/mounts", &text);

	if (err)
		return err;
	for (line = strtok_r((char *)text.data, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		char type[32], options[512];

		if (sscanf(line, "%*s %*s %31s %511s", type, options) == 2)
			note_mount(&m, type, options);
	}
	buf_fini(&text);
	*ret_mounts = m;
	return 0;
}

void health_tracefs(const struct health_world *w, struct health_finding *f, int argument)
{
	struct mounts m = { 0 };
	int err = read_mounts(w, &m);

	if (m.tracefs)
		health_ok(f, "mounted, though not needed");
	else
		health_ok(f, "%s, and not needed: the programs attach without it",
			  err ? "not known" : "not mounted");
}

void health_cgroups(const struct health_world *w, struct health_finding *f, int argument)
{
	struct mounts m = { 0 };
	int err = read_mounts(w, &m);

	if (m.cgroup1 && m.cgroup2)
		health_ok(
			f,
			"hybrid: a process's v2 group, or where that is the root, its v1 group of "
			"the pids controller");
	else if (m.cgroup2)
		health_ok(f, "v2");
	else if (m.cgroup1)
		health_ok(f, "v1: a process's group of the pids controller");
	else
		health_bad(f, HEALTH_NOTE,
			   "the option --cgroup; names of groups come from the kernel all the same",
			   "mount -t cgroup2 none /sys/fs/cgroup", "%s",
			   err ? "not known" : "no cgroup file system is mounted");
}

static bool has_entry(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry = NULL;

	while (dir && (entry = readdir(dir)) && entry->d_name[0] == '.')
		;
	if (dir)
		closedir(dir);
	return entry != NULL;
}

void health_debug_files(const struct health_world *w, struct health_finding *f, int argument)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/.build-id", w->roots.debug_dir);
	if (has_entry(path))
		health_ok(f, "%s has some", path);
	else
		health_bad(
			f, HEALTH_NOTE,
			"names of functions that stripped files do not export: module!sub_<start> "
			"stands for them",
			"install debug symbols of what matters (Debian: PACKAGE-dbgsym or -dbg)",
			"none in %s", path);
}
