/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether a departure from the CPU is captured: decided before anything is known of how long the
 * thread will be away, by what is known of it and of its CPU. Arithmetic only, tested on the host.
 *
 * Each capture stands for as many departures as its probability says, so that sums of them are
 * unbiased whatever the probabilities were.
 */
#ifndef BPF_OFF_SAMPLE_BPF_H
#define BPF_OFF_SAMPLE_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "bpf/off_abi.h"

/* A budget of captures for each window, of a thread or of a CPU. */
struct off_budget {
	__u32 *window, *captures, *shift;
	__u32 most;
};

/* What was captured little lately becomes likelier, a doubling for each window that passed. */
static __always_inline void budget_turn(const struct off_budget *b, __u32 window)
{
	__u32 passed = window - *b->window;

	if (!passed)
		return;
	if (passed == 1 && *b->captures >= b->most / 4)
		passed = 0;
	*b->shift = *b->shift > passed ? *b->shift - passed : 0;
	*b->window = window;
	*b->captures = 0;
}

/* One more; past the budget the next ones become half as likely, again and again. */
static __always_inline void budget_spend(const struct off_budget *b)
{
	__u32 n = ++*b->captures;

	if (n >= b->most && (n - b->most) % SONDE_OFF_STEP == 0 && *b->shift < SONDE_OFF_MAX_SHIFT)
		++*b->shift;
}

/* Whether the place was not captured in this window nor in the last one. */
static __always_inline bool site_is_due(const struct sonde_off_thread *o, __u32 site, __u32 window)
{
	const struct sonde_off_site *s = &o->sites[site & (SONDE_OFF_SITES - 1)];

	return s->hash != site || window - s->window > 1;
}

/*
 * How many departures this one stands for; 0: it is not captured. `site`: what tells its place, 0
 * if nothing does; `random`: 32 bits.
 */
static __always_inline __u32 off_choose(struct sonde_off_thread *o, struct sonde_off_cpu *cpu,
					__u32 site, __u32 window, __u32 random)
{
	const struct off_budget thread = { &o->window, &o->captures, &o->shift,
					   SONDE_OFF_THREAD_CAPTURES };
	const struct off_budget all = { &cpu->window, &cpu->captures, &cpu->shift,
					SONDE_OFF_CPU_CAPTURES };
	__u32 shift, weight;
	bool sure;

	if (o->window != window)
		o->sure = 0;
	budget_turn(&thread, window);
	budget_turn(&all, window);
	sure = site && o->sure < SONDE_OFF_SURE && site_is_due(o, site, window);
	shift = (sure ? 0 : o->shift) + cpu->shift;
	if (shift > SONDE_OFF_MAX_SHIFT)
		shift = SONDE_OFF_MAX_SHIFT;
	weight = 1u << (shift & 31);
	if (random & (weight - 1))
		return 0;
	if (site) {
		o->sites[site & (SONDE_OFF_SITES - 1)].hash = site;
		o->sites[site & (SONDE_OFF_SITES - 1)].window = window;
	}
	o->sure += sure;
	if (!sure || !o->shift)
		budget_spend(&thread);
	budget_spend(&all);
	return weight;
}

#endif
