/* SPDX-License-Identifier: Apache-2.0 */
/* See lock_view.h. */
#include "cli/lock_view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "cli/report_private.h"

enum { MAX_SITES = 1 << 20, NO_TYPE = -1, FRAME_WIDTH = 32 };

/* Strings of the profile; 0: none. Without padding: a map key. */
struct site_key {
	uint32_t comm, lock, site, file;
	int64_t line;
};

struct site {
	struct site_key key;
	int64_t total, count, longest;
};

struct columns {
	int time, waits, longest;
};

struct strings {
	uint32_t reason, lock, idle, comm, pid;
};

/* What stands between a program and the kernel's futex: beginnings of names. */
static const char *const internals[] = {
	"__GI___lll_", "__lll_", "lll_", "___pthread_", "__pthread_", "pthread_", "__futex",
	"__GI___futex", "futex_", "syscall", "__GI___pthread", "sem_", "__new_sem_", "do_futex_wait", "__GI___sem",
	"std::mutex::", "std::__", "__gthread_", "std::unique_lock", "std::lock_guard",
	"std::condition_variable", "std::recursive_mutex::", "std::shared_mutex::", "runtime.", "sync.",
	"internal/sync.", "internal/poll.", "PyThread_", "take_gil", "PyEval_RestoreThread",
	"_PyEval_", "Unsafe_Park", "Parker::", "ObjectMonitor::", "flock", "__GI___flock", NULL,
};

static int find_type(const struct profile *p, const char *name)
{
	for (size_t i = 0; i < p->type_count; i++) {
		if (strcmp(profile_text(p, p->types[i].type), name) == 0)
			return (int)i;
	}
	return NO_TYPE;
}

static uint32_t find_string(const struct profile *p, const char *text)
{
	for (size_t i = 1; i < p->strings.count; i++) {
		if (strcmp(profile_text(p, (uint32_t)i), text) == 0)
			return (uint32_t)i;
	}
	return 0;
}

static const struct profile_label *find_label(const struct profile_sample *sample, uint32_t key)
{
	for (size_t i = 0; key && i < sample->label_count; i++) {
		if (sample->labels[i].key == key)
			return &sample->labels[i];
	}
	return NULL;
}

static bool is_internal(const char *name)
{
	for (const char *const *begin = internals; *begin; begin++) {
		if (strncmp(name, *begin, strlen(*begin)) == 0)
			return true;
	}
	return false;
}

static bool is_kernel(const struct profile *p, const struct profile_location *location)
{
	const char *file = "";

	if (location->mapping_id)
		file = profile_text(p, p->mappings[location->mapping_id - 1].filename);
	return file[0] == '[' && strcmp(file, "[vdso]") && strcmp(file, "[jit]") &&
	       strcmp(file, "[anon]");
}

/*
 * From the inside out: the outermost function of the library that the lock belongs to, and the first that is
 * not of it, with its line where that is known.
 */
static void find_site(const struct profile *p, const struct profile_sample *sample,
		      struct site_key *key)
{
	for (size_t i = 0; i < sample->location_count; i++) {
		const struct profile_location *at = &p->locations[sample->locations[i] - 1];

		if (is_kernel(p, at))
			continue;
		for (size_t k = 0; k < at->line_count; k++) {
			const struct profile_function *f =
				&p->functions[at->lines[k].function_id - 1];

			if (is_internal(profile_text(p, f->name))) {
				key->lock = f->name;
				continue;
			}
			key->site = f->name;
			key->file = f->filename;
			key->line = at->lines[k].line;
			return;
		}
		if (!at->line_count && at->mapping_id) {
			key->site = p->mappings[at->mapping_id - 1].filename;
			return;
		}
	}
}

static bool is_wanted(const struct profile *p, const struct lock_view *view,
		      const struct strings *s, const struct profile_sample *sample)
{
	const struct profile_label *reason = find_label(sample, s->reason),
				   *comm = find_label(sample, s->comm),
				   *pid = find_label(sample, s->pid);
	char number[32];

	if (!reason || reason->str != s->lock || (!view->idle && find_label(sample, s->idle)))
		return false;
	snprintf(number, sizeof(number), "%" PRId64, pid ? pid->num : 0);
	return report_matches(view->comm, comm ? profile_text(p, comm->str) : "-", false) &&
	       report_matches(view->pid, number, false);
}

static int add_sample(const struct profile *p, const struct strings *s, const struct columns *c,
		      const struct profile_sample *sample, struct map *sites)
{
	const struct profile_label *comm = find_label(sample, s->comm);
	struct site_key key = { .comm = comm ? comm->str : 0 };
	struct site *site;

	find_site(p, sample, &key);
	if (map_add(sites, &key, &site) < 0)
		return -ENOMEM;
	site->key = key;
	site->total = report_add(site->total, sample->values[c->time]);
	site->count = report_add(site->count, sample->values[c->waits]);
	if (site->longest < sample->values[c->longest])
		site->longest = sample->values[c->longest];
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct site *x = a, *y = b;

	return (x->total < y->total) - (x->total > y->total);
}

static void put_time(struct buf *out, int64_t ns)
{
	struct buf text;

	buf_init(&text, 64);
	report_put_value(&text, ns, "nanoseconds");
	buf_printf(out, "%12s", buf_cstr(&text) ? buf_cstr(&text) : "");
	buf_fini(&text);
}

static void print_site(const struct profile *p, const struct site *site, struct buf *out)
{
	const char *file = profile_text(p, site->key.file), *name = strrchr(file, '/');

	put_time(out, site->total);
	buf_printf(out, " %9" PRId64, site->count);
	put_time(out, site->count ? site->total / site->count : site->total);
	put_time(out, site->longest);
	buf_printf(out, "  %-15s  %-*s  %s", profile_text(p, site->key.comm), FRAME_WIDTH,
		   site->key.lock ? profile_text(p, site->key.lock) : "-",
		   site->key.site ? profile_text(p, site->key.site) : "-");
	if (*file)
		buf_printf(out, " (%s:%" PRId64 ")", name ? name + 1 : file, site->key.line);
	buf_put_byte(out, '\n');
}

static int print_sites(const struct profile *p, const struct lock_view *view, const struct map *sites,
		       struct buf *out)
{
	struct site *sorted = calloc(sites->count + 1, sizeof(*sorted));
	const struct site *site;
	size_t cursor = 0, n = 0;

	if (!sorted)
		return -ENOMEM;
	while (map_next(sites, &cursor, NULL, &site))
		sorted[n++] = *site;
	qsort(sorted, n, sizeof(*sorted), compare);
	buf_printf(out, "%12s %9s%12s%12s  %-15s  %-*s  %s\n", "Waited", "Waits", "Average", "Longest",
		   "Command", FRAME_WIDTH, "Waits in", "Called from");
	for (size_t i = 0; i < n && (!view->rows || i < view->rows); i++)
		print_site(p, &sorted[i], out);
	if (view->rows && n > view->rows)
		buf_printf(out, "... and %zu more (--rows 0 shows all)\n", n - view->rows);
	free(sorted);
	return buf_error(out);
}

int lock_view_print(const struct profile *p, const struct lock_view *view, struct buf *out)
{
	struct strings s = { find_string(p, "reason"), find_string(p, "lock"),
			     find_string(p, "idle"), find_string(p, "comm"),
			     find_string(p, "pid") };
	struct columns c = { find_type(p, "off_cpu"), find_type(p, "waits"),
			     find_type(p, "longest") };
	struct map sites;
	int err = 0;

	if (c.time == NO_TYPE)
		c.time = find_type(p, "wall");
	if (c.time == NO_TYPE || c.waits == NO_TYPE || c.longest == NO_TYPE)
		return -EINVAL;
	map_init(&sites, sizeof(struct site_key), sizeof(struct site), MAX_SITES);
	for (size_t i = 0; !err && i < p->sample_count; i++) {
		if (is_wanted(p, view, &s, &p->samples[i]))
			err = add_sample(p, &s, &c, &p->samples[i], &sites);
	}
	if (!err)
		err = print_sites(p, view, &sites, out);
	map_fini(&sites);
	return err;
}
