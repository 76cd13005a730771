/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel as BPF code compiled for the host sees it: memory behind checked reads, maps, a
 * ring buffer, the current task. Everything that can fail in the kernel can be made to fail.
 *
 * Kernel addresses have the top bit set, which host pointers have not: kernel_addr() turns one
 * into the other. Objects in kernel memory refer to each other by kernel address only.
 * Include this before libc's headers (vmlinux.h defines bool).
 */
#ifndef TESTS_BPF_HOST_HOST_H
#define TESTS_BPF_HOST_HOST_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/off_abi.h"

#define HOST_KERNEL_BIT (1ULL << 63)
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum { HOST_ALL = 1 << 30 };

enum host_mtime { HOST_MTIME_PLAIN, HOST_MTIME_PRIVATE, HOST_MTIME_SEC };

struct host {
	/* What kind of kernel it is; host_reset chooses the newest. */
	bool maple; /* the VMAs' tree; else red-black */
	bool pt_regs_helper;
	bool kernfs_rcu_parent;
	bool has_pids, has_memory; /* cgroup controllers */
	enum host_mtime mtime;

	/* What happens. */
	struct task_struct *current; /* host pointer */
	int ring_refusals;           /* so many of the next records are refused */
	__u64 now_ns;                /* a call of the clock takes 1 ns */
	int ring_wakeups;            /* records that woke user space */
	__u64 kernel_stack[SONDE_MAX_KERNEL_FRAMES];
	long kernel_stack_count; /* or -errno */

	/* Called before each read of kernel memory, each update of a map. */
	void (*on_read)(__u64 addr, __u32 size);
	void (*on_update)(void *map, const void *key);
	__u64 reads;
};

extern struct host host;

/* Empties memory, maps and ring; settings: all processes, user and kernel stacks. */
void host_reset(void);
struct sonde_settings *host_settings(void);
struct sonde_off_settings *host_off_settings(void);

static inline __u64 kernel_addr(const void *host_pointer)
{
	return host_pointer ? (__u64)host_pointer | HOST_KERNEL_BIT : 0;
}

static inline void *kernel_ptr(const void *host_pointer)
{
	return (void *)kernel_addr(host_pointer);
}

static inline void *host_ptr(__u64 addr)
{
	return (void *)(addr & ~HOST_KERNEL_BIT);
}

/* Zeroed kernel memory, aligned to 256 as maple nodes are; a host pointer. */
void *kernel_alloc(size_t size);

/* Reads that touch these bytes fail from now on. */
void kernel_unmap(const void *host_pointer, size_t size);

/* `size` bytes of zeroed user memory at `addr`; a host pointer. */
void *user_map(__u64 addr, size_t size);
void user_unmap_all(void);

/* ---- maps ---- */

void map_limit(void *map, size_t max_entries);
void map_refuse(void *map, bool refuse); /* updates fail, as if the bucket were locked */
size_t map_count_entries(void *map);
/* Entry `i`, i < map_count_entries: pointers into the map. */
void map_entry(void *map, size_t i, const void **ret_key, void **ret_value);

/* Sum of a counter over both contexts. */
__u64 counter(enum sonde_counter which);

/* ---- ring ---- */

/* Record number `i` of a type, or NULL. */
const void *ring_record(enum sonde_record_type type, size_t i);
size_t ring_count(enum sonde_record_type type);
const void *ring_find(enum sonde_record_type type, __u64 id);
void ring_clear(void);

#endif
