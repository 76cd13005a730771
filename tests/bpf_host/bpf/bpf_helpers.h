/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for libbpf's header when BPF code is compiled for the host: the same names, with
 * the helpers as functions of host.c.
 */
#ifndef TESTS_BPF_HOST_BPF_HELPERS_H
#define TESTS_BPF_HOST_BPF_HELPERS_H

#include <stddef.h>

#include "vmlinux.h"

#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#undef __noinline
#define __noinline __attribute__((noinline))

#define barrier() asm volatile("" ::: "memory")
#define barrier_var(variable) asm volatile("" : "+r"(variable))

#define SEC(name)
#define __uint(name, value) int(*name)[value]
#define __type(name, type) typeof(type) *name
#define __array(name, type) typeof(type) *name[]

void *bpf_map_lookup_elem(void *map, const void *key);
long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags);
long bpf_map_delete_elem(void *map, const void *key);
long bpf_ringbuf_output(void *ring, void *data, __u64 size, __u64 flags);

long bpf_probe_read_kernel(void *to, __u32 size, const void *from);
long bpf_probe_read_kernel_str(void *to, __u32 size, const void *from);
long bpf_probe_read_user(void *to, __u32 size, const void *from);

long bpf_get_stack(void *ctx, void *to, __u32 size, __u64 flags);
__u64 bpf_get_current_task(void);
struct task_struct *bpf_get_current_task_btf(void);
long bpf_task_pt_regs(struct task_struct *task);
__u64 bpf_get_current_pid_tgid(void);
__u64 bpf_ktime_get_ns(void);
__u32 bpf_get_smp_processor_id(void);
long bpf_get_current_comm(void *to, __u32 size);

#endif
