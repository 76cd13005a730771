/* SPDX-License-Identifier: Apache-2.0 */
/* Health of what this process may do: capabilities, kernel symbols, limits, namespaces. */
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/health_private.h"
#include "base/parse.h"

enum {
	MAX_CPUS = 8192,
	LEAST_FILES = 28, /* measured: maps, programs, links, the loop; besides one for each CPU */
	USUAL_FILES = 64, /* with targets' files, the store and the server */
};

/* What is lost was measured: each was left out alone, with workloads that need it. */
static const struct {
	enum health_status without;
	const char *lost;
} capabilities[] = {
	[PRIVILEGE_BPF] = { HEALTH_FAIL, "all: BPF programs cannot be loaded" },
	[PRIVILEGE_PERFMON] = { HEALTH_FAIL,
				"all: programs that look into processes cannot be loaded, nor CPUs "
				"sampled" },
	[PRIVILEGE_SYS_PTRACE] = { HEALTH_WARN,
				   "of processes of other users or with more capabilities: names "
				   "from JIT maps, of deleted files, and all names in containers" },
	[PRIVILEGE_DAC_READ_SEARCH] = { HEALTH_WARN, "names from files and JIT maps that only their "
						     "owner may read" },
	[PRIVILEGE_CHECKPOINT_RESTORE] = { HEALTH_WARN, "names from shared libraries that were "
							"deleted or replaced while in use" },
	[PRIVILEGE_SYSLOG] = { HEALTH_WARN, "names of kernel functions" },
};

void health_capability(const struct health_world *w, struct health_finding *f, int argument)
{
	char cure[128];
	struct buf status;
	int err;

	if (health_has_privilege(w, (enum privilege)argument)) {
		health_ok(f, "effective");
		return;
	}
	err = health_read_file(w->roots.proc, "self/status", &status);
	if (err) {
		health_bad(f, HEALTH_NOTE, "nothing is known to be lost", "mount /proc",
			   "not known: %s/self/status: %s", w->roots.proc, strerror(-err));
		return;
	}
	buf_fini(&status);
	snprintf(cure, sizeof(cure),
		 "run as root, or add %s to the unit's or container's capabilities",
		 privilege_name((enum privilege)argument));
	health_bad(f, capabilities[argument].without, capabilities[argument].lost, cure, "missing");
}

/* Whether any of the first symbols has an address: hidden ones are all zero. */
static int kallsyms_shows(const struct health_world *w, bool *ret_shows)
{
	const char *p, *end;
	struct buf text;
	int err = health_read_file(w->roots.proc, "kallsyms", &text);
	bool shows = false;

	if (err)
		return err;
	p = (const char *)text.data;
	for (end = p + text.len; p && p < end && !shows; p = strchr(p, '\n'), p = p ? p + 1 : NULL)
		shows = strtoull(p, NULL, 16) != 0;
	buf_fini(&text);
	*ret_shows = shows;
	return 0;
}

void health_kernel_names(const struct health_world *w, struct health_finding *f, int argument)
{
	int64_t restrict_level = -1;
	bool shows;
	int err = kallsyms_shows(w, &shows);

	health_read_number(w->roots.proc, "sys/kernel/kptr_restrict", &restrict_level);
	if (err)
		health_bad(f, HEALTH_WARN, "names of kernel functions",
			   err == -ENOENT ? "run a kernel with CONFIG_KALLSYMS=y"
					  : "make it readable",
			   "%s/kallsyms: %s", w->roots.proc, strerror(-err));
	else if (!shows && restrict_level != 2 && !health_has_privilege(w, PRIVILEGE_SYSLOG))
		/* The missing capability has a line of its own: one cause, one warning. */
		health_bad(f, HEALTH_NOTE, "names of kernel functions",
			   "run as root, or with CAP_SYSLOG", "hidden without CAP_SYSLOG");
	else if (shows)
		health_ok(f, "kallsyms shows addresses (kptr_restrict = %d)", (int)restrict_level);
	else
		health_bad(f, HEALTH_WARN, "names of kernel functions",
			   "sysctl kernel.kptr_restrict=1",
			   "kallsyms hides addresses (kptr_restrict = %d)", (int)restrict_level);
}

/*
 * A row of /proc/self/limits: soft and hard value, UINT64_MAX for "unlimited". From the file and
 * not from getrlimit, so that tests can give others.
 */
static int read_limit(const struct health_world *w, const char *name, uint64_t values[2])
{
	struct buf text;
	const char *line;
	int err = health_read_file(w->roots.proc, "self/limits", &text);

	if (err)
		return err;
	line = strstr((const char *)text.data, name);
	err = line ? 0 : -ENOENT;
	line = line ? line + strlen(name) : NULL;
	for (int i = 0; !err && i < 2; i++) {
		size_t len;

		line += strspn(line, " ");
		len = strcspn(line, " \n");
		values[i] = UINT64_MAX;
		if (strncmp(line, "unlimited", len) != 0 &&
		    !parse_digits(line, line + len, 10, &values[i]))
			err = -EBADMSG;
		line += len;
	}
	buf_fini(&text);
	return err;
}

static uint64_t online_cpus(const struct health_world *w)
{
	static const char path[] = "devices/system/cpu/online";
	int *cpus = calloc(MAX_CPUS, sizeof(*cpus));
	char list[4096];
	size_t count = 0;

	if (cpus && health_read_line(w->roots.sys, path, list, sizeof(list)) == 0)
		parse_cpu_list(list, cpus, MAX_CPUS, &count);
	free(cpus);
	return count;
}

void health_open_files(const struct health_world *w, struct health_finding *f, int argument)
{
	static const char cure[] = "ulimit -n 4096, or LimitNOFILE=4096 in the unit";
	uint64_t cpus = online_cpus(w), need = cpus + USUAL_FILES, limit[2];

	if (read_limit(w, "Max open files", limit))
		health_bad(f, HEALTH_NOTE, "not known", "mount /proc",
			   "%s/self/limits cannot be read", w->roots.proc);
	else if (limit[0] < cpus + LEAST_FILES)
		health_bad(f, HEALTH_FAIL, "all: there is a perf event for each CPU", cure,
			   "%" PRIu64 ", with %" PRIu64 " CPUs", limit[0], cpus);
	else if (limit[0] < need)
		health_bad(f, HEALTH_WARN, "names, metrics and stored profiles at busy times", cure,
			   "%" PRIu64 ", about %" PRIu64 " are needed", limit[0], need);
	else
		health_ok(f, "%" PRIu64 ", about %" PRIu64 " are needed", limit[0], need);
}

void health_memlock(const struct health_world *w, struct health_finding *f, int argument)
{
	uint64_t limit[2];

	if (!health_kernel_is_before(w, 5, 11))
		health_ok(f, "does not matter from 5.11 on");
	else if (health_has_capability(w, CAP_SYS_RESOURCE))
		health_ok(f, "sonde raises it by itself (CAP_SYS_RESOURCE)");
	else if (read_limit(w, "Max locked memory", limit))
		health_bad(f, HEALTH_NOTE, "not known", "mount /proc",
			   "%s/self/limits cannot be read", w->roots.proc);
	else if (limit[1] == UINT64_MAX)
		health_ok(f, "unlimited");
	else
		health_bad(f, HEALTH_FAIL, "all: before 5.11, BPF maps count as locked memory",
			   "ulimit -l unlimited, LimitMEMLOCK=infinity in the unit, or "
			   "CAP_SYS_RESOURCE",
			   "%" PRIu64 " KiB", limit[1] / 1024);
}

enum pid_namespace health_find_pid_namespace(const char *proc_root)
{
	static const char first[] = "pid:[4026531836]"; /* PROC_PID_INIT_INO of the kernel */
	char path[512], own[64] = "", of_proc[64] = "";

	snprintf(path, sizeof(path), "%s/self/ns/pid", proc_root);
	if (readlink(path, own, sizeof(own) - 1) < 0)
		return PID_NAMESPACE_UNKNOWN;
	if (strcmp(own, first) == 0)
		return PID_NAMESPACE_FIRST;
	/* A /proc of the host may be mounted in the namespace of a container. */
	snprintf(path, sizeof(path), "%s/1/ns/pid", proc_root);
	if (readlink(path, of_proc, sizeof(of_proc) - 1) >= 0 && strcmp(of_proc, first) == 0)
		return PID_NAMESPACE_FIRST_PROC;
	return PID_NAMESPACE_OTHER;
}

void health_pid_namespace(const struct health_world *w, struct health_finding *f, int argument)
{
	static const char cure[] = "run in the host's pid namespace (docker --pid=host, Kubernetes "
				   "hostPID: true)";

	switch (health_find_pid_namespace(w->roots.proc)) {
	case PID_NAMESPACE_FIRST:
		health_ok(f, "the host's");
		return;
	case PID_NAMESPACE_FIRST_PROC:
		health_bad(f, HEALTH_NOTE, "recording by --pid, or of a command", cure,
			   "not the host's, but /proc is");
		return;
	case PID_NAMESPACE_OTHER:
		health_bad(f, HEALTH_WARN,
			   "names that need /proc (JIT maps, deleted files, files in containers): "
			   "the kernel tells process numbers of the host, and this /proc has "
			   "others; recording by --pid, or of a command",
			   cure, "not the host's");
		return;
	case PID_NAMESPACE_UNKNOWN:
		health_bad(f, HEALTH_NOTE, "not known", "mount /proc",
			   "%s/self/ns/pid cannot be read", w->roots.proc);
		return;
	}
}
