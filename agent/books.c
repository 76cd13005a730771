/* SPDX-License-Identifier: Apache-2.0 */
/* Names and differences of counters, and their place in a profile; see books.h. */
#include "agent/books.h"

#include <inttypes.h>

static const struct {
	const char *name, *text;
} counters[] = {
#define X(id, name, text) [SONDE_COUNT_##id] = { name, text },
	SONDE_COUNTERS(X)
#undef X
};

const char *counter_name(enum sonde_counter counter)
{
	return counters[counter].name;
}

const char *counter_text(enum sonde_counter counter)
{
	return counters[counter].text;
}

/* Both hold nothing but uint64_t. */
struct agent_totals books_since(const struct agent_totals *now,
				const struct agent_totals *before)
{
	enum { FIELDS = sizeof(struct agent_totals) / sizeof(uint64_t) };
	union {
		struct agent_totals totals;
		uint64_t fields[FIELDS];
	} a = { .totals = *now }, b = { .totals = *before };

	for (size_t i = 0; i < FIELDS; i++)
		a.fields[i] -= b.fields[i];
	return a.totals;
}

void books_clear_gauges(struct agent_totals *t)
{
	t->collect.table_bytes = 0;
	t->resolve.file_bytes = 0;
	t->resolve.files_queued = t->resolve.samples_waiting = 0;
	t->resolve.stacks_known = t->resolve.facts_known = t->resolve.files_known = 0;
}

void books_move_filtered(struct agent_totals *t)
{
	uint64_t *counters_of = t->collect.counters;

	counters_of[SONDE_COUNT_KEPT] -= t->resolve.filtered;
	counters_of[SONDE_COUNT_OVERFLOW_CGROUP] -= t->resolve.filtered_overflow;
	counters_of[SONDE_COUNT_FILTERED] += t->resolve.filtered + t->resolve.filtered_overflow;
	t->collect.filtered_weight += t->resolve.filtered_weight;
}

static int comment(struct profile *p, const char *name, uint64_t value)
{
	return profile_add_comment(p, "sonde.%s=%" PRIu64, name, value);
}

int books_add(struct profile *p, const struct agent_totals *t)
{
	const struct {
		const char *name;
		uint64_t value;
	} books[] = {
		{ "expected", t->collect.expected_samples },
		{ "missed", t->collect.missed },
		{ "missed_idle", t->collect.missed_idle },
		{ "lost_stacks", t->resolve.lost_stacks },
		{ "unknown_processes", t->resolve.unknown_processes },
		{ "carried_in", t->resolve.carried_in },
		{ "carried_out", t->resolve.carried_out },
		{ "unknown_cgroups", t->resolve.unknown_cgroups },
		{ "lost_no_memory", t->resolve.no_memory },
		{ "bad_records", t->collect.bad_records },
		{ "perf_map_bad_lines", t->resolve.perf_map_bad_lines },
		{ "jitdump_bad_records", t->resolve.jitdump_bad_records },
		{ "drain_errors", t->collect.drain_errors },
		{ "failed_cpus", t->collect.failed_cpus },
	};
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(books) / sizeof(books[0]); i++)
		err = comment(p, books[i].name, books[i].value);
	for (int i = 0; !err && i < SONDE_COUNTER_COUNT; i++)
		err = comment(p, counters[i].name, t->collect.counters[i]);
	for (int i = 0; !err && i < SYM_REASON_COUNT; i++) {
		if (t->resolve.frames[i])
			err = profile_add_comment(p, "sonde.frames[%s]=%" PRIu64,
						  sym_reason_text(i), t->resolve.frames[i]);
	}
	return err;
}
