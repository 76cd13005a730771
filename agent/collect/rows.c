/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arrays that hold the rows of unwind tables, one mapping behind the other: a range of
 * addresses is reserved for all, an array is made and mapped when its first row is written. What
 * was made stays: the room is used again.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/collect/collect_private.h"

static const size_t ELEMENT_BYTES = SONDE_ROWS_PER_ELEMENT * sizeof(struct sonde_row);

static uint32_t element_count(const struct collect *c)
{
	size_t count = (c->options.unwind_bytes + ELEMENT_BYTES - 1) / ELEMENT_BYTES;

	return count ? (uint32_t)count : 1;
}

void rows_size(struct collect *c)
{
	int cpus = libbpf_num_possible_cpus();

	bpf_map__set_max_entries(c->skel->maps.unwind_rows, element_count(c));
	bpf_map__set_max_entries(c->skel->maps.rule_memos,
				 SONDE_RULE_MEMOS * (uint32_t)(cpus > 0 ? cpus : 1));
}

static int map_element(struct collect *c, uint32_t element, int fd)
{
	void *at = (char *)c->tables.maps.rows + element * ELEMENT_BYTES;
	int outer = bpf_map__fd(c->skel->maps.unwind_rows);

	if (mmap(at, ELEMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
	    MAP_FAILED)
		return -errno;
	return bpf_map_update_elem(outer, &element, &fd, BPF_ANY);
}

static int provide(void *context, uint32_t element)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	struct collect *c = context;
	int fd, err;

	if (c->rows_made[element])
		return 0;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sonde_rows", sizeof(__u32), (__u32)ELEMENT_BYTES,
			    1, &opts);
	if (fd < 0)
		return fd;
	err = map_element(c, element, fd);
	close(fd);
	c->rows_made[element] = !err;
	return err;
}

int rows_open(struct collect *c)
{
	uint32_t elements = element_count(c);
	struct unwind_maps maps = {
		.pages_fd = bpf_map__fd(c->skel->maps.unwind_pages),
		.rules_fd = bpf_map__fd(c->skel->maps.unwind_rules),
		.row_capacity = elements * SONDE_ROWS_PER_ELEMENT,
		.provide = provide,
		.context = c,
	};
	void *reserved = mmap(NULL, elements * ELEMENT_BYTES, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (reserved == MAP_FAILED)
		return -errno;
	maps.rows = reserved;
	c->rows_mapped = elements * ELEMENT_BYTES;
	c->rows_made = calloc(elements, sizeof(*c->rows_made));
	/* Also where it fails: closing finds the mapping there. */
	c->tables.maps = maps;
	return c->rows_made ? unwind_tables_init(&c->tables, &maps) : -ENOMEM;
}

void rows_close(struct collect *c)
{
	if (c->rows_mapped)
		munmap(c->tables.maps.rows, c->rows_mapped);
	free(c->rows_made);
}

uint64_t rows_bytes(const struct collect *c)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < element_count(c); i++)
		bytes += c->rows_made[i] ? ELEMENT_BYTES : 0;
	return bytes;
}
