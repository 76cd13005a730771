/* SPDX-License-Identifier: Apache-2.0 */
/* Health of perf events: whether they open, what counts, and what slows them. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/health_private.h"

enum { USUAL_HZ = 99, KERNEL_MAX_RATE = 100000, LOW_PERCENT = 5 };

static bool is_refused(int err)
{
	return err == -EPERM || err == -EACCES;
}

static int64_t paranoid_level(const struct health_world *w)
{
	int64_t level = -2;

	health_read_number(w->roots.proc, "sys/kernel/perf_event_paranoid", &level);
	return level;
}

static const char *perf_cure(const struct health_world *w)
{
	if (!is_refused(w->perf_clock))
		return w->perf_clock == -ENOSYS ? "run a kernel with CONFIG_PERF_EVENTS=y"
						: "see the error";
	if (!health_has_privilege(w, PRIVILEGE_PERFMON))
		return "run as root, or with CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8)";
	if (paranoid_level(w) > 2)
		return "sysctl kernel.perf_event_paranoid=2: this distribution's kernel refuses "
		       "even CAP_PERFMON above that";
	return "allow perf_event_open in the container's seccomp profile or security module";
}

void health_perf_events(const struct health_world *w, struct health_finding *f, int argument)
{
	if (w->perf_clock == 0)
		health_ok(f, "a CPU can be sampled");
	else
		health_bad(f, HEALTH_FAIL, "all: no CPU can be sampled", perf_cure(w),
			   "perf_event_open: %s", strerror(-w->perf_clock));
}

void health_paranoid(const struct health_world *w, struct health_finding *f, int argument)
{
	int64_t level = paranoid_level(w);

	if (level < -1)
		health_bad(f, HEALTH_WARN, "not known: perf events may be missing",
			   "mount /proc; run a kernel with CONFIG_PERF_EVENTS=y",
			   "%s/sys/kernel/perf_event_paranoid cannot be read", w->roots.proc);
	else if (health_has_privilege(w, PRIVILEGE_PERFMON) && (level <= 2 || w->perf_clock == 0))
		health_ok(f, "%" PRId64 ", which does not bind CAP_PERFMON", level);
	else if (level <= 0)
		health_ok(f, "%" PRId64 ": everybody may sample CPUs", level);
	else
		health_bad(f, HEALTH_WARN, "sampling of whole CPUs",
			   level > 2 && health_has_privilege(w, PRIVILEGE_PERFMON)
				   ? "sysctl kernel.perf_event_paranoid=2"
				   : "give CAP_PERFMON, or sysctl kernel.perf_event_paranoid=-1",
			   "%" PRId64, level);
}

void health_pmu(const struct health_world *w, struct health_finding *f, int argument)
{
	if (w->perf_hardware == 0)
		health_ok(f, "there is one: samples are weighed by CPU cycles");
	else if (is_refused(w->perf_hardware))
		health_bad(f, HEALTH_WARN, "not known until perf events may be opened",
			   "see perf events above", "perf_event_open: %s",
			   strerror(-w->perf_hardware));
	else
		health_bad(f, HEALTH_NOTE,
			   "weights in CPU cycles, and samples inside code that runs with "
			   "interrupts off",
			   "in a VM, let the hypervisor show its PMU (QEMU: -cpu host,pmu=on)",
			   "none (%s): sampling by the CPU clock instead",
			   strerror(-w->perf_hardware));
}

void health_nmi_watchdog(const struct health_world *w, struct health_finding *f, int argument)
{
	int64_t on = 0;
	int err = health_read_number(w->roots.proc, "sys/kernel/nmi_watchdog", &on);

	if (err || on == 0)
		health_ok(f, "%s", err ? "not in this kernel" : "off");
	else if (w->perf_hardware)
		health_ok(f, "on, but without a hardware counter to hold");
	else
		health_bad(f, HEALTH_NOTE,
			   "one hardware counter of each CPU: beside perf or other tools, counters "
			   "may have to take turns",
			   "sysctl kernel.nmi_watchdog=0", "on");
}

void health_sample_rate(const struct health_world *w, struct health_finding *f, int argument)
{
	static const char cure[] =
		"sysctl kernel.perf_event_max_sample_rate=100000; the kernel lowers it by itself "
		"when its interrupts take long (dmesg tells)";
	int64_t rate;

	if (health_read_number(w->roots.proc, "sys/kernel/perf_event_max_sample_rate", &rate))
		health_bad(f, HEALTH_NOTE, "not known", "mount /proc",
			   "%s/sys/kernel/perf_event_max_sample_rate cannot be read",
			   w->roots.proc);
	else if (rate < USUAL_HZ)
		health_bad(f, HEALTH_WARN, "sampling at 99 Hz: the limit is used instead", cure,
			   "%" PRId64 " samples per second and CPU", rate);
	else if (rate < KERNEL_MAX_RATE)
		health_bad(f, HEALTH_NOTE, "faster sampling than that", cure,
			   "%" PRId64 " samples per second and CPU, below the kernel's default",
			   rate);
	else
		health_ok(f, "%" PRId64 " samples per second and CPU", rate);
}

void health_cpu_time(const struct health_world *w, struct health_finding *f, int argument)
{
	int64_t percent;

	if (health_read_number(w->roots.proc, "sys/kernel/perf_cpu_time_max_percent", &percent))
		health_bad(f, HEALTH_NOTE, "not known", "mount /proc",
			   "%s/sys/kernel/perf_cpu_time_max_percent cannot be read", w->roots.proc);
	else if (percent == 0 || percent >= 100)
		health_ok(f, "none: the kernel does not slow sampling down");
	else if (percent < LOW_PERCENT)
		health_bad(f, HEALTH_NOTE,
			   "samples, when a stack takes long: the kernel slows sampling down early",
			   "sysctl kernel.perf_cpu_time_max_percent=25", "%" PRId64 " %% of a CPU",
			   percent);
	else
		health_ok(f, "%" PRId64 " %% of a CPU, then the kernel slows sampling down",
			  percent);
}
