/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel memory of BPF maps, as the kernel itself tells it. */
#ifndef AGENT_COLLECT_MEMORY_H
#define AGENT_COLLECT_MEMORY_H

#include <bpf/libbpf.h>
#include <stdint.h>

/* Of all maps of an object that are loaded; what cannot be read counts 0. */
uint64_t memory_of_maps(const struct bpf_object *object);
uint64_t memory_of_map(const struct bpf_map *map);

#endif
