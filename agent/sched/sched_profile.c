/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the scheduler accounting into a profile; see sched_profile.h. */
#include "agent/sched/sched_profile.h"

#include <string.h>

static int64_t positive(int64_t n)
{
	return n < 0 ? 0 : n;
}

static void add_states(struct sched_writer *w, const struct sched_totals *t)
{
	int64_t ns[SONDE_SCHED_STATE_COUNT], stolen = sched_stolen_ns(t);

	memcpy(ns, t->ns, sizeof(ns));
	sched_settle(ns, t->exec_ns);
	if (stolen > ns[SONDE_SCHED_RUNNING])
		stolen = ns[SONDE_SCHED_RUNNING];
	ns[SONDE_SCHED_RUNNING] -= stolen;
	for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++) {
		int64_t values[SCHED_VALUE_COUNT] = {
			[SCHED_WALL] = ns[i], [SCHED_ENTRIES] = (int64_t)t->entries[i]
		};

		sched_writer_sample(w, sched_reason_names[i], sched_state_names[i], values);
	}
	if (stolen)
		sched_writer_sample(w, SCHED_FRAME_STOLEN, sched_state_names[SONDE_SCHED_RUNNING],
				    (int64_t[SCHED_VALUE_COUNT]){ [SCHED_WALL] = stolen });
}

static void add_histogram(struct sched_writer *w, const char *name, enum sched_value which,
			  const uint64_t *buckets)
{
	for (int i = 0; i < SONDE_SCHED_BUCKETS; i++) {
		int64_t values[SCHED_VALUE_COUNT] = { 0 };
		size_t labels = w->label_count;

		if (!buckets[i])
			continue;
		values[which] = (int64_t)buckets[i];
		/* 1 for 0: a label's number 0 is as good as none. */
		sched_writer_label(w, SCHED_LABEL_BUCKET, NULL,
				   i ? (int64_t)sched_bucket_start(i) : 1);
		sched_writer_sample(w, NULL, name, values);
		w->label_count = labels;
	}
}

static void add_thread_values(struct sched_writer *w, const struct sched_totals *t)
{
	int64_t values[SCHED_VALUE_COUNT] = {
		[SCHED_DELAY] = positive(t->delay_ns),
		[SCHED_MIGRATIONS] = (int64_t)t->migrations,
		[SCHED_THREADS] = (int64_t)t->threads,
		[SCHED_LIFETIME] = (int64_t)t->elapsed_ns,
	};
	size_t labels = w->label_count;

	if (t->max_delay_ns)
		sched_writer_label(w, SCHED_LABEL_MAX, NULL, (int64_t)t->max_delay_ns);
	sched_writer_sample(w, NULL, SCHED_FRAME_THREAD, values);
	w->label_count = labels;
}

/* Threads that had no room, and those whose end was refused: rows of their own. */
static void add_overflow(struct sched_writer *w, const struct sched_machine *m)
{
	int64_t off = positive((int64_t)(m->untracked_ns - m->untracked_on_cpu_ns));

	w->label_count = 0;
	sched_writer_label(w, "comm", "[overflow]", 0);
	sched_writer_sample(
		w, NULL, sched_state_names[SONDE_SCHED_RUNNING],
		(int64_t[SCHED_VALUE_COUNT]){ [SCHED_WALL] = (int64_t)m->untracked_on_cpu_ns,
					      [SCHED_LIFETIME] = (int64_t)m->untracked_ns,
					      [SCHED_THREADS] = (int64_t)m->untracked_threads });
	sched_writer_sample(w, NULL, SCHED_FRAME_OFF_CPU,
			    (int64_t[SCHED_VALUE_COUNT]){ [SCHED_WALL] = off });
	for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++)
		sched_writer_sample(w, sched_reason_names[i], sched_state_names[i],
				    (int64_t[SCHED_VALUE_COUNT]){
					    [SCHED_WALL] = (int64_t)m->refused_ns[i],
					    [SCHED_LIFETIME] = (int64_t)m->refused_ns[i] });
}

static const struct {
	const char *type, *unit;
} types[SCHED_VALUE_COUNT] = {
#define X(id, type, unit) [SCHED_##id] = { type, unit },
	SCHED_VALUES(X)
#undef X
};

static void describe(struct sched_writer *w, bool wall_only)
{
	struct profile *p = w->p;
	struct sched_machine m;
	int count = wall_only ? SCHED_WALL + 1 : SCHED_VALUE_COUNT;

	_Static_assert(SCHED_WALL == 0, "a profile of wall alone takes the first of all values");
	for (int i = 0; i < count; i++)
		sched_writer_note(w, profile_add_type(p, types[i].type, types[i].unit));
	if (w->err)
		return;
	if (wall_only) {
		p->period_type = p->types[SCHED_WALL];
		p->period = 1;
	}
	p->default_type = p->types[SCHED_WALL].type;
	sched_books_machine(w->books, &m);
	sched_writer_note(w, profile_add_comment(p, "sonde.sched=1"));
	sched_writer_counters(w, &m);
	add_overflow(w, &m);
}

static void add_histograms(struct sched_writer *w, const struct sched_totals *t)
{
	add_histogram(w, SCHED_FRAME_DELAY, SCHED_DELAYS, t->delay);
	add_histogram(w, SCHED_FRAME_OFF, SCHED_OFF, t->off);
	add_thread_values(w, t);
}

int sched_profile_new(const struct sched_books *b, const struct sched_profile_options *options,
		      struct profile **ret_profile)
{
	const struct sched_row_key *key;
	const struct sched_row *row;
	struct sched_writer w;
	size_t cursor = 0;

	sched_writer_init(&w, b, options->realtime_ns, options->max_bytes);
	if (!w.err)
		describe(&w, options->wall_only);
	while (!w.err && sched_books_next(b, &cursor, &key, &row)) {
		sched_writer_row(&w, key, row);
		if (options->label)
			options->label(&w, sched_books_cgroup_path(b, key->cgroup));
		add_states(&w, &row->totals);
		if (!options->wall_only)
			add_histograms(&w, &row->totals);
	}
	return sched_writer_fini(&w, ret_profile);
}
