/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: records of the ring buffer. What event_decode hands on lies within the record
 * and keeps the bounds that the rest of the program counts on.
 */
#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "agent/collect/events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every byte of it, so that the sanitizer looks at each. */
static uint64_t sum_of(const void *bytes, size_t size)
{
	const uint8_t *p = bytes;
	uint64_t sum = 0;

	while (size--)
		sum = sum * 31 + *p++;
	return sum;
}

static void check_within(const void *part, size_t part_size, const uint8_t *record, size_t size)
{
	const uint8_t *p = part;

	assert(p >= record && part_size <= size && (size_t)(p - record) <= size - part_size);
	sum_of(part, part_size);
}

static void check_path(const struct path_names *path, const uint8_t *record, size_t size)
{
	char out[PATH_MAX], small[16];
	size_t len;

	assert(path->count <= SONDE_MAX_PATH_NAMES);
	check_within(path->names, path->size, record, size);
	len = path_names_join(path, out, sizeof(out));
	assert(len < sizeof(out) && strlen(out) == len && (len == 0 || out[0] == '/'));
	len = path_names_join(path, small, sizeof(small));
	assert(len < sizeof(small) && strncmp(small, out, len) == 0);
}

static void check(const struct event *event, const uint8_t *record, size_t size)
{
	switch (event->type) {
	case SONDE_RECORD_USER_STACK:
		assert(event->user_stack.count <= SONDE_MAX_FRAMES);
		check_within(event->user_stack.frames,
			     event->user_stack.count * sizeof(struct sonde_frame), record, size);
		break;
	case SONDE_RECORD_KERNEL_STACK:
		assert(event->kernel_stack.count <= SONDE_MAX_KERNEL_FRAMES);
		check_within(event->kernel_stack.addrs, event->kernel_stack.count * sizeof(__u64),
			     record, size);
		break;
	case SONDE_RECORD_PROCESS:
		check_within(event->process, sizeof(*event->process), record, size);
		break;
	case SONDE_RECORD_THREAD_NAME:
		check_within(event->thread_name, sizeof(*event->thread_name), record, size);
		break;
	case SONDE_RECORD_CGROUP:
		check_path(&event->cgroup.v2, record, size);
		check_path(&event->cgroup.v1, record, size);
		break;
	case SONDE_RECORD_FILE:
		check_within(event->file.record, offsetof(struct sonde_file, names), record, size);
		check_path(&event->file.path, record, size);
		break;
	}
}

/* The size field is seldom right by chance: the record is also tried with its true size. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *record = malloc(size ? size : 1);
	uint32_t true_size = (uint32_t)size;
	struct event event;

	memcpy(record, data, size);
	if (event_decode(record, size, &event) == 0)
		check(&event, record, size);
	if (size >= sizeof(struct sonde_record)) {
		memcpy(record + offsetof(struct sonde_record, size), &true_size, sizeof(true_size));
		if (event_decode(record, size, &event) == 0)
			check(&event, record, size);
	}
	free(record);
	return 0;
}
