/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What collecting hands to resolving: decoded records of the kernel side, and drained counts.
 * All pointers are borrowed from the record and valid only during the call that gets them.
 */
#ifndef AGENT_COLLECT_EVENTS_H
#define AGENT_COLLECT_EVENTS_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi.h"

/* A path as the kernel side packs it: `count` NUL-ended components, innermost first. */
struct path_names {
	const char *names;
	uint32_t size;
	uint32_t count;
};

struct event {
	enum sonde_record_type type;
	uint64_t id;
	union {
		struct {
			const struct sonde_frame *frames;
			uint32_t count;
		} user_stack;
		struct {
			const __u64 *addrs;
			uint32_t count;
		} kernel_stack;
		const struct sonde_process *process;
		const struct sonde_thread_name *thread_name;
		struct {
			struct path_names v2, v1; /* v1: no names if there is nothing to tell */
		} cgroup;
		struct {
			const struct sonde_file *record; /* all but `names` */
			struct path_names path;
		} file;
	};
};

/*
 * Decodes one ring buffer record. Checks every length and count against `size`: returns 0, or
 * -EBADMSG and leaves *ret_event alone. `bytes` must be aligned to 8.
 */
int event_decode(const void *bytes, size_t size, struct event *ret_event);

/*
 * Writes "/outer/.../inner" of a packed path into `out` (cut to size, always NUL-ended), without
 * the last (outermost) components whose name is empty. Returns the length written.
 */
size_t path_names_join(const struct path_names *path, char *out, size_t size);

#endif
