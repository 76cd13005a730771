/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind tables: from .eh_frame (or .debug_frame) of an ELF file to rows that tell, for each
 * range of code, how to find the caller's frame. x86-64. Format: LSB "Exception Frames" and
 * DWARF 5 section 6.4; ABI: System V psABI for AMD64.
 *
 * Rows are sorted by *file offset* (a frame is (file, offset) before any address is known), so no
 * load bias appears anywhere. A row holds from its offset to that of the next row; what no
 * FDE covers is an explicit row with the rule UNWIND_NONE (or _BARE), but for up to 15 bytes that pad the next
 * function to a multiple of 16, where both sides have one rule. Neighbours with equal rules are
 * merged. Anything that cannot be told exactly is UNWIND_UNSUPPORTED, never the rule of before;
 * only a caller's rbp that cannot be told is UNWIND_FP_UNDEFINED, so that a walk may go on by rsp.
 *
 * Without an FDE rt_sigreturn is known by its code. Of a Go program's .debug_frame, which does not
 * say where rbp is saved, only rows of code without a frame are used; where Go's runtime switches
 * stacks is known by the names of its functions.
 *
 * Input is hostile: bounded in bytes, rows, rules and steps; no recursion; nothing is mapped.
 */
#ifndef SYMBOLIZER_UNWIND_H
#define SYMBOLIZER_UNWIND_H

#include <stddef.h>
#include <stdint.h>

/* How the canonical frame address (CFA: the caller's sp) is found. */
enum unwind_cfa {
	UNWIND_NONE,        /* no FDE covers this code */
	UNWIND_UNSUPPORTED, /* there is one, but its rule is beyond us */
	UNWIND_END,         /* return address undefined: outermost frame (_start, clone) */
	UNWIND_SP,          /* CFA = rsp + cfa_off */
	UNWIND_FP,          /* CFA = rbp + cfa_off */
	UNWIND_SP_DEREF,    /* CFA = *(rsp + cfa_off) + cfa_add */
	UNWIND_FP_DEREF,    /* CFA = *(rbp + cfa_off) + cfa_add */
	UNWIND_REG,         /* CFA = register number cfa_reg (DWARF) + cfa_off */
	UNWIND_PLT,         /* CFA = rsp + cfa_off + ((rip & 15) >= cfa_add ? 8 : 0) */
	UNWIND_SIGNAL,      /* signal frame: all registers are in the ucontext at rsp + cfa_off */
	UNWIND_FP_SWITCH,   /* CFA = rbp + cfa_off, on another stack, which may lie below rsp */
	/*
	 * Go's records of the goroutine: g at fs + cfa_off; m in it at the low, curg in that at the high
	 * half of cfa_add; in curg at fp_off sp and pc of a function that has no frame yet, and rbp
	 * cfa_reg bytes behind.
	 */
	UNWIND_GO_STACK,
	UNWIND_BARE, /* no FDE covers this code, and no frame pointer is set up anywhere near */
};

/* Where the caller's rbp is. */
enum unwind_fp {
	UNWIND_FP_SAME,      /* unchanged */
	UNWIND_FP_UNDEFINED, /* lost */
	UNWIND_FP_AT_CFA,    /* saved at CFA + fp_off */
	UNWIND_FP_AT_FP, /* saved at rbp + fp_off (expression; functions that realign the stack) */
};

/*
 * Where the caller's rbx is, by which a caller may find its CFA: ld.so's resolver does. Told only in
 * files that have such code, so that all others have fewer rules.
 */
enum unwind_bx {
	UNWIND_BX_LOST,
	UNWIND_BX_SAME, /* unchanged; 2 to 255: saved at CFA - 8 * that */
};

/*
 * One rule, without padding: usable as a map key. The return address is at CFA - 8 in all rules
 * but NONE, BARE, UNSUPPORTED, END, SIGNAL and GO_STACK; a function that keeps it elsewhere is UNSUPPORTED.
 */
struct unwind_rule {
	uint8_t cfa; /* enum unwind_cfa */
	uint8_t fp;  /* enum unwind_fp */
	uint8_t cfa_reg;
	uint8_t bx; /* see enum unwind_bx */
	int32_t cfa_off;
	int32_t cfa_add;
	int32_t fp_off;
};

struct unwind_row {
	uint64_t off;  /* file offset where the rule begins to hold */
	uint32_t rule; /* index into rules */
};

struct unwind_table {
	struct unwind_row *rows; /* strictly ascending offsets; the last has rule UNWIND_NONE */
	size_t row_count;
	struct unwind_rule *rules; /* distinct; rules[0] is all zero: UNWIND_NONE */
	size_t rule_count;
	size_t bytes; /* memory held */

	/* How it went. */
	uint32_t fdes;
	uint32_t bad_fdes;    /* damaged or outside the code: skipped, or unsupported from there on */
	uint64_t unsupported; /* bytes of code with UNWIND_UNSUPPORTED */
};

struct unwind_options {
	const char *debug_dir; /* for .debug_frame in a separate debug file; NULL: not looked for */
	size_t max_rows;       /* 0: 4 million */
	size_t max_rules;      /* 0: 60,000 */
};

/*
 * Builds the table of the ELF file behind `fd` (borrowed). Uses .eh_frame by section header (any
 * type but NOBITS) or, without section headers, by PT_GNU_EH_FRAME; adds .debug_frame where
 * .eh_frame has nothing. A file without any unwind data gives an empty table (row_count 0)
 * and 0. Errors: -ENOEXEC, -EBADMSG (nothing usable in it), -EFBIG (over a bound), -ENOMEM,
 * -ENOTSUP (not x86-64). About 100 ns a row; memory beyond the table under 8 MB.
 */
int unwind_table_build(int fd, const struct unwind_options *options,
		       struct unwind_table **ret_table);

/* The same for a file in memory, which is only borrowed for the call. */
int unwind_table_build_image(const void *image, size_t size, const struct unwind_options *options,
			     struct unwind_table **ret_table);

/* The same for the vDSO of this process. */
int unwind_table_build_vdso(struct unwind_table **ret_table);

void unwind_table_free(struct unwind_table *table);

/* The rule that holds at a file offset: for tests and tools. Never NULL: rules[0] at worst. */
const struct unwind_rule *unwind_table_find(const struct unwind_table *table, uint64_t off);

#endif
