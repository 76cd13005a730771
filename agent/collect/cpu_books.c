/* SPDX-License-Identifier: Apache-2.0 */
/* What was expected and received on each CPU, from the kernel to the books; see reconcile.h. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/collect/collect_private.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"

enum { MAX_CPUS = 8192, CPU_LIST_BYTES = 64 << 10, STAT_BYTES = 4 << 20 };

/* What per-CPU values are of: the possible CPUs in order; there may be holes. */
static int list_cpus(struct collect *c)
{
	struct buf list;
	size_t count = 0;
	int err;

	c->cpu_numbers = calloc(MAX_CPUS, sizeof(*c->cpu_numbers));
	if (!c->cpu_numbers)
		return -ENOMEM;
	buf_init(&list, CPU_LIST_BYTES);
	err = file_read_path("/sys/devices/system/cpu/possible", &list);
	if (!err && !buf_cstr(&list))
		err = -ENOMEM;
	if (!err)
		err = parse_cpu_list(buf_cstr(&list), c->cpu_numbers, MAX_CPUS, &count);
	buf_fini(&list);
	if (!err && count == 0)
		err = -ENODEV;
	c->possible_cpus = (int)count;
	return err;
}

int cpu_books_open(struct collect *c)
{
	size_t cpus;
	int err = list_cpus(c);

	if (err)
		return err;
	cpus = (size_t)c->cpu_numbers[c->possible_cpus - 1] + 1;
	c->cpu_counts = calloc(cpus, sizeof(*c->cpu_counts));
	c->cpu_expected = calloc(cpus, sizeof(*c->cpu_expected));
	c->cpu_idle_ns = calloc(cpus, sizeof(*c->cpu_idle_ns));
	if (!c->cpu_counts || !c->cpu_expected || !c->cpu_idle_ns)
		return -ENOMEM;
	return reconcile_init(&c->reconcile, cpus);
}

void cpu_books_close(struct collect *c)
{
	reconcile_fini(&c->reconcile);
	free(c->cpu_numbers);
	free(c->cpu_counts);
	free(c->cpu_expected);
	free(c->cpu_idle_ns);
}

/* Stays where it cannot be read. */
static void read_idle(struct collect *c)
{
	struct buf text;

	buf_init(&text, STAT_BYTES);
	if (file_read_path("/proc/stat", &text) == 0)
		reconcile_parse_idle((const char *)text.data, text.len,
				     NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK), c->cpu_idle_ns,
				     c->reconcile.cpu_count);
	buf_fini(&text);
}

static void reconcile_cpus(struct collect *c)
{
	uint64_t period_ns = NSEC_PER_SEC / perf_events_frequency(c->perf);

	for (size_t cpu = 0; cpu < c->reconcile.cpu_count; cpu++) {
		const struct cpu_counts *n = &c->cpu_counts[cpu];
		struct cpu_books now = {
			.expected = c->cpu_expected[cpu],
			.received = n->received[0] + n->received[1],
			.idle_weight = n->idle_weight[0] + n->idle_weight[1],
			.idle_ns = c->cpu_idle_ns[cpu],
		};

		reconcile_add(&c->reconcile, cpu, &now, period_ns);
	}
}

/* Idle CPUs count no cycles, and the mean period is one of the machine: all CPUs as one. */
static void reconcile_machine(struct collect *c)
{
	struct cpu_books now = { 0 };
	uint64_t weight = 0;
	double mean;

	for (int half = 0; half < 2; half++) {
		now.received += c->books[half].counters[SONDE_COUNT_RECEIVED];
		weight += c->books[half].weights.received_weight;
	}
	now.expected = now.received;
	mean = now.received ? (double)weight / (double)now.received : 0;
	/* Cycles that no sample stands for, in samples of the mean period, come on top. */
	if (mean >= 1 && c->perf_totals.value > weight)
		now.expected += (uint64_t)((double)(c->perf_totals.value - weight) / mean);
	reconcile_add(&c->reconcile, 0, &now, 0);
}

void cpu_books_start(struct collect *c)
{
	read_idle(c);
	for (size_t cpu = 0; cpu < c->reconcile.cpu_count; cpu++)
		reconcile_start(&c->reconcile, cpu, c->cpu_idle_ns[cpu]);
}

void cpu_books_read(struct collect *c)
{
	perf_events_expected(c->perf, c->cpu_expected, c->reconcile.cpu_count);
	read_idle(c);
}

void cpu_books_reconcile(struct collect *c)
{
	if (perf_events_is_hardware(c->perf))
		reconcile_machine(c);
	else
		reconcile_cpus(c);
}
