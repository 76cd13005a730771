/* SPDX-License-Identifier: Apache-2.0 */
/* See memory.h. */
#include "agent/collect/memory.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/parse.h"

static uint64_t map_bytes(int fd)
{
	static const char key[] = "memlock:";
	char path[64];
	struct buf text;
	uint64_t bytes = 0;
	const char *p;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	buf_init(&text, 4096);
	p = file_read_path(path, &text) ? NULL : buf_cstr(&text);
	p = p ? strstr(p, key) : NULL;
	if (p) {
		p += strlen(key);
		p += strspn(p, " \t");
		parse_digits(p, p + strlen(p), 10, &bytes);
	}
	buf_fini(&text);
	return bytes;
}

uint64_t memory_of_map(const struct bpf_map *map)
{
	int fd = bpf_map__fd(map);

	return fd < 0 ? 0 : map_bytes(fd);
}

uint64_t memory_of_maps(const struct bpf_object *object)
{
	struct bpf_map *map;
	uint64_t bytes = 0;

	bpf_object__for_each_map (map, object)
		bytes += memory_of_map(map);
	return bytes;
}
