/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many requests and bytes a node sends: windows of 50 containers with three services of four
 * processes each, made from a model, through the real encoders. Each service has call paths of its
 * own in its program and shares those of libc and the kernel; half of the samples are at one path
 * in ten. Light windows go together, by the sender's own rules. Prints one line
 * for each load (of those whose name holds the argument, if there is one) and sink; not a test.
 *
 * volume GROUP FILE...: the same of real windows, a minute each (pprof files of the agent's store, in
 * order), of which samples in cgroups whose path holds GROUP count; see tests/bench/idle_fleet.py.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/export/gather.h"
#include "agent/export/sink.h"
#include "agent/store/chunk.h"
#include "base/file.h"
#include "base/map.h"
#include "proto/compress.h"
#include "proto/merge.h"
#include "proto/pprof.h"

enum {
	CONTAINERS = 50,
	SERVICES = 3,
	PROCESSES = 4,
	PATHS = 400,
	DEPTH = 24,
	MINUTES = 10,
	PER_HOUR = 60 / MINUTES,
	SINKS = 3
};

static uint64_t seed = 1;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static uint32_t text(struct profile *p, const char *s)
{
	return (uint32_t)profile_string(p, s);
}

/* A function in a file; names look like names of C++, not like noise. */
static uint32_t location(struct profile *p, const char *file, const char *kind, unsigned number)
{
	static const char *const words[] = { "Handle", "Request", "Parse",  "Buffer",
					     "Cache",  "Lookup",  "Write",  "Queue",
					     "Json",   "Route",   "Encode", "Session" };
	struct profile_mapping mapping = { .filename = text(p, file) };
	struct profile_function function = { 0 };
	struct profile_line line = { 0 };
	char name[128], id[48];
	uint64_t hash = hash_bytes(file, strlen(file));

	snprintf(id, sizeof(id), "%016" PRIx64 "%016" PRIx64 "%08x", hash, hash * 31,
		 number / 1000);
	mapping.build_id = text(p, id);
	snprintf(name, sizeof(name), "%s::%s%s%u::%s", kind, words[number % 12],
		 words[number / 12 % 12], number, words[number / 144 % 12]);
	function.name = function.system_name = text(p, name);
	line.function_id = (uint32_t)profile_add_function(p, &function);
	return (uint32_t)profile_add_location(p, (uint32_t)profile_add_mapping(p, &mapping),
					      0x1000 + number * 64ULL, &line, 1);
}

/* Path `rank` of a service: shared roots, its own middle, often libc or the kernel at the leaf. */
static void add_path(struct profile *p, unsigned service, unsigned rank,
		     const struct profile_label *labels, size_t label_count, int64_t count)
{
	uint32_t stack[DEPTH];
	int64_t values[2] = { count, count * (int64_t)p->period };
	char file[64], kind[32];

	snprintf(file, sizeof(file), "/usr/bin/service-%u", service);
	snprintf(kind, sizeof(kind), "svc%u", service);
	for (unsigned i = 0; i < DEPTH; i++) {
		unsigned split = rank >> (i / 3); /* near the root paths are the same */

		if (i < 3 && rank % 3 == 0)
			stack[i] = location(p, "[kernel.kallsyms]", "sys", rank % 60 + i);
		else if (i < 4 && rank % 3 == 1)
			stack[i] = location(p, "/usr/lib/libc.so.6", "std", rank % 90 + i);
		else
			stack[i] = location(p, file, kind, split * DEPTH + i);
	}
	profile_add_sample(p, stack, DEPTH, values, labels, label_count);
}

/* A node's load: CPUs in use by the first containers together, and by each of the others. */
struct load {
	const char *what;
	unsigned busy, idle;
	double busy_cpus, idle_cpus;
	int64_t hz;
};

static void add_samples(struct profile *p, unsigned number, double *due)
{
	unsigned service = number / PROCESSES;
	struct profile_label labels[3];
	char container[80], comm[32];
	uint64_t id = hash_bytes(&(unsigned){ service / SERVICES }, sizeof(unsigned));

	snprintf(container, sizeof(container),
		 "%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "%016" PRIx64, id, id * 3, id * 5,
		 id * 7);
	snprintf(comm, sizeof(comm), "service-%u", service % SERVICES);
	labels[0] = (struct profile_label){ .key = text(p, "comm"), .str = text(p, comm) };
	labels[1] = (struct profile_label){ .key = text(p, "container_id"),
					    .str = text(p, container) };
	labels[2] = (struct profile_label){ .key = text(p, "pid"), .num = (int64_t)number + 1000 };
	while (*due >= 1 || (*due > 0 && (double)(next_random() % 1000000) / 1e6 < *due)) {
		unsigned among = next_random() % 2 ? PATHS / 10 : PATHS;

		add_path(p, service % SERVICES, (unsigned)(next_random() % among), labels, 3, 1);
		*due -= 1;
	}
}

/* One minute; samples are shared out evenly among the processes of a kind. */
static struct profile *window(const struct load *load, int minute)
{
	const unsigned each = SERVICES * PROCESSES;
	double busy_due = 0, idle_due;
	struct profile *p;

	profile_new(512 << 20, &p);
	profile_add_type(p, "samples", "count");
	profile_add_type(p, "cpu", "nanoseconds");
	p->period_type = p->types[1];
	p->period = 1000000000 / load->hz;
	p->time_ns = (1700000000LL + 60 * minute) * 1000000000;
	p->duration_ns = 60000000000;
	for (unsigned n = 0; n < load->busy * each; n++) {
		busy_due += load->busy_cpus * (double)load->hz * 60 / (load->busy * each);
		add_samples(p, n, &busy_due);
	}
	for (unsigned n = 0; n < load->idle * each; n++) {
		/* Less than one sample a minute: now and then. */
		idle_due = load->idle_cpus * (double)load->hz * 60 / each;
		add_samples(p, load->busy * each + n, &idle_due);
	}
	return p;
}

/* Requests and bytes for one window, halved as the sender does. */
static void send(const struct sink_type *sink, struct export_batch batch, uint64_t *requests,
		 uint64_t *bytes)
{
	struct buf plain, packed;
	int err;

	buf_init(&plain, batch.limits.request_bytes);
	buf_init(&packed, 2 * batch.limits.request_bytes);
	err = sink->encode(&batch, &plain);
	if (err) {
		struct export_batch half = batch;

		half.end = batch.first + (batch.end - batch.first) / 2;
		send(sink, half, requests, bytes);
		half.first = half.end;
		half.end = batch.end;
		send(sink, half, requests, bytes);
	} else {
		++*requests;
		if (sink->gzip)
			compress_put(COMPRESS_GZIP, plain.data, plain.len, &packed);
		*bytes += sink->gzip ? packed.len : plain.len;
	}
	buf_fini(&plain);
	buf_fini(&packed);
}

struct sums {
	uint64_t requests[SINKS], bytes[SINKS];
	int64_t samples;
};

static const struct sink_type *const sinks[SINKS] = { &sink_otlp, &sink_parca, &sink_pyroscope };

static void deliver(const struct profile *p, struct sums *sums)
{
	static const struct export_identity identity = { .node = "node-1", .version = "1" };
	struct series_list list;

	series_split(p, 512, &list);
	for (int i = 0; i < SINKS && p->sample_count; i++) {
		struct export_batch batch = {
			.p = p,
			.series = &list,
			.end = p->sample_count,
			.identity = &identity,
			.limits = { 4 << 20, 2 << 20, sinks[i]->max_samples ?: SIZE_MAX },
		};

		send(sinks[i], batch, &sums->requests[i], &sums->bytes[i]);
	}
	series_list_fini(&list);
}

static size_t chunk_bytes(const struct profile *p)
{
	struct buf chunk;
	size_t len;

	buf_init(&chunk, 64 << 20);
	chunk_encode(p, &chunk);
	len = chunk.len;
	buf_fini(&chunk);
	return len;
}

/* Where windows come from: the n-th, or NULL behind the last. */
typedef struct profile *(*window_fn)(const void *context, int n);

static void add_window(struct profile **together, struct profile *p)
{
	if (*together) {
		profile_merge(*together, p);
		profile_free(p);
	} else {
		*together = p;
	}
}

static void deliver_together(struct profile **together, struct sums *sums)
{
	if (*together)
		deliver(*together, sums);
	profile_free(*together);
	*together = NULL;
}

/* All windows, up to MINUTES of them in one go where they are light. */
static struct sums run(window_fn next, const void *context, bool gather)
{
	struct profile *together = NULL, *p;
	struct sums sums = { 0 };
	int count = 0;

	for (int n = 0; (p = next(context, n)); n++) {
		bool light = gather && gather_is_light(p, chunk_bytes(p));

		for (size_t i = 0; i < p->sample_count; i++)
			sums.samples += p->samples[i].values[0];
		if (count == MINUTES || !light) {
			deliver_together(&together, &sums);
			count = 0;
		}
		add_window(&together, p);
		count = light ? count + 1 : MINUTES;
	}
	deliver_together(&together, &sums);
	return sums;
}

static struct profile *made_window(const void *context, int n)
{
	return n < MINUTES ? window(context, n) : NULL;
}

static void show(const struct load *load, bool gather)
{
	struct sums sums;

	seed = 1;
	sums = run(made_window, load, gather);

	for (int i = 0; i < SINKS; i++)
		printf("%-42s %2" PRId64 " Hz %-8s %7" PRId64 " samples/h  %-9s %3" PRIu64
		       " requests/h %9.1f KB/h %8.2f KB/h and container\n",
		       load->what, load->hz, gather ? "gathered" : "apart",
		       PER_HOUR * sums.samples, sinks[i]->name, PER_HOUR * sums.requests[i],
		       PER_HOUR * (double)sums.bytes[i] / 1e3,
		       PER_HOUR * (double)sums.bytes[i] / 1e3 / (load->busy + load->idle));
}

/* ---- real windows ---- */

struct windows {
	const char *group;
	char **paths;
	int count;
};

static bool is_of_group(const struct profile *p, const struct profile_sample *s, const char *group)
{
	for (size_t i = 0; i < s->label_count; i++) {
		if (s->labels[i].str && strcmp(profile_text(p, s->labels[i].key), "cgroup") == 0 &&
		    strstr(profile_text(p, s->labels[i].str), group))
			return true;
	}
	return false;
}

static struct profile *read_profile(const char *path)
{
	struct profile *p = NULL;
	char reason[256] = "";
	struct buf packed, plain;

	buf_init(&packed, 64 << 20);
	buf_init(&plain, 512 << 20);
	if (file_read_path(path, &packed) ||
	    decompress(COMPRESS_GZIP, packed.data, packed.len, &plain) ||
	    pprof_read(plain.data, plain.len, 512 << 20, &p, reason, sizeof(reason))) {
		fprintf(stderr, "%s: cannot be read %s\n", path, reason);
		exit(1);
	}
	buf_fini(&packed);
	buf_fini(&plain);
	return p;
}

static struct profile *stored_window(const void *context, int n)
{
	const struct windows *w = context;
	struct profile *whole, *part;
	size_t count = 0;
	uint32_t *kept;

	if (n == w->count)
		return NULL;
	whole = read_profile(w->paths[n]);
	kept = calloc(whole->sample_count + 1, sizeof(*kept));
	for (uint32_t i = 0; i < whole->sample_count; i++) {
		if (is_of_group(whole, &whole->samples[i], w->group))
			kept[count++] = i;
	}
	if (profile_extract(whole, kept, count, PROFILE_ALL_LABELS, 512 << 20, &part))
		abort();
	free(kept);
	profile_free(whole);
	return part;
}

static void show_windows(const struct windows *w)
{
	for (int gather = 0; gather < 2; gather++) {
		struct sums sums = run(stored_window, w, gather);

		for (int i = 0; i < SINKS; i++)
			printf("%-8s %d windows, %" PRId64 " samples  %-9s %3" PRIu64
			       " requests %9.2f KB\n", gather ? "gathered" : "apart", w->count,
			       sums.samples, sinks[i]->name, sums.requests[i],
			       (double)sums.bytes[i] / 1e3);
	}
}

int main(int argc, char **argv)
{
	static const struct load loads[] = {
		{ "busy: 50 containers use 4 CPUs", 50, 0, 4, 0, 99 },
		{ "busy: 50 containers use 4 CPUs", 50, 0, 4, 0, 19 },
		{ "quiet: 50 containers use 0.4 CPUs", 50, 0, 0.4, 0, 99 },
		{ "quiet: 50 containers use 0.4 CPUs", 50, 0, 0.4, 0, 19 },
		{ "mixed: 10 containers use 4 CPUs", 10, 0, 4, 0, 19 },
		{ "mixed: the same and 40 idle ones", 10, 40, 4, 1e-4, 19 },
		{ "idle: 50 containers, 0.01 % of a CPU each", 0, 50, 0, 1e-4, 99 },
		{ "idle: 50 containers, 0.01 % of a CPU each", 0, 50, 0, 1e-4, 19 },
		{ "idle: 50 containers, 0.1 % of a CPU each", 0, 50, 0, 1e-3, 19 },
	};

	const struct windows stored = { argv[1], argv + 2, argc - 2 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 2) {
		show_windows(&stored);
		return 0;
	}
	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
		if (argc > 1 && !strstr(loads[i].what, argv[1]))
			continue;
		if (!loads[i].busy)
			show(&loads[i], false);
		show(&loads[i], true);
	}
	return 0;
}
