/* SPDX-License-Identifier: Apache-2.0 */
/* A process with a perf map, as the symbolizer sees it: proc/77/root/tmp/perf-5.map. */
#ifndef TESTS_UNIT_PERF_MAP_LAB_H
#define TESTS_UNIT_PERF_MAP_LAB_H

#include "elf_lab.h"

#include "symbolizer/symbolizer.h"

static inline const char *name_at(struct sym_perfmap *map, uint64_t addr)
{
	struct sym_hit hit;

	return sym_perfmap_find(map, addr, UINT64_MAX, &hit) == SYM_OK ? hit.name : "-";
}

static inline enum sym_reason reason_at(struct sym_perfmap *map, uint64_t addr, uint64_t from_ns)
{
	struct sym_hit hit;

	return sym_perfmap_find(map, addr, from_ns, &hit);
}

static inline void make_process(void)
{
	lab_run("rm -rf proc && mkdir -p proc/77/root/tmp proc/77/root/secret");
}

static inline void write_map(const char *text)
{
	lab_text("proc/77/root/tmp/perf-5.map", text);
}

static inline int open_proc(const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static inline int load_at(const char *proc, uint32_t ns_pid, uid_t uid,
			  struct sym_perfmap **ret_map)
{
	int fd = open_proc(proc), err;

	err = sym_perfmap_load(fd, ns_pid, uid, 1, false, ret_map);
	close(fd);
	return err;
}

static inline int load(uid_t uid, struct sym_perfmap **ret_map)
{
	return load_at("proc/77", 5, uid, ret_map);
}

#endif
