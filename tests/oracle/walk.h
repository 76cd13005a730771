/* SPDX-License-Identifier: Apache-2.0 */
/* The BPF walker, compiled for the host, over captured processes and stacks. */
#ifndef TESTS_ORACLE_WALK_H
#define TESTS_ORACLE_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WALK_MAX_FRAMES = 256, WALK_REGS = 17 };

struct walk_map {
	uint64_t start, end, off;
	bool is_code, is_vdso;
	char path[512]; /* "": anonymous */
};

/* A place as the walker stores it. */
struct walk_frame {
	uint64_t file, off;
};

struct walk_result {
	struct walk_frame frames[WALK_MAX_FRAMES];
	size_t count;
	const char *marker; /* how it ended early, or NULL */
	uint64_t by_table, by_pointer;
};

struct walk_space;

void walk_begin(void);

/* An address space; tables of its files are built and loaded. Addresses ascend. */
struct walk_space *walk_space_new(const struct walk_map *maps, size_t count);

void walk_stack(struct walk_space *space, const uint64_t regs[WALK_REGS], const void *stack,
		size_t size, struct walk_result *ret_result);

/* The place of an address; file 0 if it is not code. */
struct walk_frame walk_place(struct walk_space *space, uint64_t addr);

/* What the tables came to: rows, and files that have none. */
void walk_totals(size_t *ret_tables, size_t *ret_bytes, size_t *ret_failed);

#endif
