/* SPDX-License-Identifier: Apache-2.0 */
/* Why the kernel refused the programs or maps, and what to do; see collect_private.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/collect/collect_private.h"

enum { VERIFIER_TAIL_LINES = 6 };

/* The last lines of the verifier's log: they name the fault. */
static const char *log_tail(const char *log)
{
	const char *p = log + strlen(log);
	int lines = 0;

	while (p > log && lines <= VERIFIER_TAIL_LINES) {
		if (*--p == '\n')
			lines++;
	}
	return p;
}

static bool is_privilege_error(int err)
{
	return err == -EPERM || err == -EACCES;
}

static bool map_is_allowed(uint64_t bytes)
{
	enum { VALUE = 4096 };
	__u32 entries = (__u32)(bytes / VALUE) + 1;
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sonde_probe", 4, VALUE, entries, NULL);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static bool has_cap_bpf(void)
{
	return map_is_allowed(0);
}

/* A small map may be made, one over the limit of locked memory may not: before Linux 5.11. */
static bool memlock_is_short(uint64_t *ret_kib)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur > UINT32_MAX)
		return false;
	*ret_kib = limit.rlim_cur >> 10;
	return !map_is_allowed(limit.rlim_cur + 1);
}

void load_explain(int err, const struct verifier_logs *logs, char *reason, size_t size)
{
	const char *name = "", *log = "";
	struct utsname kernel;
	uint64_t kib = 0;

	/* The verifier speaks only of the program that it refused. */
	for (size_t i = 0; i < logs->count; i++) {
		if (logs->texts[i][0]) {
			name = logs->names[i];
			log = logs->texts[i];
		}
	}

	uname(&kernel);
	if (is_privilege_error(err) && !has_cap_bpf())
		snprintf(reason, size,
			 "bpf: %s; run as root, or with CAP_BPF and CAP_PERFMON (CAP_SYS_ADMIN "
			 "before Linux 5.8); in a container its seccomp profile must allow the "
			 "call, too", strerror(-err));
	else if (is_privilege_error(err) && memlock_is_short(&kib))
		snprintf(reason, size,
			 "bpf: %s; the limit of locked memory is %" PRIu64 " KiB, and before Linux "
			 "5.11 BPF maps count as such; ulimit -l unlimited, LimitMEMLOCK=infinity "
			 "in the unit, or CAP_SYS_RESOURCE", strerror(-err), kib);
	else if (is_privilege_error(err) && !log[0])
		snprintf(reason, size,
			 "bpf: %s; CAP_PERFMON is missing (CAP_SYS_ADMIN before Linux 5.8), or the "
			 "container's seccomp profile or a security module forbids it",
			 strerror(-err));
	else if (err == -ESRCH || err == -ENOENT)
		snprintf(reason, size,
			 "bpf: kernel %s has no type information; sonde needs "
			 "/sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF)", kernel.release);
	else
		snprintf(reason, size, "bpf: kernel %s refused %s%s: %s%s%s", kernel.release,
			 name[0] ? "program " : "the programs or maps", name, strerror(-err),
			 log[0] ? "; the verifier's last words:" : "", log_tail(log));
}
