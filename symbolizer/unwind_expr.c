/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbolic evaluation of DWARF expressions; see unwind_expr.h.
 *
 * Compilers and assemblers write few forms: a register plus something, a word of memory at
 * such a place, plus something again. Those follow from five operations on symbolic values. The
 * one of procedure linkage tables is known by its bytes, since linkers emit it from templates.
 */
#include "symbolizer/unwind_expr.h"

enum { STACK_MAX = 8, STEPS_MAX = 64 };

struct machine {
	struct unwind_value stack[STACK_MAX];
	size_t depth;
	bool bad;
};

static void push(struct machine *m, struct unwind_value value)
{
	if (m->depth == STACK_MAX) {
		m->bad = true;
		return;
	}
	m->stack[m->depth++] = value;
}

static struct unwind_value pop(struct machine *m)
{
	if (m->depth == 0) {
		m->bad = true;
		return (struct unwind_value){ .form = UNWIND_FORM_OTHER };
	}
	return m->stack[--m->depth];
}

static void push_number(struct machine *m, int64_t number)
{
	push(m, (struct unwind_value){ .form = UNWIND_FORM_NUMBER, .add = number });
}

static void push_reg(struct machine *m, uint32_t reg, int64_t add)
{
	push(m, (struct unwind_value){ .form = UNWIND_FORM_REG, .reg = reg, .add = add });
}

static void add_number(struct machine *m, int64_t number)
{
	struct unwind_value v = pop(m);

	if (__builtin_add_overflow(v.add, number, &v.add))
		m->bad = true;
	push(m, v);
}

static void op_plus(struct machine *m, struct bytes *b)
{
	struct unwind_value right = pop(m), left = pop(m);

	if (right.form != UNWIND_FORM_NUMBER) {
		struct unwind_value swap = left;

		left = right;
		right = swap;
	}
	if (right.form != UNWIND_FORM_NUMBER)
		m->bad = true;
	push(m, left);
	add_number(m, right.add);
}

static void op_minus(struct machine *m, struct bytes *b)
{
	struct unwind_value right = pop(m);

	if (right.form != UNWIND_FORM_NUMBER || right.add == INT64_MIN)
		m->bad = true;
	else
		add_number(m, -right.add);
}

static void op_plus_uconst(struct machine *m, struct bytes *b)
{
	uint64_t number = bytes_uleb(b);

	if (number > INT64_MAX)
		m->bad = true;
	else
		add_number(m, (int64_t)number);
}

static void op_deref(struct machine *m, struct bytes *b)
{
	struct unwind_value v = pop(m);

	if (v.form != UNWIND_FORM_REG)
		m->bad = true;
	push(m, (struct unwind_value){ .form = UNWIND_FORM_DEREF, .reg = v.reg, .off = v.add });
}

static void op_bregx(struct machine *m, struct bytes *b)
{
	uint64_t reg = bytes_uleb(b);

	if (reg > UINT32_MAX)
		m->bad = true;
	push_reg(m, (uint32_t)reg, bytes_sleb(b));
}

static void op_dup(struct machine *m, struct bytes *b)
{
	struct unwind_value v = pop(m);

	push(m, v);
	push(m, v);
}

static void op_drop(struct machine *m, struct bytes *b)
{
	pop(m);
}

static void op_swap(struct machine *m, struct bytes *b)
{
	struct unwind_value right = pop(m), left = pop(m);

	push(m, right);
	push(m, left);
}

static void op_nop(struct machine *m, struct bytes *b)
{
}

static void op_const1u(struct machine *m, struct bytes *b)
{
	push_number(m, (int64_t)bytes_number(b, 1));
}

static void op_const1s(struct machine *m, struct bytes *b)
{
	push_number(m, bytes_signed(b, 1));
}

static void op_const2u(struct machine *m, struct bytes *b)
{
	push_number(m, (int64_t)bytes_number(b, 2));
}

static void op_const2s(struct machine *m, struct bytes *b)
{
	push_number(m, bytes_signed(b, 2));
}

static void op_const4u(struct machine *m, struct bytes *b)
{
	push_number(m, (int64_t)bytes_number(b, 4));
}

static void op_const4s(struct machine *m, struct bytes *b)
{
	push_number(m, bytes_signed(b, 4));
}

static void op_const8(struct machine *m, struct bytes *b)
{
	push_number(m, bytes_signed(b, 8));
}

static void op_constu(struct machine *m, struct bytes *b)
{
	push_number(m, (int64_t)bytes_uleb(b));
}

static void op_consts(struct machine *m, struct bytes *b)
{
	push_number(m, bytes_sleb(b));
}

static void (*const operations[256])(struct machine *, struct bytes *) = {
	[DW_OP_nop] = op_nop,         [DW_OP_deref] = op_deref,
	[DW_OP_dup] = op_dup,         [DW_OP_drop] = op_drop,
	[DW_OP_swap] = op_swap,       [DW_OP_plus] = op_plus,
	[DW_OP_minus] = op_minus,     [DW_OP_plus_uconst] = op_plus_uconst,
	[DW_OP_bregx] = op_bregx,     [DW_OP_const1u] = op_const1u,
	[DW_OP_const1s] = op_const1s, [DW_OP_const2u] = op_const2u,
	[DW_OP_const2s] = op_const2s, [DW_OP_const4u] = op_const4u,
	[DW_OP_const4s] = op_const4s, [DW_OP_const8u] = op_const8,
	[DW_OP_const8s] = op_const8,  [DW_OP_constu] = op_constu,
	[DW_OP_consts] = op_consts,
};

/*
 * rsp + 8 + ((rip & 15) >= n ? 8 : 0): within a slot of 16 bytes the index of the relocation is
 * pushed before byte n. n is 11, or 9, 5... in the forms for CET and MPX.
 */
static bool is_plt(struct bytes b, struct unwind_value *ret_value)
{
	static const uint8_t test[] = { DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and };
	static const uint8_t add[] = { DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus };
	struct bytes part;
	int64_t off;
	uint8_t lit;

	if (bytes_number(&b, 1) != DW_OP_breg7)
		return false;
	off = bytes_sleb(&b);
	part = bytes_take(&b, sizeof(test));
	if (part.bad || memcmp(part.p, test, sizeof(test)) != 0)
		return false;
	lit = (uint8_t)bytes_number(&b, 1);
	part = bytes_take(&b, sizeof(add));
	if (part.bad || memcmp(part.p, add, sizeof(add)) != 0 || bytes_left(&b) != 0 ||
	    lit < DW_OP_lit0 || lit > DW_OP_lit15)
		return false;
	*ret_value = (struct unwind_value){
		.form = UNWIND_FORM_PLT,
		.reg = DWARF_RSP,
		.off = off,
		.add = lit - DW_OP_lit0,
	};
	return true;
}

static void run_operation(struct machine *m, struct bytes *b)
{
	uint8_t op = (uint8_t)bytes_number(b, 1);

	if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
		push_number(m, op - DW_OP_lit0);
	else if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		push_reg(m, op - DW_OP_breg0, bytes_sleb(b));
	else if (operations[op])
		operations[op](m, b);
	else
		m->bad = true;
}

struct unwind_value unwind_expr_eval(struct bytes expr, bool on_cfa)
{
	struct unwind_value value = { .form = UNWIND_FORM_OTHER };
	struct machine m = { .depth = 0 };

	if (!on_cfa && is_plt(expr, &value))
		return value;
	if (on_cfa)
		push(&m, (struct unwind_value){ .form = UNWIND_FORM_CFA });
	for (int steps = 0; bytes_left(&expr) > 0; steps++) {
		run_operation(&m, &expr);
		if (m.bad || expr.bad || steps == STEPS_MAX)
			return value;
	}
	return m.depth > 0 && !expr.bad ? m.stack[m.depth - 1] : value;
}
