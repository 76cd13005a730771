/* SPDX-License-Identifier: Apache-2.0 */
/* Health of the kernel side: version, BTF, the bpf call, lockdown, reading user memory. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/collect/kernel_quirks.h"
#include "agent/health_private.h"

void health_kernel(const struct health_world *w, struct health_finding *f, int argument)
{
	char release[128] = "?";

	health_read_line(w->roots.proc, "sys/kernel/osrelease", release, sizeof(release));
	if (health_kernel_is_before(w, 5, 8))
		health_bad(f, HEALTH_FAIL, "all: there is no BPF ring buffer before 5.8",
			   "run Linux 5.10 or newer", "%s", release);
	else if (health_kernel_is_before(w, 5, 10))
		health_bad(f, HEALTH_WARN, "nothing that is known; sonde is tested from 5.10 on",
			   "run Linux 5.10 or newer", "%s", release);
	else
		health_ok(f, "%s", release);
}

void health_btf(const struct health_world *w, struct health_finding *f, int argument)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/kernel/btf/vmlinux", w->roots.sys);
	if (access(path, R_OK) == 0)
		health_ok(f, "%s is there", path);
	else
		health_bad(f, HEALTH_FAIL, "all: the programs cannot be fitted to this kernel",
			   errno == ENOENT ? "run a kernel with CONFIG_DEBUG_INFO_BTF=y (in a "
					     "container, mount the host's /sys)"
					   : "make the file readable",
			   "%s: %s", path, strerror(errno));
}

/* Why a map could not be made: EPERM has several origins. */
static const char *bpf_cure(const struct health_world *w)
{
	if (w->map_create == -ENOSYS || w->map_create == -EINVAL)
		return "run a kernel with CONFIG_BPF_SYSCALL=y";
	if (!health_has_privilege(w, PRIVILEGE_BPF))
		return "run as root, or with CAP_BPF and CAP_PERFMON (CAP_SYS_ADMIN before Linux "
		       "5.8)";
	if (health_kernel_is_before(w, 5, 11))
		return "raise the limit of locked memory: ulimit -l unlimited, or "
		       "LimitMEMLOCK=infinity in the unit";
	return "allow the bpf call in the container's seccomp profile or security module";
}

void health_bpf(const struct health_world *w, struct health_finding *f, int argument)
{
	int64_t disabled = -1;

	health_read_number(w->roots.proc, "sys/kernel/unprivileged_bpf_disabled", &disabled);
	if (w->map_create == 0 && disabled < 0)
		health_ok(f, "a map can be made");
	else if (w->map_create == 0)
		health_ok(f, "a map can be made (unprivileged_bpf_disabled = %d)", (int)disabled);
	else
		health_bad(f, HEALTH_FAIL, "all: nothing can be put into the kernel", bpf_cure(w),
			   "no map can be made: %s (unprivileged_bpf_disabled = %d)",
			   strerror(-w->map_create), (int)disabled);
}

/* "[none] integrity confidentiality": the one in force stands in brackets. */
void health_lockdown(const struct health_world *w, struct health_finding *f, int argument)
{
	char line[128];

	if (health_read_line(w->roots.sys, "kernel/security/lockdown", line, sizeof(line)))
		health_ok(f, "none (the kernel or this mount of securityfs has no lockdown file)");
	else if (strstr(line, "[confidentiality]"))
		health_bad(f, HEALTH_FAIL,
			   "all: BPF programs and perf events may not read the kernel",
			   "boot with lockdown=integrity, or without lockdown= (Secure Boot may "
			   "set it)",
			   "confidentiality");
	else
		health_ok(f, "%s",
			  strstr(line, "[integrity]") ? "integrity, which does not hinder sonde"
						      : "none");
}

void health_user_stacks(const struct health_world *w, struct health_finding *f, int argument)
{
	char release[128] = "", version[256] = "";

	health_read_line(w->roots.proc, "sys/kernel/osrelease", release, sizeof(release));
	health_read_line(w->roots.proc, "sys/kernel/version", version, sizeof(version));
	if (kernel_user_reads_may_hang(release, version))
		health_bad(f, HEALTH_WARN,
			   "stacks of user code: kernel stacks and the function that was "
			   "interrupted remain",
			   "update to 6.1.36, 6.3.10, 6.4 or newer",
			   "reading user memory in an interrupt may hang kernel %s", release);
	else
		health_ok(f, "user memory can be read in an interrupt");
}
