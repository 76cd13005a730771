/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expected samples against received ones, CPU by CPU: what did not come was either missed (the
 * kernel skipped the program, or held the event back) or was due while the CPU was idle, where an
 * event's timer may stand still while its running time goes on. The time that a CPU was idle
 * beyond its idle samples bounds the second kind; all the rest is a loss.
 */
#ifndef AGENT_COLLECT_RECONCILE_H
#define AGENT_COLLECT_RECONCILE_H

#include <stddef.h>
#include <stdint.h>

/* Of one CPU, since the start; what is 0 here never happened. */
struct cpu_books {
	uint64_t expected;    /* samples, by the events' running time */
	uint64_t received;    /* samples */
	uint64_t idle_weight; /* ns of samples of the idle task */
	uint64_t idle_ns;     /* that the CPU was idle, by the kernel's own count */
};

struct reconcile_cpu;

/* Sums over all CPUs: expected = received + missed + missed_idle, none ever goes back. */
struct reconcile {
	uint64_t expected, missed, missed_idle;
	struct reconcile_cpu *cpus;
	size_t cpu_count;
};

int reconcile_init(struct reconcile *r, size_t cpu_count);
void reconcile_fini(struct reconcile *r);

/* Idle time before this moment explains nothing that comes after it. */
void reconcile_start(struct reconcile *r, size_t cpu, uint64_t idle_ns);

/*
 * Books the interval since the last call. `period_ns` is that of its samples; 0: idle CPUs do
 * not count (hardware cycles).
 */
void reconcile_add(struct reconcile *r, size_t cpu, const struct cpu_books *now,
		   uint64_t period_ns);

/*
 * The idle time (without and with I/O waited for) of each CPU in /proc/stat, in ns by steps of a
 * tick, into idle_ns[0..cpu_count-1]; CPUs that are not listed keep their value.
 */
void reconcile_parse_idle(const char *text, size_t len, uint64_t tick_ns, uint64_t *idle_ns,
			  size_t cpu_count);

#endif
