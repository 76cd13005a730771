/* SPDX-License-Identifier: Apache-2.0 */
/* BPF helpers over plain memory: kernel and user memory, the current task, probes; see host.h. */
#include "host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "host_private.h"

enum { KERNEL_BYTES = 48 << 20, MAX_RANGES = 64, NODE_ALIGN = 256 };

struct host host;

static _Alignas(NODE_ALIGN) __u8 kernel_memory[KERNEL_BYTES];
static size_t kernel_used;

static struct range {
	__u64 start, size;
	__u8 *bytes;
} unmapped[MAX_RANGES], user_ranges[MAX_RANGES];
static size_t unmapped_count, user_range_count;

void host_reset(void)
{
	memset(kernel_memory, 0, kernel_used);
	kernel_used = 0;
	unmapped_count = 0;
	user_unmap_all();
	host_maps_reset();
	host = (struct host){ .maple = true,
			      .pt_regs_helper = true,
			      .kernfs_rcu_parent = true,
			      .has_pids = true,
			      .has_memory = true,
			      .mtime = HOST_MTIME_SEC };
	*host_settings() = (struct sonde_settings){ .seed = 0x5eed,
						    .user_stacks = 1,
						    .kernel_stacks = 1,
						    .page_shift = 12 };
}

/* ---- memory ---- */

void *kernel_alloc(size_t size)
{
	void *p = kernel_memory + kernel_used;

	size = (size + NODE_ALIGN - 1) & ~(size_t)(NODE_ALIGN - 1);
	assert_true(size <= KERNEL_BYTES - kernel_used);
	kernel_used += size;
	return p;
}

void kernel_unmap(const void *host_pointer, size_t size)
{
	assert_true(unmapped_count < MAX_RANGES);
	unmapped[unmapped_count++] = (struct range){ (__u64)host_pointer, size, NULL };
}

void *user_map(__u64 addr, size_t size)
{
	assert_true(user_range_count < MAX_RANGES);
	user_ranges[user_range_count] = (struct range){ addr, size, calloc(1, size) };
	return user_ranges[user_range_count++].bytes;
}

void user_unmap_all(void)
{
	for (size_t i = 0; i < user_range_count; i++)
		free(user_ranges[i].bytes);
	user_range_count = 0;
}

/* The host's bytes behind a kernel address, or NULL where the kernel would fault. */
static const void *kernel_bytes(__u64 addr, __u64 size)
{
	__u64 at = addr & ~HOST_KERNEL_BIT, start = (__u64)kernel_memory;

	if (!(addr & HOST_KERNEL_BIT) || at < start || size > kernel_used ||
	    at - start > kernel_used - size)
		return NULL;
	for (size_t i = 0; i < unmapped_count; i++) {
		if (at < unmapped[i].start + unmapped[i].size && unmapped[i].start < at + size)
			return NULL;
	}
	return (const void *)at;
}

long bpf_probe_read_kernel(void *to, __u32 size, const void *from)
{
	const void *bytes;

	host.reads++;
	if (host.on_read)
		host.on_read((__u64)from, size);
	bytes = kernel_bytes((__u64)from, size);
	if (!bytes) {
		memset(to, 0, size);
		return -EFAULT;
	}
	memcpy(to, bytes, size);
	return 0;
}

/* Like the kernel: the length with the NUL; a string that is too long is cut and NUL-ended. */
long bpf_probe_read_kernel_str(void *to, __u32 size, const void *from)
{
	char *out = to;

	host.reads++;
	for (__u32 i = 0; i < size; i++) {
		const char *byte = kernel_bytes((__u64)from + i, 1);

		if (!byte) {
			memset(to, 0, size);
			return -EFAULT;
		}
		out[i] = *byte;
		if (!out[i])
			return i + 1;
	}
	out[size - 1] = 0;
	return size;
}

long bpf_probe_read_user(void *to, __u32 size, const void *from)
{
	__u64 addr = (__u64)from;

	for (size_t i = 0; i < user_range_count; i++) {
		const struct range *r = &user_ranges[i];

		if (addr >= r->start && addr - r->start < r->size &&
		    size <= r->size - (addr - r->start)) {
			memcpy(to, r->bytes + (addr - r->start), size);
			return 0;
		}
	}
	memset(to, 0, size);
	return -EFAULT;
}

/* ---- the current task ---- */

__u64 bpf_get_current_task(void)
{
	return kernel_addr(host.current);
}

struct task_struct *bpf_get_current_task_btf(void)
{
	return kernel_ptr(host.current);
}

/* Not where the arithmetic of regs_of_task looks, so that a test can tell the two apart. */
long bpf_task_pt_regs(struct task_struct *task)
{
	const struct task_struct *t = host_ptr((__u64)task);

	return (long)((__u64)t->stack + HOST_PT_REGS_OFFSET);
}

__u64 bpf_get_current_pid_tgid(void)
{
	return (__u64)host.current->tgid << 32 | (__u32)host.current->pid;
}

__u32 bpf_get_smp_processor_id(void)
{
	return 0;
}

__u64 bpf_ktime_get_ns(void)
{
	return ++host.now_ns;
}

long bpf_get_current_comm(void *to, __u32 size)
{
	assert_int_equal(size, sizeof(host.current->comm));
	memcpy(to, host.current->comm, size);
	return 0;
}

long bpf_get_stack(void *ctx, void *to, __u32 size, __u64 flags)
{
	size_t bytes;

	assert_int_equal(flags, 0);
	if (host.kernel_stack_count < 0)
		return host.kernel_stack_count;
	bytes = (size_t)host.kernel_stack_count * sizeof(__u64);
	assert_true(bytes <= size);
	memcpy(to, host.kernel_stack, bytes);
	memset((__u8 *)to + bytes, 0, size - bytes);
	return (long)bytes;
}

/* ---- probes ---- */

bool host_has(const char *what)
{
	const struct {
		const char *question;
		bool answer;
	} answers[] = {
		{ "struct mm_struct, mm_mt", host.maple },
		{ "struct mm_struct___rb, mm_rb", !host.maple },
		{ "sec->i_mtime_sec", host.mtime == HOST_MTIME_SEC },
		{ "private->__i_mtime", host.mtime == HOST_MTIME_PRIVATE },
		{ "plain->parent", !host.kernfs_rcu_parent },
		{ "BPF_FUNC_task_pt_regs", host.pt_regs_helper },
		{ "pids_cgrp_id", host.has_pids },
		{ "memory_cgrp_id", host.has_memory },
	};

	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		if (strcmp(answers[i].question, what) == 0)
			return answers[i].answer;
	}
	fprintf(stderr, "host.c knows no answer to the probe '%s': add a row\n", what);
	abort();
}
