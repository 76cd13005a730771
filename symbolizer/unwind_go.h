/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What unwind data does not say about Go programs: where the runtime switches stacks, and where
 * stacks begin. The functions are few and known by their names in pclntab, which stripped programs
 * have as well; where in them the switch is, is read from their code.
 */
#ifndef SYMBOLIZER_UNWIND_GO_H
#define SYMBOLIZER_UNWIND_GO_H

#include "symbolizer/elf_file.h"
#include "symbolizer/unwind_go_stack.h"
#include "symbolizer/unwind_rows.h"

enum { UNWIND_GO_RANGES = 32 };

struct unwind_go_range {
	uint64_t from; /* file offsets */
	uint64_t to;
	struct unwind_rule rule;
	bool is_last_word; /* else it holds only where there is no other rule */
};

struct unwind_go {
	struct unwind_go_range ranges[UNWIND_GO_RANGES]; /* by offset, apart from one another */
	size_t count;
	struct unwind_go_stack stack;
	size_t morestack; /* its range counted from 1, if there is one */
	/* What was put last, to be written when its end is known. */
	struct unwind_rule rule;
	uint64_t from;
	size_t next;
};

bool unwind_go_is_go(const struct elf_file *elf);

/* What of a rule of Go's .debug_frame can be used: it, or UNWIND_NONE. */
struct unwind_rule unwind_go_rule(struct unwind_rule rule);

/*
 * Finds the ranges. A program without pclntab, or with a damaged one, has none. 0, -ENOMEM, -EIO.
 * Costs one reading of the names and of the functions' records.
 */
int unwind_go_find(const struct elf_file *elf, struct unwind_go *ret_go);

/* Before rows are put, for the first time or once more. */
void unwind_go_begin(struct unwind_go *go);

/* As unwind_rows_put, with the ranges in between. */
int unwind_go_put(struct unwind_go *go, struct unwind_rows *rows, uint64_t off,
		  const struct unwind_rule *rule);

/* Writes what is left. */
int unwind_go_end(struct unwind_go *go, struct unwind_rows *rows);

#endif
