/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many requests and bytes a node sends: windows of 50 containers with three services of four
 * processes each, made from a model, through the real encoders. Each service has call paths of its
 * own in its program and shares those of libc and the kernel; how often a path is taken falls with
 * its rank. Prints one line for each load and sink; not a test.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/export/sink.h"
#include "base/map.h"
#include "proto/compress.h"

enum {
	CONTAINERS = 50,
	SERVICES = 3,
	PROCESSES = 4,
	PATHS = 400,
	DEPTH = 24,
	MINUTES = 6,
	PER_HOUR = 10
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

/* One minute: `samples` over all, shared out evenly; half of them at one path in ten. */
static struct profile *window(unsigned containers, double samples, int64_t hz, int minute)
{
	struct profile *p;
	double due = 0;

	profile_new(512 << 20, &p);
	profile_add_type(p, "samples", "count");
	profile_add_type(p, "cpu", "nanoseconds");
	p->period_type = p->types[1];
	p->period = 1000000000 / hz;
	p->time_ns = (1700000000LL + 60 * minute) * 1000000000;
	p->duration_ns = 60000000000;
	for (unsigned n = 0; n < containers * SERVICES * PROCESSES; n++) {
		unsigned service = n / PROCESSES;
		struct profile_label labels[3];
		char container[80], comm[32];
		uint64_t id = hash_bytes(&(unsigned){ service / SERVICES }, sizeof(unsigned));

		snprintf(container, sizeof(container),
			 "%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "%016" PRIx64, id, id * 3,
			 id * 5, id * 7);
		snprintf(comm, sizeof(comm), "service-%u", service % SERVICES);
		labels[0] = (struct profile_label){ .key = text(p, "comm"), .str = text(p, comm) };
		labels[1] = (struct profile_label){ .key = text(p, "container_id"),
						    .str = text(p, container) };
		labels[2] =
			(struct profile_label){ .key = text(p, "pid"), .num = (int64_t)n + 1000 };
		for (due += samples / (containers * SERVICES * PROCESSES); due >= 1; due--) {
			unsigned among = next_random() % 2 ? PATHS / 10 : PATHS;

			add_path(p, service % SERVICES, (unsigned)(next_random() % among), labels,
				 3, 1);
		}
		/* Less than one sample a minute: now and then. */
		if (due > 0 && (double)(next_random() % 1000000) / 1e6 < due) {
			add_path(p, service % SERVICES, (unsigned)(next_random() % PATHS), labels,
				 3, 1);
			due = 0;
		}
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

static void run(const char *what, unsigned containers, double samples, int64_t hz)
{
	static const struct sink_type *const sinks[] = { &sink_otlp, &sink_parca, &sink_pyroscope };
	static const struct export_identity identity = { .node = "node-1", .version = "1" };
	uint64_t requests[3] = { 0 }, bytes[3] = { 0 };

	for (int minute = 0; minute < MINUTES; minute++) {
		struct profile *p = window(containers, samples, hz, minute);
		struct series_list list;

		series_split(p, 512, &list);
		for (int i = 0; i < 3 && p->sample_count; i++) {
			struct export_batch batch = {
				.p = p,
				.series = &list,
				.end = p->sample_count,
				.identity = &identity,
				.limits = { 4 << 20, 2 << 20,
					    sinks[i]->max_samples ? sinks[i]->max_samples
								  : SIZE_MAX },
			};

			send(sinks[i], batch, &requests[i], &bytes[i]);
		}
		series_list_fini(&list);
		profile_free(p);
	}
	for (int i = 0; i < 3; i++)
		printf("%-28s %3" PRId64 " Hz %7.0f samples/window  %-9s %3" PRIu64
		       " requests/h %8.1f KB/h %7.2f KB/h and container\n",
		       what, hz, samples, sinks[i]->name, PER_HOUR * requests[i],
		       PER_HOUR * (double)bytes[i] / 1e3,
		       PER_HOUR * (double)bytes[i] / 1e3 / containers);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	/* Eight CPUs; samples a window = CPUs in use x Hz x 60. */
	run("busy: 4 CPUs in use", CONTAINERS, 4 * 99 * 60, 99);
	run("busy: 4 CPUs in use", CONTAINERS, 4 * 19 * 60, 19);
	run("quiet: 0.4 CPUs in use", CONTAINERS, 0.4 * 99 * 60, 99);
	run("quiet: 0.4 CPUs in use", CONTAINERS, 0.4 * 19 * 60, 19);
	run("idle: 0.01 % CPU a container", CONTAINERS, CONTAINERS * 1e-4 * 99 * 60, 99);
	run("idle: 0.01 % CPU a container", CONTAINERS, CONTAINERS * 1e-4 * 19 * 60, 19);
	return 0;
}
