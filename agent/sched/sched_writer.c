/* SPDX-License-Identifier: Apache-2.0 */
/* See sched_writer.h. */
#include "agent/sched/sched_writer.h"

#include <string.h>

#include "base/text.h"

#define X(id, state, reason, text) [SONDE_SCHED_##id] = state,
const char *const sched_state_names[SONDE_SCHED_STATE_COUNT] = { SONDE_SCHED_STATES(X) };
#undef X
#define X(id, state, reason, text) [SONDE_SCHED_##id] = reason,
const char *const sched_reason_names[SONDE_SCHED_STATE_COUNT] = { SONDE_SCHED_STATES(X) };
#undef X
#define X(id, name, text) [SONDE_SCHED_COUNT_##id] = name,
const char *const sched_counter_names[SONDE_SCHED_COUNTER_COUNT] = { SONDE_SCHED_COUNTERS(X) };
#undef X

enum { NAME_BYTES = 4 * SONDE_COMM_LEN + 1, MAX_PROCESSES = 1 << 20 };

struct process_key {
	uint64_t start_ns;
	uint64_t tgid;
};

void sched_writer_note(struct sched_writer *w, int64_t result)
{
	if (result < 0 && !w->err)
		w->err = (int)result;
}

void sched_writer_label(struct sched_writer *w, const char *key, const char *text, int64_t number)
{
	int64_t key_string = profile_string(w->p, key);
	int64_t str = text ? profile_string(w->p, text) : 0;

	sched_writer_note(w, key_string);
	sched_writer_note(w, str);
	if (w->err || w->label_count == SCHED_MAX_LABELS)
		return;
	w->labels[w->label_count++] = (struct profile_label){ .key = (uint32_t)key_string,
							      .str = (uint32_t)str,
							      .num = number };
}

/* A frame is a function without an address. */
static uint32_t frame(struct sched_writer *w, const char *name)
{
	int64_t string = profile_string(w->p, name), id;
	struct profile_function function = { .name = (uint32_t)string,
					     .system_name = (uint32_t)string };
	struct profile_line line;

	sched_writer_note(w, string);
	if (w->err)
		return 0;
	id = profile_add_function(w->p, &function);
	sched_writer_note(w, id);
	line = (struct profile_line){ .function_id = (uint32_t)id };
	id = w->err ? 0 : profile_add_location(w->p, 0, 0, &line, 1);
	sched_writer_note(w, id);
	return (uint32_t)id;
}

void sched_writer_sample(struct sched_writer *w, const char *leaf, const char *outer,
			 const int64_t *values)
{
	uint32_t stack[2];
	size_t n = 0;

	if (leaf && *leaf)
		stack[n++] = frame(w, leaf);
	stack[n++] = frame(w, outer);
	if (!w->err)
		sched_writer_note(
			w, profile_add_sample(w->p, stack, n, values, w->labels, w->label_count));
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

void sched_writer_row(struct sched_writer *w, const struct sched_row_key *key,
		      const struct sched_row *row)
{
	const char *cgroup = sched_books_cgroup_path(w->books, key->cgroup);
	struct process_key process = { key->process_start_ns, key->tgid };
	const char *comm = key->tid ? map_find(&w->names, &process) : NULL;
	char name[NAME_BYTES];

	w->label_count = 0;
	clean_name(comm ? comm : row->comm, name);
	sched_writer_label(w, "comm", name[0] ? name : "[unknown process]", 0);
	if (key->tgid)
		sched_writer_label(w, "pid", NULL, key->tgid);
	if (key->tid) {
		clean_name(row->comm, name);
		sched_writer_label(w, "thread", name[0] ? name : "[unknown thread]", 0);
		sched_writer_label(w, "tid", NULL, key->tid);
	}
	sched_writer_label(w, "cgroup",
			   cgroup && *cgroup ? cgroup
			   : cgroup          ? "/"
					     : "[unknown cgroup]",
			   0);
	if (row->is_kernel)
		sched_writer_label(w, "kernel", NULL, 1);
}

/* Threads' rows are named by their process, too: by its first thread. */
static void collect_names(struct sched_writer *w)
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

void sched_writer_counters(struct sched_writer *w, const struct sched_machine *m)
{
	for (int i = 0; i < SONDE_SCHED_COUNTER_COUNT; i++)
		sched_writer_note(w, profile_add_comment(w->p, "sonde.sched.%s=%llu",
							 sched_counter_names[i],
							 (unsigned long long)m->counters[i]));
	sched_writer_note(
		w, profile_add_comment(w->p, "sonde.sched.torn=%llu", (unsigned long long)m->torn));
	sched_writer_note(w, profile_add_comment(w->p, "sonde.sched.read_errors=%llu",
						 (unsigned long long)m->read_errors));
	sched_writer_note(w, profile_add_comment(w->p, "sonde.sched.lost=%llu",
						 (unsigned long long)sched_books_lost(w->books)));
}

void sched_writer_init(struct sched_writer *w, const struct sched_books *b, uint64_t realtime_ns,
		       size_t max_bytes)
{
	*w = (struct sched_writer){ .books = b };
	map_init(&w->names, sizeof(struct process_key), SONDE_COMM_LEN, MAX_PROCESSES);
	w->err = profile_new(max_bytes, &w->p);
	if (w->err)
		return;
	w->p->duration_ns = (int64_t)sched_books_duration(b);
	w->p->time_ns = (int64_t)realtime_ns - w->p->duration_ns;
	collect_names(w);
}

int sched_writer_fini(struct sched_writer *w, struct profile **ret_profile)
{
	map_fini(&w->names);
	if (w->err)
		profile_free(w->p);
	else
		*ret_profile = w->p;
	return w->err;
}
