/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/health: perf events, counters, rates, and what JIT runtimes were started with. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/health_private.h"
#include "tests/unit/health_lab.h"

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
	expect("jit_java", HEALTH_NOTE,
	       "1 of 2 java processes without -XX:+PreserveFramePointer "
	       "(pid 101)",
	       "frame pointers", "-XX:+PreserveFramePointer");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_perf_refused, set_up),
		cmocka_unit_test_setup(test_paranoid, set_up),
		cmocka_unit_test_setup(test_pmu, set_up),
		cmocka_unit_test_setup(test_rates, set_up),
		cmocka_unit_test_setup(test_java, set_up),
		cmocka_unit_test_setup(test_node, set_up),
	};

	return cmocka_run_group_tests(tests, make_top, remove_top);
}
