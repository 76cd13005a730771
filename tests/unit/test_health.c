/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/health: a good machine made of files, then each check with what spoils it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/health_private.h"
#include "base/clock.h"

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

static void put_bytes(const char *root, const char *name, const char *bytes, size_t len)
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

static void put(const char *root, const char *name, const char *text)
{
	put_bytes(root, name, text, strlen(text));
}

static void put_link(const char *name, const char *target)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s", proc, name);
	make_dirs(path);
	unlink(path);
	assert_int_equal(symlink(target, path), 0);
}

static void take_away(const char *root, const char *name)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	unlink(path);
}

#define LIMITS(files, locked) \
	"Limit                     Soft Limit           Hard Limit           Units     \n" \
	"Max open files            " files "                 4096                 files     \n" \
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
	put(proc, "self/mounts", "tracefs /sys/kernel/tracing tracefs rw 0 0\n"
				 "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
	put_link("self/ns/pid", "pid:[4026531836]");
	put(sys, "kernel/btf/vmlinux", "x");
	put(sys, "kernel/security/lockdown", "[none] integrity confidentiality\n");
	put(sys, "devices/system/cpu/online", "0-3,8\n");
	put(debug, ".build-id/ab/cdef.debug", "x");
	world = (struct health_world){ .roots = { proc, sys, debug } };
	return 0;
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
static void expect(const char *id, enum health_status status, const char *found, const char *lost,
		   const char *cure)
{
	const struct health_finding *f = look(id);

	if (f->status != status || !strstr(f->found, found) || !strstr(f->lost, lost) ||
	    !strstr(f->cure, cure))
		fail_msg("%s: %s, found '%s', lost '%s', cure '%s'", id,
			 health_status_name(f->status), f->found, f->lost, f->cure);
	assert_int_equal(status == HEALTH_OK, f->lost[0] == 0);
	assert_int_equal(status == HEALTH_OK, f->cure[0] == 0);
}

static void expect_ok(const char *id, const char *found)
{
	expect(id, HEALTH_OK, found, "", "");
}

/* ---- tests ---- */

static void test_good_machine(void **state)
{
	look("kernel");
	assert_true(finding_count > 20);
	for (size_t i = 0; i < finding_count; i++) {
		const struct health_finding *f = &findings[i];

		if (f->status != HEALTH_OK)
			fail_msg("%s is %s: %s", f->id, health_status_name(f->status), f->found);
		assert_true(f->found[0] && !f->lost[0] && !f->cure[0] && f->title[0]);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(findings[j].id, f->id);
	}
	assert_int_equal(health_examine(&world, findings, 2), 2);
}

static void test_kernel(void **state)
{
	put(proc, "sys/kernel/osrelease", "5.4.0-100-generic\n");
	expect("kernel", HEALTH_FAIL, "5.4.0", "ring buffer", "5.10");
	put(proc, "sys/kernel/osrelease", "5.9.1\n");
	expect("kernel", HEALTH_WARN, "5.9.1", "tested from 5.10", "5.10");
	put(proc, "sys/kernel/osrelease", "5.10.0-30-amd64\n");
	expect_ok("kernel", "5.10.0-30-amd64");
	take_away(sys, "kernel/btf/vmlinux");
	expect("btf", HEALTH_FAIL, "No such file", "cannot be fitted", "CONFIG_DEBUG_INFO_BTF");
}

static void test_user_stacks(void **state)
{
	put(proc, "sys/kernel/osrelease", "6.1.20\n");
	put(proc, "sys/kernel/version", "#1 SMP\n");
	expect("user_stacks", HEALTH_WARN, "6.1.20", "stacks of user code", "6.1.36");
	put(proc, "sys/kernel/osrelease", "6.1.0-50-amd64\n");
	put(proc, "sys/kernel/version", "#1 SMP Debian 6.1.140-1 (2026)\n");
	expect_ok("user_stacks", "can be read");
}

static void test_bpf(void **state)
{
	world.map_create = -ENOSYS;
	expect("bpf", HEALTH_FAIL, "not implemented", "all", "CONFIG_BPF_SYSCALL");
	world.map_create = -EPERM;
	expect("bpf", HEALTH_FAIL, "not permitted", "all", "seccomp");
	put(proc, "sys/kernel/osrelease", "5.10.0\n");
	expect("bpf", HEALTH_FAIL, "not permitted", "all", "locked memory");
	put(proc, "self/status", "CapEff:\t0\n");
	put(proc, "self/status", "x\nCapEff:\t0000000000000000\n");
	expect("bpf", HEALTH_FAIL, "disabled = 2", "all", "CAP_BPF");
	world.map_create = 0;
	take_away(proc, "sys/kernel/unprivileged_bpf_disabled");
	expect_ok("bpf", "a map can be made");
}

/* Each capability missing alone. */
static void test_capabilities(void **state)
{
	static const struct {
		const char *id;
		int number;
		enum health_status without;
		const char *lost;
	} rows[] = {
		{ "cap_bpf", 39, HEALTH_FAIL, "cannot be loaded" },
		{ "cap_perfmon", 38, HEALTH_FAIL, "sampled" },
		{ "cap_sys_ptrace", 19, HEALTH_WARN, "containers" },
		{ "cap_dac_read_search", 2, HEALTH_WARN, "only their owner" },
		{ "cap_checkpoint_restore", 40, HEALTH_WARN, "libraries" },
		{ "cap_syslog", 34, HEALTH_WARN, "kernel functions" },
	};
	uint64_t six = 0, admin = 1ULL << 21;
	char status[64];

	for (size_t i = 0; i < 6; i++)
		six |= 1ULL << rows[i].number;
	for (size_t i = 0; i < 6; i++) {
		snprintf(status, sizeof(status), "x\nCapEff:\t%016llx\n",
			 (unsigned long long)(six & ~(1ULL << rows[i].number)));
		put(proc, "self/status", status);
		for (size_t j = 0; j < 6; j++) {
			if (j == i)
				expect(rows[i].id, rows[i].without, "missing", rows[i].lost, "CAP_");
			else
				expect_ok(rows[j].id, "effective");
		}
	}
	snprintf(status, sizeof(status), "x\nCapEff:\t%016llx\n", (unsigned long long)admin);
	put(proc, "self/status", status);
	expect_ok("cap_bpf", "effective");
	expect_ok("cap_perfmon", "effective");
	expect("cap_sys_ptrace", HEALTH_WARN, "missing", "", "CAP_SYS_PTRACE");
	expect("cap_syslog", HEALTH_WARN, "missing", "", "CAP_SYSLOG");
}

static void test_lockdown(void **state)
{
	put(sys, "kernel/security/lockdown", "none [integrity] confidentiality\n");
	expect_ok("lockdown", "integrity");
	put(sys, "kernel/security/lockdown", "none integrity [confidentiality]\n");
	expect("lockdown", HEALTH_FAIL, "confidentiality", "may not read", "lockdown=integrity");
	take_away(sys, "kernel/security/lockdown");
	expect_ok("lockdown", "none");
}

static void test_perf_refused(void **state)
{
	world.perf_clock = world.perf_hardware = -EACCES;
	expect("perf_events", HEALTH_FAIL, "denied", "no CPU", "seccomp");
	expect("pmu", HEALTH_WARN, "denied", "not known", "above");
	put(proc, "sys/kernel/perf_event_paranoid", "3\n");
	expect("perf_events", HEALTH_FAIL, "denied", "no CPU", "perf_event_paranoid=2");
	expect("perf_event_paranoid", HEALTH_WARN, "3", "whole CPUs", "perf_event_paranoid=2");
	put(proc, "self/status", "x\nCapEff:\t0\n");
	expect("perf_events", HEALTH_FAIL, "denied", "no CPU", "CAP_PERFMON");
	expect("perf_event_paranoid", HEALTH_WARN, "3", "whole CPUs", "give CAP_PERFMON");
	world.perf_clock = -ENOSYS;
	expect("perf_events", HEALTH_FAIL, "not implemented", "no CPU", "CONFIG_PERF_EVENTS");
}

static void test_paranoid(void **state)
{
	put(proc, "sys/kernel/perf_event_paranoid", "3\n");
	expect_ok("perf_event_paranoid", "does not bind");
	put(proc, "self/status", "x\nCapEff:\t0\n");
	put(proc, "sys/kernel/perf_event_paranoid", "-1\n");
	expect_ok("perf_event_paranoid", "everybody");
	put(proc, "sys/kernel/perf_event_paranoid", "1\n");
	expect("perf_event_paranoid", HEALTH_WARN, "1", "whole CPUs", "paranoid=-1");
	take_away(proc, "sys/kernel/perf_event_paranoid");
	expect("perf_event_paranoid", HEALTH_WARN, "cannot be read", "not known", "/proc");
}

static void test_pmu(void **state)
{
	static const int errors[] = { -ENOENT, -ENODEV, -ENXIO, -EOPNOTSUPP };

	put(proc, "sys/kernel/nmi_watchdog", "1\n");
	expect("nmi_watchdog", HEALTH_NOTE, "on", "counter", "nmi_watchdog=0");
	for (size_t i = 0; i < 4; i++) {
		world.perf_hardware = errors[i];
		expect("pmu", HEALTH_NOTE, "CPU clock", "cycles", "hypervisor");
		expect_ok("nmi_watchdog", "without a hardware counter");
	}
	take_away(proc, "sys/kernel/nmi_watchdog");
	expect_ok("nmi_watchdog", "not in this kernel");
}

static void test_rates(void **state)
{
	put(proc, "sys/kernel/perf_event_max_sample_rate", "50\n");
	expect("max_sample_rate", HEALTH_WARN, "50", "99 Hz", "max_sample_rate=100000");
	put(proc, "sys/kernel/perf_event_max_sample_rate", "25000\n");
	expect("max_sample_rate", HEALTH_NOTE, "25000", "faster", "dmesg");
	put(proc, "sys/kernel/perf_event_max_sample_rate", "many\n");
	expect("max_sample_rate", HEALTH_NOTE, "cannot be read", "", "");
	put(proc, "sys/kernel/perf_cpu_time_max_percent", "0\n");
	expect_ok("cpu_time_max_percent", "none");
	put(proc, "sys/kernel/perf_cpu_time_max_percent", "1\n");
	expect("cpu_time_max_percent", HEALTH_NOTE, "1 %", "samples", "max_percent=25");
	take_away(proc, "sys/kernel/perf_cpu_time_max_percent");
	expect("cpu_time_max_percent", HEALTH_NOTE, "cannot be read", "", "");
}

static void test_kernel_names(void **state)
{
	put(proc, "kallsyms", "0000000000000000 T _text\n0000000000000000 T b");
	expect("kernel_names", HEALTH_WARN, "hides", "kernel functions", "CAP_SYSLOG");
	put(proc, "sys/kernel/kptr_restrict", "2\n");
	expect("kernel_names", HEALTH_WARN, "kptr_restrict = 2", "", "kptr_restrict=1");
	take_away(proc, "kallsyms");
	expect("kernel_names", HEALTH_WARN, "No such file", "", "CONFIG_KALLSYMS");
	put(proc, "kallsyms", "");
	expect("kernel_names", HEALTH_WARN, "hides", "", "");
}

static void test_mounts(void **state)
{
	put(proc, "self/mounts", "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
				 "cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0\n"
				 "cgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\n");
	expect_ok("cgroups", "hybrid");
	expect_ok("tracefs", "not mounted, and not needed");
	put(proc, "self/mounts", "cgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\n");
	expect_ok("cgroups", "v1");
	put(proc, "self/mounts", "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
				 "cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0\n");
	expect_ok("cgroups", "v2");
	put(proc, "self/mounts", "garbage\n\n a b\n");
	expect("cgroups", HEALTH_NOTE, "no cgroup file system", "--cgroup", "mount");
	take_away(proc, "self/mounts");
	expect("cgroups", HEALTH_NOTE, "not known", "", "");
}

static void test_debug_files(void **state)
{
	world.roots.debug_dir = "/nonexistent";
	expect("debug_files", HEALTH_NOTE, "none in /nonexistent", "stripped", "dbgsym");
	world.roots.debug_dir = debug;
	take_away(debug, ".build-id/ab/cdef.debug");
	expect_ok("debug_files", "has some"); /* directories are entries too */
}

static void test_limits(void **state)
{
	put(proc, "self/limits", LIMITS("64", "65536"));
	expect("open_files", HEALTH_FAIL, "64, with 5 CPUs", "each CPU", "ulimit -n");
	put(proc, "self/limits", LIMITS("unlimited", "65536"));
	expect_ok("open_files", "");
	put(proc, "self/limits", "Max open files            many\n");
	expect("open_files", HEALTH_NOTE, "cannot be read", "", "");
	put(proc, "sys/kernel/osrelease", "5.10.0\n");
	expect_ok("memlock", "raises it by itself");
	put(proc, "self/status", "x\nCapEff:\t000001fffeffffff\n"); /* without SYS_RESOURCE */
	put(proc, "self/limits", LIMITS("1024", "65536"));
	expect("memlock", HEALTH_FAIL, "64 KiB", "locked memory", "ulimit -l unlimited");
	put(proc, "self/limits", LIMITS("1024", "unlimited"));
	expect_ok("memlock", "unlimited");
	take_away(proc, "self/limits");
	expect("memlock", HEALTH_NOTE, "cannot be read", "", "");
	put(proc, "sys/kernel/osrelease", "5.11.0\n");
	expect_ok("memlock", "does not matter");
}

static void test_pid_namespace(void **state)
{
	put_link("self/ns/pid", "pid:[4026532201]");
	expect("pid_namespace", HEALTH_WARN, "4026532201", "numbers of the host", "hostPID");
	take_away(proc, "self/ns/pid");
	expect("pid_namespace", HEALTH_NOTE, "No such file", "not known", "/proc");
}

static void test_java(void **state)
{
	static const char good[] = "/usr/bin/java\0-XX:+PreserveFramePointer\0-jar\0x.jar";
	static const char variable[] = "A=-XX:+PreserveFramePointer\0JAVA_TOOL_OPTIONS=-Xmx1g "
				       "-XX:+PreserveFramePointer";
	static const char other[] = "A=-XX:+PreserveFramePointer";

	put_link("100/exe", "/usr/lib/jvm/17/bin/java");
	put_bytes(proc, "100/cmdline", good, sizeof(good));
	expect_ok("jit_java", "1 java processes, all with");
	put_link("101/exe", "/usr/lib/jvm/17/bin/java");
	put(proc, "101/cmdline", "java");
	put_bytes(proc, "101/environ", variable, sizeof(variable));
	expect_ok("jit_java", "2 java processes, all with");
	put_bytes(proc, "101/environ", other, sizeof(other));
	expect("jit_java", HEALTH_NOTE, "1 of 2 java processes without -XX:+PreserveFramePointer "
					"(pid 101)", "frame pointers", "-XX:+PreserveFramePointer");
	put_link("102/exe", "/usr/bin/javac");
	put_link("103/exe", "/usr/bin/not-java");
	look("jit_java");
	expect("jit_java", HEALTH_NOTE, "1 of 2", "", "");
	for (int pid = 200; pid < 210; pid++) {
		char name[32];

		snprintf(name, sizeof(name), "%d/exe", pid);
		put_link(name, "java");
	}
	expect("jit_java", HEALTH_NOTE, "11 of 12", "", "");
	expect("jit_java", HEALTH_NOTE, ", ...)", "", "");
	expect_ok("jit_node", "no node process");
}

static void test_node(void **state)
{
	static const char variable[] = "NODE_OPTIONS=--perf-basic-prof-only-functions";

	put_link("7/exe", "/usr/bin/node");
	expect("jit_node", HEALTH_NOTE, "1 of 1 node processes without --perf-basic-prof (pid 7)",
	       "JavaScript", "NODE_OPTIONS");
	put_bytes(proc, "7/environ", variable, sizeof(variable));
	expect_ok("jit_node", "1 node processes");
	put_bytes(proc, "7/cmdline", "node\0--perf-basic-prof\0a.js", 28);
	take_away(proc, "7/environ");
	expect_ok("jit_node", "1 node processes");
}

/* No /proc and no /sys at all: still an answer for each check. */
static void test_nothing(void **state)
{
	world.roots = (struct health_roots){ "/nonexistent", "/nonexistent", "/nonexistent" };
	look("kernel");
	for (size_t i = 0; i < finding_count; i++)
		assert_true(findings[i].found[0]);
	expect("btf", HEALTH_FAIL, "No such file", "", "");
	expect("cap_bpf", HEALTH_FAIL, "missing", "", "");
}

/* On this machine, whatever it is: within a second, and nothing is left open. */
static void test_this_machine(void **state)
{
	struct health_roots roots = { "/proc", "/sys", "/usr/lib/debug" };
	int before = dup(STDOUT_FILENO), after;
	nsec_t start = clock_monotonic();

	close(before);
	assert_true(health_check(&roots, findings, MAX_FINDINGS) > 20);
	assert_true(clock_monotonic() - start < NSEC_PER_SEC);
	after = dup(STDOUT_FILENO);
	close(after);
	assert_int_equal(before, after);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_good_machine, set_up),
		cmocka_unit_test_setup(test_kernel, set_up),
		cmocka_unit_test_setup(test_user_stacks, set_up),
		cmocka_unit_test_setup(test_bpf, set_up),
		cmocka_unit_test_setup(test_capabilities, set_up),
		cmocka_unit_test_setup(test_lockdown, set_up),
		cmocka_unit_test_setup(test_perf_refused, set_up),
		cmocka_unit_test_setup(test_paranoid, set_up),
		cmocka_unit_test_setup(test_pmu, set_up),
		cmocka_unit_test_setup(test_rates, set_up),
		cmocka_unit_test_setup(test_kernel_names, set_up),
		cmocka_unit_test_setup(test_mounts, set_up),
		cmocka_unit_test_setup(test_debug_files, set_up),
		cmocka_unit_test_setup(test_limits, set_up),
		cmocka_unit_test_setup(test_pid_namespace, set_up),
		cmocka_unit_test_setup(test_java, set_up),
		cmocka_unit_test_setup(test_node, set_up),
		cmocka_unit_test_setup(test_nothing, set_up),
		cmocka_unit_test(test_this_machine),
	};

	return cmocka_run_group_tests(tests, make_top, remove_top);
}
