/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of ring buffer records; see events.h. Nothing in a record is trusted. */
#include "agent/collect/events.h"

#include <errno.h>
#include <string.h>

/* A packed path must be exactly `count` NUL-ended strings in `size` bytes. */
static int decode_path(const char *names, size_t room, uint32_t size, uint32_t count,
		       struct path_names *ret_path)
{
	uint32_t seen = 0;

	if (size > room || count > SONDE_MAX_PATH_NAMES)
		return -EBADMSG;
	for (uint32_t at = 0; at < size; seen++) {
		size_t len = strnlen(names + at, size - at);

		if (len == size - at)
			return -EBADMSG;
		at += (uint32_t)len + 1;
	}
	if (seen != count)
		return -EBADMSG;
	*ret_path = (struct path_names){ .names = names, .size = size, .count = count };
	return 0;
}

static int decode_user_stack(const void *bytes, size_t size, struct event *event)
{
	const struct sonde_user_stack *stack = bytes;

	if (size < offsetof(struct sonde_user_stack, frames) || stack->count > SONDE_MAX_FRAMES ||
	    size - offsetof(struct sonde_user_stack, frames) <
		    stack->count * sizeof(stack->frames[0]))
		return -EBADMSG;
	event->user_stack.frames = stack->frames;
	event->user_stack.count = stack->count;
	return 0;
}

static int decode_kernel_stack(const void *bytes, size_t size, struct event *event)
{
	const struct sonde_kernel_stack *stack = bytes;

	if (size < offsetof(struct sonde_kernel_stack, addrs) ||
	    stack->count > SONDE_MAX_KERNEL_FRAMES ||
	    size - offsetof(struct sonde_kernel_stack, addrs) <
		    stack->count * sizeof(stack->addrs[0]))
		return -EBADMSG;
	event->kernel_stack.addrs = stack->addrs;
	event->kernel_stack.count = stack->count;
	return 0;
}

static int decode_process(const void *bytes, size_t size, struct event *event)
{
	const struct sonde_process *process = bytes;

	if (size < sizeof(*process))
		return -EBADMSG;
	event->process = process;
	return 0;
}

static int decode_thread_name(const void *bytes, size_t size, struct event *event)
{
	const struct sonde_thread_name *name = bytes;

	if (size < sizeof(*name))
		return -EBADMSG;
	event->thread_name = name;
	return 0;
}

static int decode_cgroup(const void *bytes, size_t size, struct event *event)
{
	const struct sonde_cgroup *cgroup = bytes;
	struct path_names *v2 = &event->cgroup.v2, *v1 = &event->cgroup.v1;
	uint32_t v2_size = 0;

	if (size < offsetof(struct sonde_cgroup, names) ||
	    cgroup->names_size > size - offsetof(struct sonde_cgroup, names))
		return -EBADMSG;
	/* Where the names under v2 end; that all are NUL-ended is then checked of each path. */
	for (uint32_t i = 0; i < cgroup->v2_count && v2_size < cgroup->names_size; i++)
		v2_size +=
			(uint32_t)strnlen(cgroup->names + v2_size, cgroup->names_size - v2_size) +
			1;
	if (v2_size > cgroup->names_size ||
	    decode_path(cgroup->names, cgroup->names_size, v2_size, cgroup->v2_count, v2))
		return -EBADMSG;
	return decode_path(cgroup->names + v2_size, cgroup->names_size - v2_size,
			   cgroup->names_size - v2_size, cgroup->v1_count, v1);
}

static int decode_file(const void *bytes, size_t size, struct event *event)
{
	const struct sonde_file *file = bytes;

	if (size < offsetof(struct sonde_file, names))
		return -EBADMSG;
	event->file.record = file;
	return decode_path(file->names, size - offsetof(struct sonde_file, names), file->names_size,
			   file->name_count, &event->file.path);
}

int event_decode(const void *bytes, size_t size, struct event *ret_event)
{
	static int (*const decoders[])(const void *, size_t, struct event *) = {
		[SONDE_RECORD_USER_STACK] = decode_user_stack,
		[SONDE_RECORD_KERNEL_STACK] = decode_kernel_stack,
		[SONDE_RECORD_PROCESS] = decode_process,
		[SONDE_RECORD_THREAD_NAME] = decode_thread_name,
		[SONDE_RECORD_CGROUP] = decode_cgroup,
		[SONDE_RECORD_FILE] = decode_file,
	};
	const struct sonde_record *head = bytes;
	struct event event = { 0 };
	int err;

	if (size < sizeof(*head) || head->size > size || head->size < sizeof(*head) ||
	    head->type == 0 || head->type >= sizeof(decoders) / sizeof(decoders[0]))
		return -EBADMSG;
	event.type = head->type;
	event.id = head->id;
	err = decoders[head->type](bytes, head->size, &event);
	if (err)
		return err;
	*ret_event = event;
	return 0;
}

size_t path_names_join(const struct path_names *path, char *out, size_t size)
{
	const char *starts[SONDE_MAX_PATH_NAMES];
	uint32_t count = 0;
	size_t len = 0;

	for (uint32_t at = 0; at < path->size && count < path->count;) {
		starts[count++] = path->names + at;
		at += (uint32_t)strlen(path->names + at) + 1;
	}
	while (count > 0 && starts[count - 1][0] == 0)
		count--;
	while (count-- > 0) {
		size_t name_len = strlen(starts[count]);

		if (len + name_len + 2 > size)
			break;
		out[len++] = '/';
		memcpy(out + len, starts[count], name_len);
		len += name_len;
	}
	if (size)
		out[len] = 0;
	return len;
}
