/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Health of JIT runtimes: which running ones were started without what a profiler needs from
 * them. A bounded look through /proc: executables' names first, since reading a command line takes
 * the target's memory lock and may wait, and those only of the few that fit.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/health_private.h"
#include "base/clock.h"

enum { MAX_PROCESSES = 65536, MAX_SHOWN = 4, MAX_PATH = 512 };

#define MAX_TIME (NSEC_PER_SEC * 3 / 10)

static const struct runtime {
	const char *name;
	const char *executables[3];
	const char *wanted[3]; /* any of these, in its command line or in a variable */
	const char *variables[4];
	const char *lost, *cure;
} runtimes[] = {
	[HEALTH_JIT_JAVA] = {
		.name = "java",
		.executables = { "java" },
		.wanted = { "-XX:+PreserveFramePointer" },
		.variables = { "JAVA_TOOL_OPTIONS=", "JDK_JAVA_OPTIONS=", "_JAVA_OPTIONS=" },
		.lost = "what is below compiled Java code on the stack: HotSpot keeps no frame "
			"pointers",
		.cure = "start with -XX:+PreserveFramePointer; for names: jcmd PID "
			"Compiler.perfmap, or -XX:+DumpPerfMapAtExit (JDK 17 and newer)",
	},
	[HEALTH_JIT_NODE] = {
		.name = "node",
		.executables = { "node", "nodejs" },
		.wanted = { "--perf-basic-prof", "--perf_basic_prof" },
		.variables = { "NODE_OPTIONS=" },
		.lost = "names of JavaScript functions",
		.cure = "start with --perf-basic-prof, or with it in NODE_OPTIONS "
			"(--perf-basic-prof-only-functions writes less)",
	},
};

struct tally {
	unsigned seen, without;
	char pids[96]; /* of the first ones without */
};

static bool is_runtime(const struct runtime *r, const char *proc, const char *pid)
{
	char path[MAX_PATH], target[MAX_PATH];
	const char *name;
	ssize_t n;

	if (snprintf(path, sizeof(path), "%s/%s/exe", proc, pid) >= (int)sizeof(path))
		return false;
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return false;
	target[n] = 0;
	name = strrchr(target, '/');
	name = name ? name + 1 : target;
	for (int i = 0; i < 3 && r->executables[i]; i++) {
		if (strcmp(name, r->executables[i]) == 0)
			return true;
	}
	return false;
}

static bool has_wanted(const struct runtime *r, const char *text)
{
	for (int i = 0; i < 3 && r->wanted[i]; i++) {
		if (strstr(text, r->wanted[i]))
			return true;
	}
	return false;
}

static bool is_variable(const struct runtime *r, const char *text)
{
	for (int i = 0; i < 4 && r->variables[i]; i++) {
		if (strncmp(text, r->variables[i], strlen(r->variables[i])) == 0)
			return true;
	}
	return false;
}

/* A list of strings, each ended by NUL: the command line, or the environment. */
static bool list_has_wanted(const struct runtime *r, const char *proc, const char *pid,
			    const char *file, bool only_variables)
{
	const char *p, *end;
	char path[64];
	struct buf text;
	bool found = false;

	snprintf(path, sizeof(path), "%.20s/%s", pid, file);
	if (health_read_file(proc, path, &text))
		return false;
	p = (const char *)text.data;
	for (end = p + text.len; p < end && !found; p += strlen(p) + 1)
		found = (!only_variables || is_variable(r, p)) && has_wanted(r, p);
	buf_fini(&text);
	return found;
}

static void look_at(const struct runtime *r, const char *proc, const char *pid, struct tally *t)
{
	size_t len = strlen(t->pids);

	if (!is_runtime(r, proc, pid))
		return;
	t->seen++;
	if (list_has_wanted(r, proc, pid, "cmdline", false) ||
	    list_has_wanted(r, proc, pid, "environ", true))
		return;
	if (t->without++ < MAX_SHOWN)
		snprintf(t->pids + len, sizeof(t->pids) - len, "%s%.20s", len ? ", " : "", pid);
}

static void look_through(const struct runtime *r, const char *proc, struct tally *t)
{
	nsec_t end = clock_monotonic() + MAX_TIME;
	const struct dirent *entry;
	DIR *dir = opendir(proc);

	for (int n = 0; dir && n < MAX_PROCESSES && (entry = readdir(dir)); n++) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		if (clock_monotonic() > end)
			break;
		look_at(r, proc, entry->d_name, t);
	}
	if (dir)
		closedir(dir);
}

void health_jit(const struct health_world *w, struct health_finding *f, int argument)
{
	const struct runtime *r = &runtimes[argument];
	struct tally t = { 0 };

	look_through(r, w->roots.proc, &t);
	if (t.seen == 0)
		health_ok(f, "no %s process runs", r->name);
	else if (t.without == 0)
		health_ok(f, "%u %s processes, all with %s", t.seen, r->name, r->wanted[0]);
	else
		health_bad(f, HEALTH_NOTE, r->lost, r->cure,
			   "%u of %u %s processes without %s (pid %s%s)", t.without, t.seen,
			   r->name, r->wanted[0], t.pids, t.without > MAX_SHOWN ? ", ..." : "");
}
