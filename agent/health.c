/* SPDX-License-Identifier: Apache-2.0 */
/* The table of checks, and the kernel's answers that they judge; see health.h. */
#include "agent/health.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/health_private.h"

static const struct {
	const char *id, *title;
	health_fn *run;
	int argument;
} checks[] = {
	{ "kernel", "kernel version", health_kernel, 0 },
	{ "btf", "kernel type information", health_btf, 0 },
	{ "bpf", "bpf system call", health_bpf, 0 },
	{ "cap_bpf", "CAP_BPF", health_capability, PRIVILEGE_BPF },
	{ "cap_perfmon", "CAP_PERFMON", health_capability, PRIVILEGE_PERFMON },
	{ "cap_sys_ptrace", "CAP_SYS_PTRACE", health_capability, PRIVILEGE_SYS_PTRACE },
	{ "cap_dac_read_search", "CAP_DAC_READ_SEARCH", health_capability,
	  PRIVILEGE_DAC_READ_SEARCH },
	{ "cap_checkpoint_restore", "CAP_CHECKPOINT_RESTORE", health_capability,
	  PRIVILEGE_CHECKPOINT_RESTORE },
	{ "cap_syslog", "CAP_SYSLOG", health_capability, PRIVILEGE_SYSLOG },
	{ "lockdown", "kernel lockdown", health_lockdown, 0 },
	{ "perf_events", "perf events", health_perf_events, 0 },
	{ "perf_event_paranoid", "perf_event_paranoid", health_paranoid, 0 },
	{ "pmu", "hardware cycle counter", health_pmu, 0 },
	{ "nmi_watchdog", "NMI watchdog", health_nmi_watchdog, 0 },
	{ "max_sample_rate", "sampling rate limit", health_sample_rate, 0 },
	{ "cpu_time_max_percent", "sampling time limit", health_cpu_time, 0 },
	{ "user_stacks", "user stacks", health_user_stacks, 0 },
	{ "kernel_names", "kernel function names", health_kernel_names, 0 },
	{ "tracefs", "tracefs", health_tracefs, 0 },
	{ "cgroups", "cgroup layout", health_cgroups, 0 },
	{ "debug_files", "separate debug files", health_debug_files, 0 },
	{ "open_files", "limit of open files", health_open_files, 0 },
	{ "memlock", "limit of locked memory", health_memlock, 0 },
	{ "pid_namespace", "pid namespace", health_pid_namespace, 0 },
	{ "jit_java", "Java", health_jit, HEALTH_JIT_JAVA },
	{ "jit_node", "Node.js", health_jit, HEALTH_JIT_NODE },
};

enum { CHECK_COUNT = sizeof(checks) / sizeof(checks[0]) };

const char *health_status_name(enum health_status status)
{
	static const char *const names[] = {
		[HEALTH_OK] = "ok",
		[HEALTH_NOTE] = "note",
		[HEALTH_WARN] = "warn",
		[HEALTH_FAIL] = "fail",
	};

	return names[status];
}

size_t health_examine(const struct health_world *world, struct health_finding *findings, size_t max)
{
	size_t n = max < CHECK_COUNT ? max : CHECK_COUNT;

	for (size_t i = 0; i < n; i++) {
		findings[i] =
			(struct health_finding){ .id = checks[i].id, .title = checks[i].title };
		checks[i].run(world, &findings[i], checks[i].argument);
	}
	return n;
}

/* Whether a call gave a descriptor: closes it. 0 or -errno. */
static int tried(long fd)
{
	if (fd < 0)
		return -errno;
	close((int)fd);
	return 0;
}

static int try_map_create(void)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_HASH,
		.key_size = 4,
		.value_size = 4,
		.max_entries = 1,
	};

	return tried(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)));
}

/* As sampling does it, but never enabled: on the CPU where we are, which is surely online. */
static int try_perf_event(uint32_t type, uint64_t config)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = type,
		.config = config,
		.sample_freq = 1,
		.freq = 1,
		.disabled = 1,
	};
	int cpu = sched_getcpu();

	return tried(syscall(SYS_perf_event_open, &attr, -1, cpu < 0 ? 0 : cpu, -1,
			     PERF_FLAG_FD_CLOEXEC));
}

size_t health_check(const struct health_roots *roots, struct health_finding *findings, size_t max)
{
	struct health_world world = {
		.roots = *roots,
		.map_create = try_map_create(),
		.perf_clock = try_perf_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK),
		.perf_hardware = try_perf_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES),
	};

	return health_examine(&world, findings, max);
}
