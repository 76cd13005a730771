/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of the scheduler accounting; see sums.h. */
#include "agent/sched/sums.h"

#include <string.h>

/*
 * sum_exec_runtime is brought up to date at switches and at ticks: of a thread that runs, it
 * lacks up to a tick (10 ms at HZ=100). So much is no steal.
 */
static const int64_t TICK_NS = 10000000;

static int64_t exec_of(const struct sonde_sched_thread *t, int64_t on_cpu_ns)
{
	int64_t exec = (int64_t)(t->exec - t->exec_birth);

	if (t->head.id == SONDE_SCHED_LIVE && t->state == SONDE_SCHED_RUNNING &&
	    on_cpu_ns - exec < 2 * TICK_NS)
		return on_cpu_ns;
	return exec;
}

/*
 * A wait for a CPU that is open is charged to its state. If part of it turns out to have been
 * throttled, that part moves from one bucket to the other with the next difference: so a
 * difference of one bucket may be negative while the sum over all is right.
 */
void sched_sums_of(const struct sonde_sched_thread *t, uint64_t now_ns, struct sched_sums *ret_sums)
{
	struct sched_sums s = { .delay_ns = (int64_t)t->delay_ns,
				.off_ns = (int64_t)t->off_ns,
				.migrations = t->migrations - t->migrations_birth };

	for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++) {
		s.ns[i] = (int64_t)t->ns[i];
		s.entries[i] = t->entries[i];
	}
	if (t->head.id == SONDE_SCHED_LIVE && now_ns > t->since &&
	    t->state < SONDE_SCHED_STATE_COUNT)
		s.ns[t->state] += (int64_t)(now_ns - t->since);
	s.exec_ns = exec_of(t, s.ns[SONDE_SCHED_RUNNING]);
	memcpy(s.delay, t->delay, sizeof(s.delay));
	memcpy(s.off, t->off, sizeof(s.off));
	*ret_sums = s;
}

void sched_totals_add(struct sched_totals *totals, const struct sched_sums *from,
		      const struct sched_sums *to)
{
	for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++) {
		totals->ns[i] += to->ns[i] - from->ns[i];
		totals->entries[i] += (uint32_t)(to->entries[i] - from->entries[i]);
	}
	for (int i = 0; i < SONDE_SCHED_BUCKETS; i++) {
		totals->delay[i] += (uint32_t)(to->delay[i] - from->delay[i]);
		totals->off[i] += (uint32_t)(to->off[i] - from->off[i]);
	}
	totals->exec_ns += to->exec_ns - from->exec_ns;
	totals->delay_ns += to->delay_ns - from->delay_ns;
	totals->off_ns += to->off_ns - from->off_ns;
	totals->migrations += (uint32_t)(to->migrations - from->migrations);
}

uint64_t sched_max_delay(const struct sonde_sched_thread *t, uint32_t epoch)
{
	uint64_t max = 0;

	for (int i = 0; i < 2; i++) {
		int32_t later = (int32_t)(t->max[i].epoch - epoch);

		if ((later == 0 || (later > 0 && t->head.id != SONDE_SCHED_LIVE)) &&
		    t->max[i].ns > max)
			max = t->max[i].ns;
	}
	return max;
}

static int64_t positive(int64_t n)
{
	return n < 0 ? 0 : n;
}

/* Takes up to `debt` from a bucket; what is left of the debt. */
static int64_t take(int64_t *ns, int64_t debt)
{
	int64_t part = debt < positive(*ns) ? debt : positive(*ns);

	*ns -= part;
	return debt - part;
}

void sched_settle(int64_t ns[SONDE_SCHED_STATE_COUNT], int64_t exec_ns)
{
	int64_t debt = exec_ns - ns[SONDE_SCHED_RUNNING];
	int largest = 0;

	if (debt > 0)
		ns[SONDE_SCHED_RUNNING] = exec_ns;
	debt = take(&ns[SONDE_SCHED_WOKEN], positive(debt));
	debt = take(&ns[SONDE_SCHED_PREEMPTED], debt);
	for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++) {
		if (ns[i] < 0) {
			debt -= ns[i];
			ns[i] = 0;
		}
		if (ns[i] > ns[largest])
			largest = i;
	}
	take(&ns[largest], debt);
}

int64_t sched_stolen_ns(const struct sched_totals *totals)
{
	int64_t stolen = totals->ns[SONDE_SCHED_RUNNING] - totals->exec_ns;

	return stolen < 0 ? 0 : stolen;
}

uint64_t sched_bucket_start(int bucket)
{
	return bucket ? 1ULL << (SONDE_SCHED_FIRST_SHIFT - 1 + bucket) : 0;
}
