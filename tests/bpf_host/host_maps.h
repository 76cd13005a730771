/* SPDX-License-Identifier: Apache-2.0 */
/* The maps that bpf/maps.bpf.c defines, as a table for host.c. */
#ifndef TESTS_BPF_HOST_HOST_MAPS_H
#define TESTS_BPF_HOST_HOST_MAPS_H

#include <stddef.h>

struct host_map_row {
	const char *name;
	void *map; /* its address is how BPF code names it */
	size_t key_size, value_size, max_entries;
	int is_array;
};

extern const struct host_map_row host_map_rows[];
extern const size_t host_map_row_count;

#endif
