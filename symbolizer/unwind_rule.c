/* SPDX-License-Identifier: Apache-2.0 */
/* From the state of the interpreter to a rule that a stack walk can apply; see unwind_cfa.h. */
#include "symbolizer/unwind_cfa.h"

/* Places of registers in the x86-64 ucontext: uc_mcontext.gregs from byte 40 on. */
enum { UC_RBP = 120, UC_RSP = 160, UC_RIP = 168 };

static bool fits(int64_t number)
{
	return number >= INT32_MIN && number <= INT32_MAX;
}

static bool is_saved_at(const struct cfa_register *r, enum unwind_form form, uint32_t reg,
			int64_t off)
{
	return r->where == CFA_SAVED && r->form == form &&
	       (form != UNWIND_FORM_REG || r->reg == reg) && r->off == off;
}

/*
 * A restorer's frame by glibc's description: each register is in memory, at a constant distance
 * from rsp, as the kernel laid out the ucontext.
 */
static bool is_signal_frame(const struct cfa_state *s, int64_t *ret_ucontext)
{
	int64_t uc;

	if (s->cfa.form != UNWIND_FORM_DEREF || s->cfa.reg != DWARF_RSP || s->cfa.add != 0 ||
	    !fits(s->cfa.off) || !fits(s->cfa.off - UC_RSP))
		return false;
	uc = s->cfa.off - UC_RSP;
	if (!is_saved_at(&s->ra, UNWIND_FORM_REG, DWARF_RSP, uc + UC_RIP) ||
	    !is_saved_at(&s->fp, UNWIND_FORM_REG, DWARF_RSP, uc + UC_RBP))
		return false;
	if (s->sp.where != CFA_UNSPECIFIED &&
	    !is_saved_at(&s->sp, UNWIND_FORM_REG, DWARF_RSP, uc + UC_RSP))
		return false;
	*ret_ucontext = uc;
	return true;
}

/* Whether the caller's rsp is the CFA, as all rules but that of signal frames take it to be. */
static bool sp_is_cfa(const struct cfa_state *s)
{
	return s->sp.where == CFA_UNSPECIFIED ||
	       (s->sp.where == CFA_EQUALS && s->sp.form == UNWIND_FORM_CFA && s->sp.off == 0);
}

static bool set_cfa(const struct unwind_value *cfa, struct unwind_rule *rule)
{
	if (!fits(cfa->add) || !fits(cfa->off))
		return false;
	switch (cfa->form) {
	case UNWIND_FORM_REG:
		/* General registers only: rip + n, or a vector register, is nothing to build on. */
		if (cfa->reg >= DWARF_RIP)
			return false;
		rule->cfa = cfa->reg == DWARF_RSP   ? UNWIND_SP
			    : cfa->reg == DWARF_RBP ? UNWIND_FP
						    : UNWIND_REG;
		rule->cfa_reg = rule->cfa == UNWIND_REG ? (uint8_t)cfa->reg : 0;
		rule->cfa_off = (int32_t)cfa->add;
		return true;
	case UNWIND_FORM_DEREF:
		if (cfa->reg != DWARF_RSP && cfa->reg != DWARF_RBP)
			return false;
		rule->cfa = cfa->reg == DWARF_RSP ? UNWIND_SP_DEREF : UNWIND_FP_DEREF;
		break;
	case UNWIND_FORM_PLT:
		rule->cfa = UNWIND_PLT;
		break;
	default:
		return false;
	}
	rule->cfa_off = (int32_t)cfa->off;
	rule->cfa_add = (int32_t)cfa->add;
	return true;
}

/* A place relative to rsp, where that is also a constant distance from the CFA. */
static bool is_below_cfa(const struct cfa_state *s, int64_t *ret_off)
{
	return s->fp.form == UNWIND_FORM_REG && s->fp.reg == DWARF_RSP &&
	       s->cfa.form == UNWIND_FORM_REG && s->cfa.reg == DWARF_RSP &&
	       !__builtin_sub_overflow(s->fp.off, s->cfa.add, ret_off);
}

/* A caller's rbp that cannot be told is a lost one: the walk may still go on by rsp. */
static void set_fp(const struct cfa_state *s, struct unwind_rule *rule)
{
	int64_t off = s->fp.off;

	rule->fp = UNWIND_FP_UNDEFINED;
	if (s->fp.where == CFA_UNSPECIFIED)
		rule->fp = UNWIND_FP_SAME;
	if (s->fp.where != CFA_SAVED)
		return;
	if (s->fp.form == UNWIND_FORM_CFA || is_below_cfa(s, &off))
		rule->fp = UNWIND_FP_AT_CFA;
	else if (s->fp.form == UNWIND_FORM_REG && s->fp.reg == DWARF_RBP)
		rule->fp = UNWIND_FP_AT_FP;
	if (!fits(off))
		rule->fp = UNWIND_FP_UNDEFINED;
	if (rule->fp != UNWIND_FP_UNDEFINED)
		rule->fp_off = (int32_t)off;
}

/* A caller's rbx that cannot be told, or not in a byte, is lost. */
static uint8_t bx_code(const struct cfa_register *bx)
{
	if (bx->where == CFA_UNSPECIFIED)
		return UNWIND_BX_SAME;
	if (bx->where != CFA_SAVED || bx->form != UNWIND_FORM_CFA || bx->off % 8 ||
	    bx->off > -16 || bx->off < -8 * UINT8_MAX)
		return UNWIND_BX_LOST;
	return (uint8_t)(bx->off / -8);
}

struct unwind_rule cfa_rule(const struct cfa_state *s, bool is_signal, bool with_bx)
{
	struct unwind_rule rule = { .cfa = UNWIND_UNSUPPORTED };
	int64_t ucontext;

	if (s->ra.where == CFA_UNDEFINED)
		return (struct unwind_rule){ .cfa = UNWIND_END };
	if (is_signal_frame(s, &ucontext))
		return (struct unwind_rule){
			.cfa = UNWIND_SIGNAL,
			.cfa_off = (int32_t)ucontext,
		};
	/* Below any other signal frame an address is not one of a return. */
	if (is_signal || !sp_is_cfa(s) || !is_saved_at(&s->ra, UNWIND_FORM_CFA, 0, -8) ||
	    !set_cfa(&s->cfa, &rule))
		return (struct unwind_rule){ .cfa = UNWIND_UNSUPPORTED };
	set_fp(s, &rule);
	rule.bx = with_bx ? bx_code(&s->bx) : UNWIND_BX_LOST;
	return rule;
}
