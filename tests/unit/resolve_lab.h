/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of resolving: events by hand, with this very program as the file that was sampled,
 * and a look into the profile that comes out.
 */
#ifndef TESTS_UNIT_RESOLVE_LAB_H
#define TESTS_UNIT_RESOLVE_LAB_H

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/resolve/resolve.h"

enum {
	LAB_TGID = 100,
	LAB_PROCESS = 1,
	LAB_THREAD = 2,
	LAB_CGROUP = 3,
	LAB_PERIOD = 10,
};

#define LAB_FILE (SONDE_FILE_ID_BIT | 42)

static struct resolver *resolver;
static struct profile *profile;

/* Where an address of this program lies in its file. */
static inline uint64_t lab_offset(const void *function)
{
	uint64_t addr = (uintptr_t)function, start, end, off = UINT64_MAX, found = UINT64_MAX;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &off) == 3 && addr >= start &&
		    addr < end)
			found = addr - start + off;
	}
	fclose(f);
	assert_int_not_equal(found, UINT64_MAX);
	return found;
}

/* This program as a file record, opened through /proc/<pid>/exe. */
static inline void lab_file_record(struct sonde_file *record)
{
	struct stat st;

	assert_int_equal(stat("/proc/self/exe", &st), 0);
	*record = (struct sonde_file){ .ino = st.st_ino,
				       .mtime_sec = st.st_mtim.tv_sec,
				       .mtime_nsec = (uint64_t)st.st_mtim.tv_nsec,
				       .tgid = (uint32_t)getpid(),
				       .tid = (uint32_t)getpid() };
}

static inline struct event lab_file_event(const struct sonde_file *record, uint64_t id)
{
	return (struct event){ .type = SONDE_RECORD_FILE,
			       .id = id,
			       .file = { .record = record, .path = { "program\0bin\0", 12, 2 } } };
}

/* Announced, but perhaps not read yet. */
static inline void lab_announce(void)
{
	struct sonde_file record;
	struct event event;

	lab_file_record(&record);
	event = lab_file_event(&record, LAB_FILE);
	resolver_event(resolver, &event);
}

/* Until all announced files are read. */
static inline void lab_settle(void)
{
	struct pollfd results = { .fd = resolver_fd(resolver), .events = POLLIN };
	struct resolver_totals t;
	int timeout_ms = 0; /* none is under way: what is read is there */

	do {
		resolver_poll(resolver);
		resolver_totals(resolver, &t);
		timeout_ms = t.files_queued ? -1 : 0;
	} while (poll(&results, 1, timeout_ms) > 0);
}

static inline void lab_file(void)
{
	lab_announce();
	lab_settle();
}

static inline void lab_process(uint64_t id, const char *comm)
{
	struct sonde_process record = { .tgid = LAB_TGID, .tid = LAB_TGID };
	struct event event = { .type = SONDE_RECORD_PROCESS, .id = id, .process = &record };

	strncpy(record.comm, comm, sizeof(record.comm) - 1);
	resolver_event(resolver, &event);
}

static inline void lab_thread(uint64_t id, const char *comm)
{
	struct sonde_thread_name record = { 0 };
	struct event event = { .type = SONDE_RECORD_THREAD_NAME, .id = id, .thread_name = &record };

	strncpy(record.comm, comm, sizeof(record.comm) - 1);
	resolver_event(resolver, &event);
}

static inline void lab_cgroup(uint64_t id)
{
	struct event event = { .type = SONDE_RECORD_CGROUP,
			       .id = id,
			       .cgroup.v2 = { "a.service\0system.slice\0\0", 24, 3 } };

	resolver_event(resolver, &event);
}

static inline void lab_user_stack(uint64_t id, const struct sonde_frame *frames, uint32_t count)
{
	struct event event = { .type = SONDE_RECORD_USER_STACK,
			       .id = id,
			       .user_stack = { frames, count } };

	resolver_event(resolver, &event);
}

/* `samples` samples of a process with all its facts. */
static inline void lab_count(uint64_t user_stack, uint64_t kernel_stack, uint64_t samples)
{
	const struct sonde_count_key key = { .process = LAB_PROCESS,
					     .cgroup = LAB_CGROUP,
					     .thread = LAB_THREAD,
					     .user_stack = user_stack,
					     .kernel_stack = kernel_stack,
					     .kind = SONDE_KIND_ON_CPU };
	const struct sonde_count count = { samples, samples * LAB_PERIOD };

	resolver_count(resolver, &key, &count);
}

/* Files are not read before resolver_start. */
static inline int lab_open_idle(void **state)
{
	const struct resolver_options options = { .proc_root = "/proc",
						  .symbol_bytes = 64 << 20 };

	if (resolver_new(&options, &resolver) || profile_new(64 << 20, &profile) ||
	    profile_add_type(profile, "samples", "count") < 0 ||
	    profile_add_type(profile, "cpu", "nanoseconds") < 0)
		return -1;
	resolver_begin(resolver, profile);
	lab_process(LAB_PROCESS, "proc");
	lab_thread(LAB_THREAD, "worker");
	lab_cgroup(LAB_CGROUP);
	return 0;
}

static inline int lab_open(void **state)
{
	return lab_open_idle(state) || resolver_start(resolver) ? -1 : 0;
}

static inline int lab_close(void **state)
{
	resolver_free(resolver);
	profile_free(profile);
	return 0;
}

static inline const struct profile_sample *lab_sample(size_t i)
{
	assert_true(i < profile->sample_count);
	return &profile->samples[i];
}

static inline const struct profile_location *lab_location(size_t sample, uint32_t frame)
{
	assert_true(frame < lab_sample(sample)->location_count);
	return &profile->locations[lab_sample(sample)->locations[frame] - 1];
}

/* The name of a frame; "" without one. */
static inline const char *lab_name(size_t sample, uint32_t frame)
{
	const struct profile_location *l = lab_location(sample, frame);

	if (l->line_count == 0)
		return "";
	return profile_text(profile, profile->functions[l->lines[0].function_id - 1].name);
}

static inline const char *lab_mapping(size_t sample, uint32_t frame)
{
	uint32_t id = lab_location(sample, frame)->mapping_id;

	return id ? profile_text(profile, profile->mappings[id - 1].filename) : "";
}

/* A label's text, or NULL. */
static inline const struct profile_label *lab_label(size_t sample, const char *key)
{
	const struct profile_sample *s = lab_sample(sample);

	for (uint32_t i = 0; i < s->label_count; i++) {
		if (strcmp(profile_text(profile, s->labels[i].key), key) == 0)
			return &s->labels[i];
	}
	return NULL;
}

static inline const char *lab_text(size_t sample, const char *key)
{
	const struct profile_label *label = lab_label(sample, key);

	return label ? profile_text(profile, label->str) : NULL;
}

#endif
