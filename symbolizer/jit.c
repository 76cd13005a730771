/* SPDX-License-Identifier: Apache-2.0 */
/* The JIT code of one process, by whatever files it writes; see symbolizer.h. */
#include <errno.h>
#include <stdlib.h>

#include "symbolizer/jitdump.h"
#include "symbolizer/symbolizer.h"

/*
 * Most JIT processes have no jitdump, and finding that out means reading all their mappings
 * (0.1 ms or more): so the pause until the next search doubles, in refreshes.
 */
enum { SEARCH_PAUSE_MAX = 64 };

struct sym_jit {
	struct jitdump *dump;
	struct sym_perfmap *map;
	uint64_t from_ns;
	uint32_t ns_pid;
	uid_t uid;
	uint32_t version;
	uint32_t search_pause, until_search;
	struct sym_jit_bad bad_taken;
	bool was_moving;
	bool no_demangle;
};

int sym_jit_new(uint32_t ns_pid, uid_t uid, bool no_demangle, struct sym_jit **ret_jit)
{
	struct sym_jit *jit = calloc(1, sizeof(*jit));

	if (!jit)
		return -ENOMEM;
	*jit = (struct sym_jit){ .ns_pid = ns_pid, .uid = uid, .no_demangle = no_demangle };
	*ret_jit = jit;
	return 0;
}

void sym_jit_free(struct sym_jit *jit)
{
	if (!jit)
		return;
	jitdump_free(jit->dump);
	sym_perfmap_free(jit->map);
	free(jit);
}

static bool search_dump(struct sym_jit *jit, int proc_fd)
{
	if (jit->until_search) {
		jit->until_search--;
		return false;
	}
	if (jitdump_load(proc_fd, jit->ns_pid, jit->uid, jit->from_ns, jit->no_demangle,
			 &jit->dump) == 0)
		return true;
	if (jit->search_pause < SEARCH_PAUSE_MAX)
		jit->search_pause = jit->search_pause ? 2 * jit->search_pause : 1;
	jit->until_search = jit->search_pause;
	return false;
}

static bool refresh_dump(struct sym_jit *jit, int proc_fd)
{
	if (!jit->dump)
		return search_dump(jit, proc_fd);
	return jitdump_refresh(jit->dump, proc_fd, jit->uid, jit->from_ns) > 0;
}

static bool refresh_map(struct sym_jit *jit, int proc_fd)
{
	if (!jit->map)
		return sym_perfmap_load(proc_fd, jit->ns_pid, jit->uid, jit->from_ns,
					jit->no_demangle, &jit->map) == 0;
	return sym_perfmap_refresh(jit->map, proc_fd, jit->ns_pid, jit->uid, jit->from_ns) > 0;
}

void sym_jit_refresh(struct sym_jit *jit, int proc_fd, uint64_t from_ns)
{
	bool has_changed, is_moving;

	jit->from_ns = from_ns;
	has_changed = refresh_dump(jit, proc_fd);
	has_changed |= refresh_map(jit, proc_fd);
	is_moving = (jit->dump && jitdump_is_moving(jit->dump, from_ns)) ||
		    (jit->map && sym_perfmap_is_moving(jit->map, from_ns));
	if (has_changed || is_moving || jit->was_moving)
		jit->version++;
	jit->was_moving = is_moving;
}

uint32_t sym_jit_version(const struct sym_jit *jit)
{
	return jit->version;
}

size_t sym_jit_bytes(const struct sym_jit *jit)
{
	return sizeof(*jit) + (jit->dump ? jitdump_bytes(jit->dump) : 0) +
	       (jit->map ? sym_perfmap_bytes(jit->map) : 0);
}

struct sym_jit_bad sym_jit_take_bad(struct sym_jit *jit)
{
	const struct sym_jit_bad before = jit->bad_taken;

	jit->bad_taken.map_lines = jit->map ? sym_perfmap_bad_lines(jit->map) : 0;
	jit->bad_taken.dump_records = jit->dump ? jitdump_bad_records(jit->dump) : 0;
	return (struct sym_jit_bad){ jit->bad_taken.map_lines - before.map_lines,
				     jit->bad_taken.dump_records - before.dump_records };
}

enum sym_reason sym_jit_find(struct sym_jit *jit, uint64_t addr, struct sym_hit *ret_hit)
{
	enum sym_reason by_dump = SYM_NO_JIT_MAP, by_map = SYM_NO_JIT_MAP;

	if (jit->dump)
		by_dump = jitdump_find(jit->dump, addr, jit->from_ns, ret_hit);
	/* What the dump says of changes counts: a perf map knows no times. */
	if (by_dump == SYM_OK || by_dump == SYM_JIT_CHANGED || !jit->map)
		return by_dump;
	by_map = sym_perfmap_find(jit->map, addr, jit->from_ns, ret_hit);
	return by_map == SYM_NOT_COVERED && by_dump == SYM_JIT_UNREAD ? by_dump : by_map;
}
