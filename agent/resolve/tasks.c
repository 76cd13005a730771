/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about tasks; see tasks.h. */
#include "agent/resolve/tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/text.h"

/* Bounds of the tables, those of the kernel side's map; KEEP in drains, as of stacks. */
enum { MAX_FACTS = 16384, KEEP = 10, MAX_TEXT = 4 * (SONDE_MAX_PATH_BYTES + SONDE_MAX_NAME) };

/* Of the JIT names of all processes. */
static const size_t MAX_JIT_BYTES = 128 << 20;

/* How long counts wait for a look: a reader that hangs would hold them for ever. */
static const nsec_t JIT_PATIENCE = 30 * NSEC_PER_SEC;

static void drop_jit(struct known_process *process)
{
	if (!process->jit_is_away)
		sym_jit_free(process->jit);
	process->jit = NULL;
	if (process->jit_total)
		*process->jit_total -= process->jit_bytes;
	process->jit_bytes = 0;
}

static void process_free(void *object)
{
	struct known_process *process = object;

	if (!process)
		return;
	drop_jit(process);
	free(process->comm);
	free(process);
}

static void cgroup_free(void *object)
{
	struct known_cgroup *cgroup = object;

	if (!cgroup)
		return;
	free(cgroup->path);
	free(cgroup->container_id);
	free(cgroup->pod_uid);
	free(cgroup->unit);
	free(cgroup);
}

void task_tables_init(struct task_tables *t, const char *proc_root, bool no_demangle,
		      struct reader *reader)
{
	*t = (struct task_tables){ .proc_root = proc_root,
				   .no_demangle = no_demangle,
				   .reader = reader };
	known_init(&t->processes, MAX_FACTS, KEEP, process_free);
	known_init(&t->threads, MAX_FACTS, KEEP, free);
	known_init(&t->cgroups, MAX_FACTS, KEEP, cgroup_free);
	map_init(&t->current, sizeof(uint32_t), sizeof(uint64_t), MAX_FACTS);
}

void task_tables_fini(struct task_tables *t)
{
	known_fini(&t->processes);
	known_fini(&t->threads);
	known_fini(&t->cgroups);
	map_fini(&t->current);
	free(t->refused.ids);
}

/* Foreign bytes as clean text of their own, or NULL. */
static char *clean_copy(const char *bytes, size_t len)
{
	struct buf text;
	char *copy = NULL;

	buf_init(&text, MAX_TEXT);
	text_escape(&text, bytes, len);
	if (buf_cstr(&text))
		copy = strdup((const char *)text.data);
	buf_fini(&text);
	return copy;
}

/* Remembers which record of a pid came last; forgets all pids rather than growing. */
static void note_current(struct task_tables *t, uint32_t tgid, uint64_t id)
{
	uint64_t *current;

	if (t->current.count >= MAX_FACTS)
		map_clear(&t->current);
	if (map_add(&t->current, &tgid, &current) >= 0)
		*current = id;
}

static int put_process(struct task_tables *t, const struct event *event, uint32_t now)
{
	const struct sonde_process *record = event->process;
	struct known_process *process;

	if (known_renew(&t->processes, event->id, now))
		return 0; /* a repeat would only lose the JIT names */
	process = calloc(1, sizeof(*process));
	if (!process)
		return -ENOMEM;
	process->tgid = record->tgid;
	process->tid = record->tid;
	process->ns_tgid = record->ns_tgid;
	process->euid = record->euid;
	process->start_ticks = record->start_ns / SONDE_NS_PER_TICK;
	process->comm = clean_copy(record->comm, strnlen(record->comm, sizeof(record->comm)));
	if (!process->comm) {
		process_free(process);
		return -ENOMEM;
	}
	note_current(t, process->tgid, event->id);
	return known_put(&t->processes, event->id, process, now);
}

static int put_text(struct known_table *table, uint64_t id, const char *text, size_t len,
		    uint32_t now)
{
	char *copy = clean_copy(text, len);

	return copy ? known_put(table, id, copy, now) : -ENOMEM;
}

/* A unit's name as it is: a backslash in it is systemd's own way of escaping. */
static char *unit_copy(struct container_text unit)
{
	for (size_t i = 0; i < unit.len; i++) {
		if (unit.at[i] <= ' ' || unit.at[i] > '~')
			return clean_copy(unit.at, unit.len);
	}
	return strndup(unit.at, unit.len);
}

static struct known_cgroup *cgroup_new(const char *path, size_t len, const struct container *what)
{
	struct known_cgroup *cgroup = calloc(1, sizeof(*cgroup));

	if (!cgroup)
		return NULL;
	cgroup->path = clean_copy(path, len);
	if (what->id.len)
		cgroup->container_id = clean_copy(what->id.at, what->id.len);
	if (what->pod_uid[0])
		cgroup->pod_uid = strdup(what->pod_uid);
	if (what->unit.len)
		cgroup->unit = unit_copy(what->unit);
	if (cgroup->path && !cgroup->container_id == !what->id.len &&
	    !cgroup->pod_uid == !what->pod_uid[0] && !cgroup->unit == !what->unit.len)
		return cgroup;
	cgroup_free(cgroup);
	return NULL;
}

static size_t join(const struct path_names *names, char *path, size_t size)
{
	size_t len = path_names_join(names, path, size);

	return len ? len : (size_t)snprintf(path, size, "/");
}

static int put_cgroup(struct task_tables *t, const struct event *event, uint32_t now)
{
	char v2_path[PATH_MAX], v1_path[PATH_MAX];
	size_t v2_len = join(&event->cgroup.v2, v2_path, sizeof(v2_path));
	size_t v1_len = join(&event->cgroup.v1, v1_path, sizeof(v1_path));
	struct known_cgroup *cgroup;
	struct container v2, v1;

	container_parse(v2_path, v2_len, &v2);
	container_parse(v1_path, v1_len, &v1);
	/* A v1 path without a meaning still tells more than the root. */
	if (container_tells_more(&v1, &v2) || (v2_len == 1 && v1_len > 1))
		cgroup = cgroup_new(v1_path, v1_len, &v1);
	else
		cgroup = cgroup_new(v2_path, v2_len, &v2);
	if (!cgroup)
		return -ENOMEM;
	cgroup->refused = cgroup_filter_is_set(&t->filter) &&
			  !cgroup_filter_wants(&t->filter, cgroup->container_id, cgroup->pod_uid);
	if (cgroup->refused)
		forget_list_add(&t->refused, event->id); /* without room: it is filtered here */
	return known_put(&t->cgroups, event->id, cgroup, now);
}

int task_tables_event(struct task_tables *t, const struct event *event, uint32_t now)
{
	const char *comm;

	switch (event->type) {
	case SONDE_RECORD_PROCESS:
		return put_process(t, event, now);
	case SONDE_RECORD_THREAD_NAME:
		comm = event->thread_name->comm;
		return put_text(&t->threads, event->id, comm, strnlen(comm, SONDE_COMM_LEN), now);
	case SONDE_RECORD_CGROUP:
		return put_cgroup(t, event, now);
	default:
		return -EINVAL;
	}
}

/* Whether what /proc says of the pid now is about the process of record `id`. */
static bool is_current(struct task_tables *t, uint64_t id, const struct known_process *process)
{
	const uint64_t *current = map_find(&t->current, &process->tgid);
	uint64_t ticks;

	return current && *current == id &&
	       proc_start_ticks(t->proc_root, process->tgid, &ticks) == 0 &&
	       ticks == process->start_ticks;
}

/*
 * The directory in /proc of the process, or, if its leader has exited, of the thread that was
 * sampled. An open one never becomes that of another process.
 */
static int open_proc(const struct task_tables *t, const struct known_process *process)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/%u", t->proc_root, process->tgid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstatat(fd, "root", &st, 0) == 0 || process->tid == process->tgid)
		return fd;
	close(fd);
	snprintf(path, sizeof(path), "%s/%u", t->proc_root, process->tid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void give_to_reader(struct task_tables *t, uint64_t id, struct known_process *process, int fd,
			   uint64_t from_ns)
{
	const struct read_job job = {
		.id = id, .fd = fd, .jit = process->jit, .from_ns = from_ns
	};

	if (!process->jit_reading)
		process->jit_reading = clock_monotonic();
	process->jit_is_away = reader_submit(t->reader, &job) == 0;
	process->jit_wants_look = !process->jit_is_away;
	if (process->jit_is_away)
		t->jits_away++;
	else
		close(fd);
}

void process_look_at_jit(struct task_tables *t, uint64_t id, struct known_process *process,
			 uint32_t now, uint64_t from_ns)
{
	bool is_first = process->jit_looked != now;
	int fd;

	process->jit_looked = now;
	/* What is being read may have been read before these samples were taken. */
	if (process->jit_is_away)
		process->jit_wants_look |= is_first;
	if (process->jit_is_away || (!is_first && !process->jit_wants_look))
		return;
	process->jit_wants_look = false;
	if (!process->jit &&
	    sym_jit_new(process->ns_tgid, process->euid, t->no_demangle, &process->jit))
		return;
	fd = open_proc(t, process);
	if (fd >= 0 && is_current(t, id, process)) {
		give_to_reader(t, id, process, fd, from_ns);
		return;
	}
	/* Of a process that has gone the old names stay: they are still right. */
	process->jit_reading = 0;
	if (fd >= 0)
		close(fd);
}

bool process_jit_is_read(const struct known_process *process)
{
	return process->jit_reading && clock_monotonic() - process->jit_reading < JIT_PATIENCE;
}

struct sym_jit *process_jit(const struct known_process *process)
{
	return process->jit_is_away || process->jit_wants_look ? NULL : process->jit;
}

void task_tables_take_jit(struct task_tables *t, const struct read_result *result, uint32_t now)
{
	struct known_process *process = known_get(&t->processes, result->id, now);
	struct sym_jit_bad bad = sym_jit_take_bad(result->jit);
	const uint64_t *current;

	t->jits_away--;
	t->jit_bad.map_lines += bad.map_lines;
	t->jit_bad.dump_records += bad.dump_records;
	/* The record may have gone, and come again, while it was read. */
	if (!process || !process->jit_is_away || process->jit != result->jit) {
		sym_jit_free(result->jit);
		return;
	}
	process->jit_is_away = false;
	if (!process->jit_wants_look)
		process->jit_reading = 0;
	t->jit_bytes -= process->jit_bytes;
	process->jit_total = &t->jit_bytes;
	process->jit_bytes = sym_jit_bytes(process->jit);
	t->jit_bytes += process->jit_bytes;
	/*
	 * Whoever comes last goes: what others have is in use, and tenants choose what they write.
	 * And after an exec the files that were read may be those of the new program.
	 */
	current = map_find(&t->current, &process->tgid);
	if (t->jit_bytes > MAX_JIT_BYTES || (current && *current != result->id))
		drop_jit(process);
}
