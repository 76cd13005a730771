/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreter of call frame instructions (DW_CFA_*): what holds in one place of a function.
 * It follows the registers that a stack walk needs, rbp, rbx, rsp and the return address, and the
 * CFA; all others are passed over.
 */
#ifndef SYMBOLIZER_UNWIND_CFA_H
#define SYMBOLIZER_UNWIND_CFA_H

#include "symbolizer/unwind.h"
#include "symbolizer/unwind_bytes.h"
#include "symbolizer/unwind_expr.h"

/* Where the caller's value of a register is. */
enum cfa_where {
	CFA_UNSPECIFIED, /* unchanged; for rsp: the CFA */
	CFA_UNDEFINED,
	CFA_SAVED,  /* in memory, at `place` */
	CFA_EQUALS, /* it is `place` itself */
	CFA_BEYOND, /* elsewhere */
};

struct cfa_register {
	enum cfa_where where;
	enum unwind_form form; /* of place: CFA + off or reg + off */
	uint32_t reg;
	int64_t off;
};

struct cfa_state {
	struct unwind_value cfa;
	bool cfa_is_expr; /* then offset and register cannot be changed singly */
	struct cfa_register fp;
	struct cfa_register bx;
	struct cfa_register sp;
	struct cfa_register ra;
};

/* What a common information entry says about the programs that refer to it. */
struct cfa_common {
	uint64_t code_align;
	int64_t data_align;
	uint8_t pointer_encoding; /* DW_EH_PE_*, for DW_CFA_set_loc */
	bool is_signal;
	struct cfa_state initial;
};

enum { CFA_SAVED_MAX = 16 }; /* depth of DW_CFA_remember_state; compilers need 1 or 2 */

struct cfa_machine {
	const struct cfa_common *common;
	struct cfa_state state;
	struct cfa_state saved[CFA_SAVED_MAX];
	size_t saved_count;
	struct bytes program;
	uint64_t program_vaddr; /* of its first byte, for pc-relative pointers */
	const uint8_t *program_start;
	uint64_t loc;  /* address from which on `state` holds */
	uint64_t next; /* where it stops to hold */
	bool advanced;
	bool bad;
};

enum cfa_step {
	CFA_ADVANCED, /* state holds for [loc, next) */
	CFA_ENDED,    /* state holds from loc to the function's end */
	CFA_BAD,      /* nonsense: what holds from loc on is not known */
};

/* `program` lies at `vaddr`; the state begins with common->initial and holds from `loc` on. */
void cfa_start(struct cfa_machine *m, const struct cfa_common *common, struct bytes program,
	       uint64_t vaddr, uint64_t loc);

/* Runs to the next change of location. After CFA_ADVANCED call it again: loc moves to next. */
enum cfa_step cfa_run(struct cfa_machine *m);

/*
 * The rule of a state; UNWIND_UNSUPPORTED where the state has none. What became of rbx is in it only
 * if `with_bx`.
 */
struct unwind_rule cfa_rule(const struct cfa_state *state, bool is_signal, bool with_bx);

/*
 * A pointer encoded as DW_EH_PE says, the field being at address `vaddr`. Marks the cursor as bad
 * for encodings that need more than the file (and DW_EH_PE_omit).
 */
uint64_t cfa_pointer(struct bytes *b, uint8_t encoding, uint64_t vaddr);

#endif
