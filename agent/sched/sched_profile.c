/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the scheduler accounting into a profile; see sched_profile.h. */
#include "agent/sched/sched_profile.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

#define X(id, state, reason, text) [SONDE_SCHED_##id] = state,
const char *const sched_state_names[SONDE_SCHED_STATE_COUNT] = { SONDE_SCHED_STATES(X) };
#undef X
#define X(id, state, reason, text) [SONDE_SCHED_##id] = reason,
const char *const sched_reason_names[SONDE_SCHED_STATE_COUNT] = { SONDE_SCHED_STATES(X) };
#undef X
#define X(id, name, text) [SONDE_SCHED_COUNT_##id] = name,
static const char *const counter_names[SONDE_SCHED_COUNTER_COUNT] = { SONDE_SCHED_COUNTERS(X) };
#undef X

enum { MAX_LABELS = 8, NAME_BYTES = 4 * SONDE_COMM_LEN + 1, MAX_PROCESSES = 1 << 20 };

struct process_key {
	uint64_t start_ns;
	uint64_t tgid;
};

struct writer {
	const struct sched_books *books;
	struct profile *p;
	struct map names; /* process_key -> its name, when rows are threads */
	struct profile_label labels[MAX_LABELS];
	size_t label_count;
	int err; /* sticky */
};

static void note(struct writer *w, int64_t result)
{
	if (result < 0 && !w->err)
		w->err = (int)result;
}

static void add_label(struct writer *w, const char *key, const char *text, int64_t number)
{
	int64_t key_string = profile_string(w->p, key);
	int64_t str = text ? profile_string(w->p, text) : 0;

	note(w, key_string);
	note(w, str);
	if (w->err || w->label_count == MAX_LABELS)
		return;
	w->labels[w->label_count++] = (struct profile_label){ .key = (uint32_t)key_string,
							      .str = (uint32_t)str, .num = number };
}

/* A frame is a function without an address. */
static uint32_t frame(struct writer *w, const char *name)
{
	int64_t string = profile_string(w->p, name), id;
	struct profile_function function = { .name = (uint32_t)string,
					     .system_name = (uint32_t)string };
	struct profile_line line;

	note(w, string);
	if (w->err)
		return 0;
	id = profile_add_function(w->p, &function);
	note(w, id);
	line = (struct profile_line){ .function_id = (uint32_t)id };
	id = w->err ? 0 : profile_add_location(w->p, 0, 0, &line, 1);
	note(w, id);
	return (uint32_t)id;
}

/* `leaf` may be NULL or empty: one frame. */
static void add_sample(struct writer *w, const char *leaf, const char *outer, const int64_t *values)
{
	uint32_t stack[2];
	size_t n = 0;

	if (leaf && *leaf)
		stack[n++] = frame(w, leaf);
	stack[n++] = frame(w, outer);
	if (!w->err)
		note(w, profile_add_sample(w->p, stack, n, values, w->labels, w->label_count));
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

/*
 * A profile has no negative values: what an earlier interval was charged too much is taken from
 * the largest bucket of this one. And where the scheduler counts more time on a CPU than lies
 * between the switches (its clock is read earlier in a switch), that was time of waiting. The
 * sum stays as it is.
 */
static void settle(int64_t *ns, int64_t exec_ns)
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

static void add_states(struct writer *w, const struct sched_totals *t)
{
	int64_t ns[SONDE_SCHED_STATE_COUNT], stolen = sched_stolen_ns(t);

	memcpy(ns, t->ns, sizeof(ns));
	settle(ns, t->exec_ns);
	if (stolen > ns[SONDE_SCHED_RUNNING])
		stolen = ns[SONDE_SCHED_RUNNING];
	ns[SONDE_SCHED_RUNNING] -= stolen;
	for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++) {
		int64_t values[SCHED_VALUE_COUNT] = { [SCHED_WALL] = ns[i],
						      [SCHED_ENTRIES] = (int64_t)t->entries[i] };

		add_sample(w, sched_reason_names[i], sched_state_names[i], values);
	}
	if (stolen)
		add_sample(w, SCHED_FRAME_STOLEN, sched_state_names[SONDE_SCHED_RUNNING],
			   (int64_t[SCHED_VALUE_COUNT]){ [SCHED_WALL] = stolen });
}

static void add_histogram(struct writer *w, const char *name, enum sched_value which,
			  const uint64_t *buckets)
{
	for (int i = 0; i < SONDE_SCHED_BUCKETS; i++) {
		int64_t values[SCHED_VALUE_COUNT] = { 0 };
		size_t labels = w->label_count;

		if (!buckets[i])
			continue;
		values[which] = (int64_t)buckets[i];
		/* 1 for 0: a label's number 0 is as good as none. */
		add_label(w, SCHED_LABEL_BUCKET, NULL, i ? (int64_t)sched_bucket_start(i) : 1);
		add_sample(w, NULL, name, values);
		w->label_count = labels;
	}
}

static void add_thread_values(struct writer *w, const struct sched_totals *t)
{
	int64_t values[SCHED_VALUE_COUNT] = {
		[SCHED_DELAY] = positive(t->delay_ns),
		[SCHED_MIGRATIONS] = (int64_t)t->migrations,
		[SCHED_THREADS] = (int64_t)t->threads,
		[SCHED_LIFETIME] = (int64_t)t->elapsed_ns,
	};
	size_t labels = w->label_count;

	if (t->max_delay_ns)
		add_label(w, SCHED_LABEL_MAX, NULL, (int64_t)t->max_delay_ns);
	add_sample(w, NULL, SCHED_FRAME_THREAD, values);
	w->label_count = labels;
}

/* Names are foreign bytes. */
static void clean_name(const char *comm, char *to)
{
	struct buf text;
	const char *clean;

	buf_init(&text, NAME_BYTES);
	text_escape(&text, comm, strnlen(comm, SONDE_COMM_LEN));
	clean = buf_cstr(&text);
	strncpy(to, clean ? clean : "", NAME_BYTES - 1);
	to[NAME_BYTES - 1] = '\0';
	buf_fini(&text);
}

static void label_row(struct writer *w, const struct sched_row_key *key, const struct sched_row *row)
{
	const char *cgroup = sched_books_cgroup_path(w->books, key->cgroup);
	struct process_key process = { key->process_start_ns, key->tgid };
	const char *comm = key->tid ? map_find(&w->names, &process) : NULL;
	char name[NAME_BYTES];

	w->label_count = 0;
	clean_name(comm ? comm : row->comm, name);
	add_label(w, "comm", name[0] ? name : "[unknown process]", 0);
	if (key->tgid)
		add_label(w, "pid", NULL, key->tgid);
	if (key->tid) {
		clean_name(row->comm, name);
		add_label(w, "thread", name[0] ? name : "[unknown thread]", 0);
		add_label(w, "tid", NULL, key->tid);
	}
	add_label(w, "cgroup", cgroup && *cgroup ? cgroup : cgroup ? "/" : "[unknown cgroup]", 0);
	if (row->is_kernel)
		add_label(w, "kernel", NULL, 1);
}

/* Threads' rows are named by their process, too: by its first thread. */
static void collect_names(struct writer *w)
{
	const struct sched_row_key *key;
	const struct sched_row *row;
	size_t cursor = 0;

	while (sched_books_next(w->books, &cursor, &key, &row)) {
		struct process_key process = { key->process_start_ns, key->tgid };
		char *name;

		if (!key->tid || map_add(&w->names, &process, &name) < 0)
			continue;
		if (key->tid == key->tgid || !*name)
			memcpy(name, row->comm, SONDE_COMM_LEN);
	}
}

/* Threads that had no room, and those whose end was refused: rows of their own. */
static void add_overflow(struct writer *w, const struct sched_machine *m)
{
	int64_t off = positive((int64_t)(m->untracked_ns - m->untracked_on_cpu_ns));

	w->label_count = 0;
	add_label(w, "comm", "[overflow]", 0);
	add_sample(w, NULL, sched_state_names[SONDE_SCHED_RUNNING],
		   (int64_t[SCHED_VALUE_COUNT]){ [SCHED_WALL] = (int64_t)m->untracked_on_cpu_ns,
						 [SCHED_LIFETIME] = (int64_t)m->untracked_ns,
						 [SCHED_THREADS] = (int64_t)m->untracked_threads });
	add_sample(w, NULL, "off_cpu", (int64_t[SCHED_VALUE_COUNT]){ [SCHED_WALL] = off });
	for (int i = 0; i < SONDE_SCHED_STATE_COUNT; i++)
		add_sample(w, sched_reason_names[i], sched_state_names[i],
			   (int64_t[SCHED_VALUE_COUNT]){
				   [SCHED_WALL] = (int64_t)m->refused_ns[i],
				   [SCHED_LIFETIME] = (int64_t)m->refused_ns[i] });
}

static void describe(struct writer *w, uint64_t realtime_ns)
{
	struct profile *p = w->p;
	struct sched_machine m;

#define X(id, type, unit) note(w, profile_add_type(p, type, unit));
	SCHED_VALUES(X)
#undef X
	sched_books_machine(w->books, &m);
	p->duration_ns = (int64_t)sched_books_duration(w->books);
	p->time_ns = (int64_t)realtime_ns - p->duration_ns;
	p->default_type = (uint32_t)profile_string(p, "wall");
	note(w, profile_add_comment(p, "sonde.sched=1"));
	for (int i = 0; i < SONDE_SCHED_COUNTER_COUNT; i++)
		note(w, profile_add_comment(p, "sonde.sched.%s=%llu", counter_names[i],
					    (unsigned long long)m.counters[i]));
	note(w, profile_add_comment(p, "sonde.sched.torn=%llu", (unsigned long long)m.torn));
	note(w, profile_add_comment(p, "sonde.sched.read_errors=%llu",
				    (unsigned long long)m.read_errors));
	note(w, profile_add_comment(p, "sonde.sched.lost=%llu",
				    (unsigned long long)sched_books_lost(w->books)));
	add_overflow(w, &m);
}

int sched_profile_new(const struct sched_books *b, uint64_t realtime_ns, size_t max_bytes,
		      struct profile **ret_profile)
{
	struct writer w = { .books = b };
	const struct sched_row_key *key;
	const struct sched_row *row;
	size_t cursor = 0;

	map_init(&w.names, sizeof(struct process_key), SONDE_COMM_LEN, MAX_PROCESSES);
	w.err = profile_new(max_bytes, &w.p);
	if (!w.err) {
		describe(&w, realtime_ns);
		collect_names(&w);
	}
	while (!w.err && sched_books_next(b, &cursor, &key, &row)) {
		label_row(&w, key, row);
		add_states(&w, &row->totals);
		add_histogram(&w, SCHED_FRAME_DELAY, SCHED_DELAYS, row->totals.delay);
		add_histogram(&w, SCHED_FRAME_OFF, SCHED_OFF, row->totals.off);
		add_thread_values(&w, &row->totals);
	}
	map_fini(&w.names);
	if (w.err) {
		profile_free(w.p);
		return w.err;
	}
	*ret_profile = w.p;
	return 0;
}
