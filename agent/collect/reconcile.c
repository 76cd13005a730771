/* SPDX-License-Identifier: Apache-2.0 */
/* Which expected samples did not come, and why; see reconcile.h. */
#include "agent/collect/reconcile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

/*
 * Idle samples are a random sample of idle time, so in one interval they say too much, in another
 * too little. Idle time that found no missing sample is therefore kept for later intervals, up to
 * this many samples: so much of a real loss can be taken for idleness, once. In the long run about
 * 0.01 % of the samples of a CPU that is half idle are still taken for lost.
 */
enum { BANK_SAMPLES = 1024 };

struct reconcile_cpu {
	struct cpu_books last;
	uint64_t early;   /* received before they were due: by an event's phase, or a late read */
	uint64_t bank_ns; /* idle time that no sample, received or missed, stands for */
};

int reconcile_init(struct reconcile *r, size_t cpu_count)
{
	*r = (struct reconcile){ .cpu_count = cpu_count };
	r->cpus = calloc(cpu_count, sizeof(*r->cpus));
	return r->cpus ? 0 : -ENOMEM;
}

void reconcile_fini(struct reconcile *r)
{
	free(r->cpus);
	*r = (struct reconcile){ 0 };
}

void reconcile_start(struct reconcile *r, size_t cpu, uint64_t idle_ns)
{
	r->cpus[cpu].last.idle_ns = idle_ns;
}

/* What of `missing` samples the idle time of the interval explains. */
static uint64_t take_idle(struct reconcile_cpu *c, const struct cpu_books *now, uint64_t missing,
			  uint64_t period_ns)
{
	/* A tick's worth of idle time may be taken back by the kernel: it counts as none. */
	uint64_t idle = now->idle_ns > c->last.idle_ns ? now->idle_ns - c->last.idle_ns : 0;
	uint64_t sampled = now->idle_weight - c->last.idle_weight, samples;

	c->bank_ns += idle;
	c->bank_ns -= sampled < c->bank_ns ? sampled : c->bank_ns;
	samples = c->bank_ns / period_ns;
	samples = samples < missing ? samples : missing;
	c->bank_ns -= samples * period_ns;
	if (c->bank_ns > BANK_SAMPLES * period_ns)
		c->bank_ns = BANK_SAMPLES * period_ns;
	return samples;
}

void reconcile_add(struct reconcile *r, size_t cpu, const struct cpu_books *now,
		   uint64_t period_ns)
{
	struct reconcile_cpu *c = &r->cpus[cpu];
	uint64_t received = now->received - c->last.received, missing, idle = 0;
	/* An estimate may go back; what came early is not expected once more. */
	int64_t expected = (int64_t)(now->expected - c->last.expected - c->early);

	missing = expected > (int64_t)received ? (uint64_t)expected - received : 0;
	c->early = missing ? 0 : (uint64_t)((int64_t)received - expected);
	if (period_ns)
		idle = take_idle(c, now, missing, period_ns);
	c->last = *now;
	r->expected += received + missing;
	r->missed_idle += idle;
	r->missed += missing - idle;
}

/* Field `n` (from 0) of a line of numbers; 0 if it has fewer. */
static uint64_t field(const char *p, const char *end, int n)
{
	uint64_t value = 0;

	for (int i = 0; i <= n; i++) {
		while (p < end && *p == ' ')
			p++;
		p = parse_digits(p, end, 10, &value);
		if (!p)
			return 0;
	}
	return value;
}

void reconcile_parse_idle(const char *text, size_t len, uint64_t tick_ns, uint64_t *idle_ns,
			  size_t cpu_count)
{
	enum { IDLE = 3, IO_WAIT = 4 };
	const char *end = text + len, *line, *next;
	uint64_t cpu;

	for (line = text; line < end; line = next) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		const char *p = line + 3;

		stop = stop ? stop : end;
		next = stop < end ? stop + 1 : end;
		if (stop - line < 4 || memcmp(line, "cpu", 3) != 0)
			continue;
		p = parse_digits(p, stop, 10, &cpu); /* the line of all CPUs has no number */
		if (p && cpu < cpu_count)
			idle_ns[cpu] = (field(p, stop, IDLE) + field(p, stop, IO_WAIT)) * tick_ns;
	}
}
