/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/health: kernel, capabilities, mounts, limits; each check with what spoils it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/health.h"
#include "base/clock.h"
#include "tests/unit/health_lab.h"

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
				expect(rows[i].id, rows[i].without, "missing", rows[i].lost,
				       "CAP_");
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

static void test_kernel_names(void **state)
{
	put(proc, "kallsyms", "0000000000000000 T _text\n0000000000000000 T b");
	expect("kernel_names", HEALTH_WARN, "hides", "kernel functions", "kptr_restrict=1");
	put(proc, "self/status", "x\nCapEff:\t0000000000000000\n");
	expect("kernel_names", HEALTH_NOTE, "CAP_SYSLOG", "kernel functions", "CAP_SYSLOG");
	put(proc, "self/status", ALL_CAPS);
	put(proc, "sys/kernel/kptr_restrict", "2\n");
	expect("kernel_names", HEALTH_WARN, "kptr_restrict = 2", "", "kptr_restrict=1");
	take_away(proc, "kallsyms");
	expect("kernel_names", HEALTH_WARN, "No such file", "", "CONFIG_KALLSYMS");
	put(proc, "kallsyms", "");
	expect("kernel_names", HEALTH_WARN, "hides", "", "");
}

static void test_mounts(void **state)
{
	put(proc, "self/mounts",
	    "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
	    "cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0\n"
	    "cgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\n");
	expect_ok("cgroups", "hybrid");
	expect_ok("tracefs", "not mounted, and not needed");
	put(proc, "self/mounts", "cgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\n");
	expect_ok("cgroups", "v1");
	put(proc, "self/mounts",
	    "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
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
	put(proc, "self/limits", LIMITS("32", "65536"));
	expect("open_files", HEALTH_FAIL, "32, with 5 CPUs", "each CPU", "ulimit -n");
	put(proc, "self/limits", LIMITS("68", "65536"));
	expect("open_files", HEALTH_WARN, "68, about 69 are needed", "busy", "ulimit -n");
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
	expect("pid_namespace", HEALTH_WARN, "not the host's", "numbers of the host", "hostPID");
	put_link("1/ns/pid", "pid:[4026532201]");
	expect("pid_namespace", HEALTH_WARN, "not the host's", "numbers of the host", "hostPID");
	put_link("1/ns/pid", "pid:[4026531836]");
	expect("pid_namespace", HEALTH_NOTE, "but /proc is", "--pid", "hostPID");
	take_away(proc, "self/ns/pid");
	expect("pid_namespace", HEALTH_NOTE, "cannot be read", "not known", "/proc");
}

/* No /proc and no /sys at all: still an answer for each check. */
static void test_nothing(void **state)
{
	world.roots = (struct health_roots){ "/nonexistent", "/nonexistent", "/nonexistent" };
	look("kernel");
	for (size_t i = 0; i < finding_count; i++)
		assert_true(findings[i].found[0]);
	expect("btf", HEALTH_FAIL, "No such file", "", "");
	expect("cap_bpf", HEALTH_NOTE, "not known", "", "mount");
}

/* On this machine, whatever it is: little CPU time, and nothing is left open. */
static void test_this_machine(void **state)
{
	struct health_roots roots = { "/proc", "/sys", "/usr/lib/debug" };
	int before = dup(STDOUT_FILENO), after;
	nsec_t start = clock_read(CLOCK_PROCESS_CPUTIME_ID);

	close(before);
	assert_true(health_check(&roots, findings, MAX_FINDINGS) > 20);
	assert_true(clock_read(CLOCK_PROCESS_CPUTIME_ID) - start < 5 * NSEC_PER_SEC);
	after = dup(STDOUT_FILENO);
	close(after);
	assert_int_equal(before, after);
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
		cmocka_unit_test_setup(test_kernel_names, set_up),
		cmocka_unit_test_setup(test_mounts, set_up),
		cmocka_unit_test_setup(test_debug_files, set_up),
		cmocka_unit_test_setup(test_limits, set_up),
		cmocka_unit_test_setup(test_pid_namespace, set_up),
		cmocka_unit_test_setup(test_nothing, set_up),
		cmocka_unit_test(test_this_machine),
	};

	return cmocka_run_group_tests(tests, make_top, remove_top);
}
