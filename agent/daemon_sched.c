/* SPDX-License-Identifier: Apache-2.0 */
/* See daemon_sched.h. */
#include "agent/daemon_sched.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "agent/daemon_sched_private.h"
#include "agent/log.h"
#include "agent/resolve/container.h"
#include "agent/sched/sched_profile.h"
#include "agent/version.h"
#include "base/file.h"
#include "base/parse.h"

enum {
	MIN_THREADS = 4096, /* room for them, if it goes by how many there are */
	MAX_THREADS = 65536,
	MAX_ROWS = 4096,
	PROFILE_BYTES = 16 << 20,
	STAT_BYTES = 4 << 20,
};

/* ---- small facts from /proc ---- */

/* Twice as many as there are now: the fourth field of loadavg, running/all. */
static uint64_t choose_threads(void)
{
	uint64_t threads = 0;
	const char *slash;
	struct buf text;

	buf_init(&text, 256);
	slash = file_read_path("/proc/loadavg", &text) == 0 && buf_cstr(&text)
			? strchr(buf_cstr(&text), '/')
			: NULL;
	if (slash)
		parse_digits(slash + 1, slash + 1 + strlen(slash + 1), 10, &threads);
	buf_fini(&text);
	threads *= 2;
	return threads < MIN_THREADS ? MIN_THREADS : threads > MAX_THREADS ? MAX_THREADS : threads;
}

/* Of all CPUs since boot; 0: not told. */
static uint64_t count_switches(void)
{
	static const char key[] = "\nctxt ";
	uint64_t switches = 0;
	const char *at;
	struct buf text;

	buf_init(&text, STAT_BYTES);
	at = file_read_path("/proc/stat", &text) == 0 && buf_cstr(&text)
		     ? strstr(buf_cstr(&text), key)
		     : NULL;
	if (at)
		parse_digits(at + strlen(key), at + strlen(at), 10, &switches);
	buf_fini(&text);
	return switches;
}

/* ---- whose work it is ---- */

static void copy_text(char *to, struct container_text text)
{
	size_t len = text.len < SCHED_OWNER_TEXT - 1 ? text.len : SCHED_OWNER_TEXT - 1;

	memcpy(to, text.at, len);
}

static void find_owner(const char *path, struct sched_owner *ret_owner)
{
	struct container c = { .kind = CONTAINER_NONE };

	*ret_owner = (struct sched_owner){ 0 };
	if (!path)
		return;
	container_parse(path, strlen(path), &c);
	if (c.id.len)
		copy_text(ret_owner->container, c.id);
	if (c.unit.len)
		copy_text(ret_owner->unit, c.unit);
	strncpy(ret_owner->pod, c.pod_uid, sizeof(ret_owner->pod) - 1);
}

/* As the samples on a CPU have them. */
static void label_owner(struct sched_writer *w, const char *cgroup)
{
	struct sched_owner owner;

	find_owner(cgroup, &owner);
	if (owner.container[0])
		sched_writer_label(w, "container_id", owner.container, 0);
	if (owner.pod[0])
		sched_writer_label(w, "pod_uid", owner.pod, 0);
	if (owner.unit[0])
		sched_writer_label(w, "systemd_unit", owner.unit, 0);
}

/* ---- intervals ---- */

static void add_machine(struct daemon_sched *s)
{
	struct sched_machine m;

	sched_books_machine(s->books, &m);
	for (int i = 0; i < SONDE_SCHED_COUNTER_COUNT; i++)
		s->counters[i] += m.counters[i];
	s->torn += m.torn;
	s->read_errors += m.read_errors;
	s->runs += m.runs;
	s->bpf_ns += m.bpf_ns;
	s->threads = m.threads;
	s->untracked = m.untracked_threads;
}

/* The first snapshot of an accounting is where its books begin. */
static int begin(struct daemon_sched *s)
{
	struct sched_machine machine;
	int err;

	sched_books_forget(s->books);
	err = sched_collect_snapshot(s->collect, &machine);
	if (err)
		return err;
	sched_books_snapshot(s->books, &machine);
	add_machine(s);
	sched_books_clear(s->books);
	s->switches = count_switches();
	s->measured = clock_monotonic();
	s->starts++;
	return 0;
}

/* How many switches there were; if it was on, also what one cost. */
static void measure(struct daemon_sched *s, uint64_t spent_ns)
{
	uint64_t switches = count_switches(), more = switches - s->switches;
	nsec_t now = clock_monotonic();

	if (!switches || now <= s->measured)
		return;
	s->switches_per_second = (double)more * (double)NSEC_PER_SEC / (double)(now - s->measured);
	if (s->on && more)
		s->switch_ns = (double)spent_ns / (double)more;
	s->switches = switches;
	s->measured = now;
}

static int describe(struct profile *p)
{
	struct utsname host;
	int err;

	uname(&host);
	err = profile_add_comment(p, "sonde: %s", SONDE_VERSION);
	if (!err)
		err = profile_add_comment(p, "host: %s", host.nodename);
	if (!err)
		err = profile_add_comment(p, "kernel: %s %s", host.release, host.machine);
	return err ? err : profile_add_comment(p, "event: scheduler accounting, all threads");
}

static int take(struct daemon_sched *s, struct profile **ret_profile)
{
	struct sched_profile_options options = {
		.max_bytes = PROFILE_BYTES,
		.wall_only = true,
		.label = label_owner,
	};
	struct sched_machine machine;
	struct profile *p = NULL;
	int err = sched_collect_snapshot(s->collect, &machine);

	if (err)
		return err; /* the next one has it all: the books go on */
	options.realtime_ns = clock_realtime();
	sched_books_snapshot(s->books, &machine);
	sched_groups_add(s->groups, s->books, find_owner);
	add_machine(s);
	err = sched_profile_new(s->books, &options, &p);
	if (!err)
		err = describe(p);
	sched_books_clear(s->books);
	if (err)
		profile_free(p);
	else
		*ret_profile = p;
	return err;
}

int daemon_sched_take(struct daemon_sched *s, struct profile **ret_profile)
{
	uint64_t bpf_ns = s->bpf_ns;
	nsec_t cpu = clock_read(CLOCK_THREAD_CPUTIME_ID);
	int err = 0;

	*ret_profile = NULL;
	if (s->on)
		err = take(s, ret_profile);
	if (err)
		s->failures++;
	measure(s, s->bpf_ns - bpf_ns + clock_read(CLOCK_THREAD_CPUTIME_ID) - cpu);
	return err;
}

int daemon_sched_set(struct daemon_sched *s, bool on)
{
	int err = 0;

	if (on == s->on)
		return 0;
	if (on) {
		err = sched_collect_restart(s->collect);
		if (!err)
			err = begin(s);
	}
	if (!on || err)
		sched_collect_stop(s->collect);
	s->on = on && !err;
	return err;
}

bool daemon_sched_is_on(const struct daemon_sched *s)
{
	return s->on;
}

uint64_t daemon_sched_bpf_ns(const struct daemon_sched *s)
{
	return s->bpf_ns;
}

double daemon_sched_cost(const struct daemon_sched *s)
{
	return s->switch_ns * s->switches_per_second / (double)NSEC_PER_SEC;
}

uint64_t daemon_sched_map_bytes(const struct daemon_sched *s)
{
	return sched_collect_map_bytes(s->collect);
}

/* ---- life ---- */

static void on_ring(void *context)
{
	struct daemon_sched *s = context;
	int err = sched_collect_poll(s->collect);

	if (err)
		log_warn("scheduler accounting: ring buffer: %s; tried again", strerror(-err));
}

static void forget_cgroup(void *context, uint64_t id)
{
	struct daemon_sched *s = context;

	sched_collect_forget_cgroup(s->collect, id);
}

static int open_parts(struct daemon_sched *s, const struct daemon_sched_options *options,
		      char *reason, size_t size)
{
	struct sched_collect_options collect = { .max_threads = (uint32_t)s->max_threads };
	struct sched_books_options books = {
		.max_rows = MAX_ROWS,
		.max_threads = 2 * s->max_threads,
		.forget_cgroup = forget_cgroup,
		.context = s,
	};
	struct sched_handler handler = { sched_books_thread, sched_books_cgroup, NULL };
	int err = sched_books_new(&books, &s->books);

	if (!err)
		err = sched_groups_new(options->max_groups, &s->groups);
	handler.context = s->books;
	return err ? err : sched_collect_open(&collect, &handler, &s->collect, reason, size);
}

int daemon_sched_open(const struct daemon_sched_options *options, struct loop *loop,
		      struct daemon_sched **ret_sched, char *reason, size_t reason_size)
{
	struct daemon_sched *s = calloc(1, sizeof(*s));
	int err;

	if (!s) {
		snprintf(reason, reason_size, "out of memory");
		return -ENOMEM;
	}
	reason[0] = '\0';
	s->max_threads = options->max_threads ?: choose_threads();
	err = open_parts(s, options, reason, reason_size);
	if (!err)
		err = begin(s);
	if (!err)
		err = loop_add_fd(loop, sched_collect_fd(s->collect), on_ring, s);
	if (err) {
		if (!reason[0])
			snprintf(reason, reason_size, "%s", strerror(-err));
		daemon_sched_close(s);
		return err;
	}
	s->on = true;
	*ret_sched = s;
	return 0;
}

void daemon_sched_close(struct daemon_sched *s)
{
	if (!s)
		return;
	sched_collect_close(s->collect);
	sched_groups_free(s->groups);
	sched_books_free(s->books);
	free(s);
}
