/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A pretend core PMU for test guests, which have none: it answers PERF_TYPE_HARDWARE cycles, and
 * its overflows come as real NMIs. So the perf-event program meets code that a timer interrupt
 * never interrupts: regions with interrupts off, held spinlocks, other BPF programs.
 *
 * One counter for each CPU; a cycle is a nanosecond, also of an idle CPU. A timer on each CPU
 * watches the next one and sends it an NMI when its counter is due: a CPU's own timer could not
 * fire while that CPU has interrupts off. Nothing here takes a lock, as an NMI may come at any
 * instruction; the counter's event is only ever used by its own CPU.
 *
 * A single CPU sends NMIs to itself. CPUs stay as they are when the module is loaded.
 *
 * Counters are module parameters, read in /sys/module/nmi_pmu/parameters. At rest
 * raised = taken = sampled + idle_counter + excluded.
 */
#include <linux/hrtimer.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/smp.h>
#include <linux/version.h>

#include <asm/apic.h>
#include <asm/nmi.h>

enum {
	MIN_PERIOD_NS = 100 * NSEC_PER_USEC,
	IDLE_LOOK_NS = NSEC_PER_MSEC,
};

struct counter {
	struct hrtimer watch; /* of the CPU after this one */
	struct perf_event *event;
	u64 due_ns;
	u64 period_ns;
	u64 sampled_count; /* the event's count at its last overflow */
	bool running;
	atomic_t pending; /* an NMI is on its way: never two, the second would be nobody's */
};

static DEFINE_PER_CPU(struct counter, counter);
static bool watching;

#define COUNTER(name, text)                                                                        \
	static atomic_t name = ATOMIC_INIT(0);                                                     \
	module_param_named(name, name.counter, int, 0444);                                         \
	MODULE_PARM_DESC(name, text)

COUNTER(raised, "NMIs sent");
COUNTER(taken, "NMIs that came");
COUNTER(in_nmi_context, "of these: the kernel says that it is in NMI");
COUNTER(sampled, "overflows given to perf");
COUNTER(idle_counter, "NMIs after their counter was stopped");
COUNTER(excluded, "NMIs in a mode that the event excludes");
COUNTER(throttled, "samples after which perf stopped the counter until the next tick");
COUNTER(still_pending, "looks at which the NMI before had not come yet");
COUNTER(hit_irqs_off, "samples of kernel code with interrupts off");
COUNTER(hit_bpf, "samples of a BPF program's own code");

static int (*event_overflow)(struct perf_event *, struct perf_sample_data *, struct pt_regs *);
static bool (*is_bpf_text)(unsigned long);

static void count(struct perf_event *event)
{
	u64 now = ktime_get_mono_fast_ns();
	s64 passed = now - (u64)local64_xchg(&event->hw.prev_count, now);

	if (passed > 0)
		local64_add(passed, &event->count);
}

static void set_due(struct counter *c, struct perf_event *event)
{
	u64 period = max_t(u64, event->hw.sample_period, MIN_PERIOD_NS);

	WRITE_ONCE(c->period_ns, period);
	WRITE_ONCE(c->due_ns, ktime_get_mono_fast_ns() + period);
}

static void pmu_start(struct perf_event *event, int flags)
{
	struct counter *c = this_cpu_ptr(&counter);

	event->hw.state = 0;
	local64_set(&event->hw.prev_count, ktime_get_mono_fast_ns());
	WRITE_ONCE(c->running, is_sampling_event(event));
	perf_event_update_userpage(event);
}

/* perf stops and starts at each tick: due_ns outlives that. */
static void pmu_stop(struct perf_event *event, int flags)
{
	struct counter *c = this_cpu_ptr(&counter);

	if (event->hw.state & PERF_HES_STOPPED)
		return;
	WRITE_ONCE(c->running, false);
	count(event);
	event->hw.state |= PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

static int pmu_add(struct perf_event *event, int flags)
{
	struct counter *c = this_cpu_ptr(&counter);

	if (c->event)
		return -EAGAIN;
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	set_due(c, event);
	c->sampled_count = local64_read(&event->count);
	WRITE_ONCE(c->event, event);
	if (flags & PERF_EF_START)
		pmu_start(event, flags);
	return 0;
}

static void pmu_del(struct perf_event *event, int flags)
{
	pmu_stop(event, flags);
	WRITE_ONCE(this_cpu_ptr(&counter)->event, NULL);
}

static void pmu_read(struct perf_event *event)
{
	if (!(event->hw.state & PERF_HES_STOPPED))
		count(event);
}

static int pmu_event_init(struct perf_event *event)
{
	if (event->attr.type != PERF_TYPE_HARDWARE ||
	    event->attr.config != PERF_COUNT_HW_CPU_CYCLES)
		return -ENOENT;
	if (event->cpu < 0 || has_branch_stack(event))
		return -EOPNOTSUPP;
	return 0;
}

static struct pmu pmu = {
	.module = THIS_MODULE,
	.task_ctx_nr = perf_hw_context,
	.event_init = pmu_event_init,
	.add = pmu_add,
	.del = pmu_del,
	.start = pmu_start,
	.stop = pmu_stop,
	.read = pmu_read,
};

static void note_where(struct pt_regs *regs)
{
	if (user_mode(regs))
		return;
	if (!(regs->flags & X86_EFLAGS_IF))
		atomic_inc(&hit_irqs_off);
	if (is_bpf_text(regs->ip))
		atomic_inc(&hit_bpf);
}

/* A sample stands for all that was counted since the last one, however late it is. */
static void sample(struct counter *c, struct perf_event *event, struct pt_regs *regs)
{
	struct perf_sample_data data;
	u64 total;

	count(event);
	total = local64_read(&event->count);
	event->hw.last_period = total - c->sampled_count;
	c->sampled_count = total;
	if (user_mode(regs) ? event->attr.exclude_user : event->attr.exclude_kernel) {
		atomic_inc(&excluded);
		set_due(c, event);
		return;
	}
	atomic_inc(&sampled);
	note_where(regs);
	perf_sample_data_init(&data, 0, event->hw.last_period);
	if (event_overflow(event, &data, regs)) {
		atomic_inc(&throttled);
		pmu_stop(event, 0);
	}
	set_due(c, event); /* with the period that perf has just chosen */
}

static int on_nmi(unsigned int type, struct pt_regs *regs)
{
	struct counter *c = this_cpu_ptr(&counter);
	struct perf_event *event = READ_ONCE(c->event);

	if (!atomic_xchg(&c->pending, 0))
		return NMI_DONE; /* somebody else's */
	atomic_inc(&taken);
	if (in_nmi())
		atomic_inc(&in_nmi_context);
	if (event && c->running)
		sample(c, event, regs);
	else
		atomic_inc(&idle_counter);
	return NMI_HANDLED;
}

static int next_cpu(void)
{
	int cpu = cpumask_next(smp_processor_id(), cpu_online_mask);

	return cpu < nr_cpu_ids ? cpu : cpumask_first(cpu_online_mask);
}

static enum hrtimer_restart look(struct hrtimer *timer)
{
	int cpu = next_cpu();
	struct counter *c = per_cpu_ptr(&counter, cpu);
	u64 now = ktime_get_mono_fast_ns(), wait = IDLE_LOOK_NS;

	if (!READ_ONCE(watching))
		return HRTIMER_NORESTART;
	if (READ_ONCE(c->running)) {
		wait = READ_ONCE(c->due_ns) - now;
		if ((s64)wait <= 0) {
			wait = READ_ONCE(c->period_ns);
			if (atomic_cmpxchg(&c->pending, 0, 1) == 0) {
				atomic_inc(&raised);
				apic->send_IPI_mask(cpumask_of(cpu), NMI_VECTOR);
			} else {
				atomic_inc(&still_pending);
			}
		}
		wait = clamp_t(u64, wait, MIN_PERIOD_NS, IDLE_LOOK_NS);
	}
	hrtimer_forward_now(timer, ns_to_ktime(wait));
	return HRTIMER_RESTART;
}

static void watch_start(void *unused)
{
	struct hrtimer *timer = &this_cpu_ptr(&counter)->watch;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, look, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	timer->function = look;
#endif
	hrtimer_start(timer, ns_to_ktime(IDLE_LOOK_NS), HRTIMER_MODE_REL_PINNED_HARD);
}

/* Not exported; a kprobe tells the address. */
static void *address_of(const char *name)
{
	struct kprobe probe = { .symbol_name = name };

	if (register_kprobe(&probe))
		return NULL;
	unregister_kprobe(&probe);
	return probe.addr;
}

static int __init nmi_pmu_init(void)
{
	int err;

	event_overflow = address_of("perf_event_overflow");
	is_bpf_text = address_of("is_bpf_text_address");
	if (!event_overflow || !is_bpf_text)
		return -ENOENT;
	err = register_nmi_handler(NMI_LOCAL, on_nmi, 0, "nmi_pmu");
	if (err)
		return err;
	err = perf_pmu_register(&pmu, "cpu", PERF_TYPE_RAW);
	if (err) {
		unregister_nmi_handler(NMI_LOCAL, "nmi_pmu");
		return err;
	}
	watching = true;
	on_each_cpu(watch_start, NULL, 1);
	return 0;
}

static void __exit nmi_pmu_exit(void)
{
	int cpu;

	perf_pmu_unregister(&pmu);
	WRITE_ONCE(watching, false);
	for_each_online_cpu(cpu) hrtimer_cancel(&per_cpu_ptr(&counter, cpu)->watch);
	unregister_nmi_handler(NMI_LOCAL, "nmi_pmu");
}

module_init(nmi_pmu_init);
module_exit(nmi_pmu_exit);
MODULE_DESCRIPTION("Overflows of a pretend cycle counter as NMIs, for tests");
MODULE_LICENSE("GPL");
