/* SPDX-License-Identifier: Apache-2.0 */
/* For oracle_unwind.c: whether libdw's idea of a frame is that of a rule of ours. */
#ifndef TESTS_LIVE_ORACLE_LIBDW_H
#define TESTS_LIVE_ORACLE_LIBDW_H

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdbool.h>

#include "symbolizer/unwind.h"

enum kind {
	EQUAL,
	FP_LOST,
	NO_FDE,
	PADDING,
	RESTORER,
	BEYOND,
	LIBDW_REFUSES,
	GO,
	DIFFERENT,
	KIND_COUNT
};

/* Whether an array of operations is exactly this. */
struct op {
	uint8_t atom;
	int64_t number;
};

static inline bool are(const Dwarf_Op *ops, size_t count, const struct op *want, size_t want_count)
{
	if (count != want_count)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (ops[i].atom != want[i].atom || (int64_t)ops[i].number != want[i].number)
			return false;
	}
	return true;
}

#define ARE(ops, count, ...)                                                                       \
	are(ops, count, (const struct op[]){ __VA_ARGS__ },                                        \
	    sizeof((const struct op[]){ __VA_ARGS__ }) / sizeof(struct op))

static inline bool same_cfa(const struct unwind_rule *r, Dwarf_Op *ops, size_t n)
{
	static const uint8_t simple[] = { [UNWIND_SP] = 7, [UNWIND_FP] = 6 };
	uint8_t deref = r->cfa == UNWIND_SP_DEREF ? DW_OP_breg7 : DW_OP_breg6;
	uint64_t reg = r->cfa == UNWIND_REG ? r->cfa_reg : 0;

	switch (r->cfa) {
	case UNWIND_SP:
	case UNWIND_FP:
		reg = simple[r->cfa];
		__attribute__((fallthrough));
	case UNWIND_REG:
		return (n == 1 && ops[0].atom == DW_OP_bregx && ops[0].number == reg &&
			(int64_t)ops[0].number2 == r->cfa_off) ||
		       ARE(ops, n, { (uint8_t)(DW_OP_breg0 + reg), r->cfa_off });
	case UNWIND_SP_DEREF:
	case UNWIND_FP_DEREF:
		return r->cfa_add ? ARE(ops, n, { deref, r->cfa_off }, { DW_OP_deref, 0 },
					{ DW_OP_plus_uconst, r->cfa_add })
				  : ARE(ops, n, { deref, r->cfa_off }, { DW_OP_deref, 0 });
	case UNWIND_PLT:
		return ARE(ops, n, { DW_OP_breg7, r->cfa_off }, { DW_OP_breg16, 0 },
			   { DW_OP_lit15, 0 }, { DW_OP_and, 0 },
			   { (uint8_t)(DW_OP_lit0 + r->cfa_add), 0 }, { DW_OP_ge, 0 },
			   { DW_OP_lit3, 0 }, { DW_OP_shl, 0 }, { DW_OP_plus, 0 });
	case UNWIND_SIGNAL:
		return ARE(ops, n, { DW_OP_breg7, r->cfa_off + 160 }, { DW_OP_deref, 0 });
	default:
		return false;
	}
}

/* What libdw says about a register, in few words. */
enum saying { SAME, UNDEFINED, AT_CFA, AT_FP, AT_SP, OTHER };

static inline enum saying say(Dwarf_Frame *frame, int reg, int64_t *ret_off)
{
	Dwarf_Op space[3], *ops;
	size_t n;

	*ret_off = 0;
	if (dwarf_frame_register(frame, reg, space, &ops, &n) != 0)
		return OTHER;
	if (n == 0)
		return ops == space ? UNDEFINED : SAME;
	if (ARE(ops, n, { DW_OP_call_frame_cfa, 0 }))
		return AT_CFA;
	*ret_off = (int64_t)ops[n - 1].number;
	if (n == 2 && ops[0].atom == DW_OP_call_frame_cfa) {
		if (ops[1].atom == DW_OP_plus_uconst)
			return AT_CFA;
		if (ops[1].atom == DW_OP_breg6)
			return AT_FP;
		if (ops[1].atom == DW_OP_breg7)
			return AT_SP;
	}
	return OTHER;
}

static inline enum kind compare_fp(const struct unwind_rule *r, Dwarf_Frame *frame)
{
	int64_t off;
	enum saying s = say(frame, 6, &off);
	bool same = false;

	switch (r->fp) {
	case UNWIND_FP_SAME:
		same = s == SAME;
		break;
	case UNWIND_FP_AT_CFA:
		same = s == AT_CFA && off == r->fp_off;
		break;
	case UNWIND_FP_AT_FP:
		same = s == AT_FP && off == r->fp_off;
		break;
	default:
		if (s == OTHER || s == AT_SP)
			return FP_LOST;
		same = s == UNDEFINED;
	}
	return same ? EQUAL : DIFFERENT;
}

static inline enum kind compare_rule(const struct unwind_rule *r, Dwarf_Frame *frame,
				     bool is_signal)
{
	int64_t ra_off, fp_off;
	enum saying ra = say(frame, 16, &ra_off);
	Dwarf_Op *ops;
	size_t n;

	if (r->cfa == UNWIND_END)
		return ra == UNDEFINED ? EQUAL : DIFFERENT;
	if (dwarf_frame_cfa(frame, &ops, &n) != 0 || !same_cfa(r, ops, n))
		return DIFFERENT;
	if (r->cfa == UNWIND_SIGNAL)
		return is_signal && ra == AT_SP && ra_off == r->cfa_off + 168 &&
				       say(frame, 6, &fp_off) == AT_SP && fp_off == r->cfa_off + 120
			       ? EQUAL
			       : DIFFERENT;
	return !is_signal && ra == AT_CFA && ra_off == -8 ? compare_fp(r, frame) : DIFFERENT;
}

#endif
