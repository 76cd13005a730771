/* SPDX-License-Identifier: Apache-2.0 */
/* See walk.h. Kernel, maps and processes are those of tests/bpf_host. */
#include "tests/bpf_host/world.h"

#include "bpf/regs.bpf.h"
#include "bpf/unwind.bpf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/collect/unwind_tables.h"
#include "symbolizer/unwind.h"
#include "tests/oracle/capture.h"
#include "tests/oracle/walk.h"

enum { PAGES_FD = 1, RULES_FD = 2, MAX_FILES = 4096, DEV = 254 << 20 | 1 };

struct walk_space {
	struct task_struct *task;
};

static struct {
	char *path;
	struct file *file;
} known[MAX_FILES];
static size_t known_count;

static struct unwind_tables tables;
static size_t table_count, failed_count;

/* ---- loading tables as the agent does, into the simulated maps ---- */

int oracle_map_update(int fd, const void *key, const void *value, __u64 flags);
int oracle_map_delete(int fd, const void *key);

static void *map_of(int fd)
{
	return fd == PAGES_FD ? (void *)&unwind_pages : (void *)&unwind_rules;
}

int oracle_map_update(int fd, const void *key, const void *value, __u64 flags)
{
	long err = bpf_map_update_elem(map_of(fd), key, value, flags);

	errno = (int)-err;
	return (int)err;
}

int oracle_map_delete(int fd, const void *key)
{
	return (int)bpf_map_delete_elem(map_of(fd), key);
}

static int table_load(__u64 file, const struct unwind_table *table)
{
	struct table_rows rows = { .rows = (const struct table_row *)table->rows,
				   .row_count = table->row_count,
				   .rules = (const struct sonde_rule *)table->rules,
				   .rule_count = table->rule_count };

	return unwind_tables_add(&tables, file, &rows);
}

static void table_build(__u64 file, const char *path, bool is_vdso)
{
	__u8 state = SONDE_FILE_NO_TABLE;
	struct unwind_table *table = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;

	err = is_vdso ? unwind_table_build_vdso(&table)
		      : (fd < 0 ? -errno : unwind_table_build(fd, NULL, &table));
	if (fd >= 0)
		close(fd);
	if (!err && table->row_count)
		err = table_load(file, table);
	if (!err && table->row_count) {
		state = SONDE_FILE_TABLE;
		table_count++;
	} else {
		failed_count += err != 0;
		if (err && err != -ENOEXEC)
			fprintf(stderr, "%s: no table: %s\n", path, strerror(-err));
	}
	if (!is_vdso)
		bpf_map_update_elem(&files, &file, &state, BPF_ANY);
	unwind_table_free(table);
}

/* ---- address spaces ---- */

void walk_begin(void)
{
	__u32 zero = 0;
	struct unwind_maps maps = { .pages_fd = PAGES_FD, .rules_fd = RULES_FD };

	host_reset();
	maps.rows = bpf_map_lookup_elem(&unwind_rows, &zero);
	maps.row_capacity = 4 * SONDE_ROWS_PER_ELEMENT;
	unwind_tables_init(&tables, &maps);
}

/* Device and inode serve as identity, the path is only for opening. */
static struct file *file_of(const char *path, bool *ret_new)
{
	for (size_t i = 0; i < known_count; i++) {
		if (strcmp(known[i].path, path) == 0) {
			*ret_new = false;
			return known[i].file;
		}
	}
	assert_true(known_count < MAX_FILES);
	*ret_new = true;
	known[known_count].path = strdup(path);
	known[known_count].file = world_file(DEV, 1000 + known_count, "/file");
	return known[known_count++].file;
}

static __u64 find(struct walk_space *space, __u64 addr)
{
	struct walk_state *s = walk_state(SONDE_CONTEXT_PERF);
	struct mm_struct *mm = host_ptr((__u64)space->task->mm);

	s->context = SONDE_CONTEXT_PERF;
	s->mm = (__u64)space->task->mm;
	s->vdso = (__u64)mm->context.vdso;
	s->addr = addr;
	return vma_find(SONDE_CONTEXT_PERF) == VMA_FOUND ? s->vma.file : 0;
}

struct walk_space *walk_space_new(const struct walk_map *maps, size_t count)
{
	static struct world_vmas vmas;
	struct walk_space *space = calloc(1, sizeof(*space));
	bool *is_new = calloc(count + 1, sizeof(*is_new));
	struct mm_struct *mm;

	space->task = world_process(100, "captured", 1);
	mm = host_ptr((__u64)space->task->mm);
	vmas.count = 0;
	for (size_t i = 0; i < count; i++) {
		const struct walk_map *m = &maps[i];
		struct file *file = m->path[0] && !m->is_vdso ? file_of(m->path, &is_new[i]) : NULL;

		if (m->is_vdso)
			mm->context.vdso = (void *)m->start;
		world_vma(&vmas, space->task, m->start, m->end,
			  m->is_code ? WORLD_VM_EXEC : WORLD_VM_READ, file, m->off >> 12);
	}
	world_map(space->task, &vmas);
	for (size_t i = 0; i < count; i++) {
		__u64 id;

		if (!is_new[i] && !maps[i].is_vdso)
			continue;
		id = find(space, maps[i].start);
		if (!map_find(&tables.loaded, &id))
			table_build(id, maps[i].path, maps[i].is_vdso);
	}
	free(is_new);
	return space;
}

struct walk_frame walk_place(struct walk_space *space, uint64_t addr)
{
	struct walk_state *s = walk_state(SONDE_CONTEXT_PERF);
	struct walk_frame place = { find(space, addr), 0 };

	if (!place.file || !s->vma.is_code)
		return (struct walk_frame){ 0, 0 };
	place.off = addr + s->vma.delta;
	return place;
}

/* ---- walks ---- */

static const char *const markers[] = {
#define X(id, text) text,
	SONDE_MARKERS(X)
#undef X
};

void walk_stack(struct walk_space *space, const uint64_t r[WALK_REGS], const void *stack,
		size_t size, struct walk_result *result)
{
	const struct arch_regs regs = { .ax = r[0],   .dx = r[1],   .cx = r[2],   .bx = r[3],
					.si = r[4],   .di = r[5],   .bp = r[6],   .sp = r[7],
					.r8 = r[8],   .r9 = r[9],   .r10 = r[10], .r11 = r[11],
					.r12 = r[12], .r13 = r[13], .r14 = r[14], .r15 = r[15],
					.ip = r[16] };
	struct walk_state *s = walk_state(SONDE_CONTEXT_PERF);
	__u64 by_table = counter(SONDE_COUNT_FRAMES_BY_TABLE);
	__u64 by_pointer = counter(SONDE_COUNT_FRAMES_BY_POINTER);

	find(space, r[16]);
	s->in_user = 1;
	user_unmap_all();
	memcpy((char *)user_map(r[7] - RED_ZONE, size + RED_ZONE) + RED_ZONE, stack, size);
	regs_load(s, &regs);
	unwind(s, SONDE_CONTEXT_PERF);
	*result = (struct walk_result){ .count = s->stack.count };
	for (size_t i = 0; i < result->count; i++)
		result->frames[i] = (struct walk_frame){ s->stack.frames[i].file,
							 s->stack.frames[i].off };
	if (result->count && result->frames[result->count - 1].file == SONDE_FRAME_MARKER)
		result->marker = markers[result->frames[--result->count].off];
	result->by_table = counter(SONDE_COUNT_FRAMES_BY_TABLE) - by_table;
	result->by_pointer = counter(SONDE_COUNT_FRAMES_BY_POINTER) - by_pointer;
}

void walk_totals(size_t *ret_tables, size_t *ret_bytes, size_t *ret_failed)
{
	*ret_tables = table_count;
	*ret_bytes = unwind_tables_bytes(&tables);
	*ret_failed = failed_count;
}
