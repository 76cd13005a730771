/* SPDX-License-Identifier: Apache-2.0 */
/* Interpreter of DW_CFA_* instructions; see unwind_cfa.h. */
#include "symbolizer/unwind_cfa.h"

enum operand { NONE, U1, U2, U4, U8, ULEB, SLEB, POINTER, BLOCK };

struct operands {
	uint64_t a;
	uint64_t b; /* an SLEB's bits too */
	struct bytes block;
};

struct instruction {
	uint8_t operands[2]; /* enum operand */
	void (*run)(struct cfa_machine *m, const struct operands *o);
};

/* --- locations ------------------------------------------------------------------------------- */

static void advance(struct cfa_machine *m, uint64_t delta)
{
	if (__builtin_mul_overflow(delta, m->common->code_align, &delta) ||
	    __builtin_add_overflow(m->loc, delta, &m->next))
		m->bad = true;
	m->advanced = true;
}

static void run_advance(struct cfa_machine *m, const struct operands *o)
{
	advance(m, o->a);
}

static void run_set_loc(struct cfa_machine *m, const struct operands *o)
{
	if (o->a < m->loc)
		m->bad = true;
	m->next = o->a;
	m->advanced = true;
}

/* --- the CFA --------------------------------------------------------------------------------- */

static void set_cfa(struct cfa_machine *m, uint64_t reg, int64_t off)
{
	m->state.cfa_is_expr = false;
	m->state.cfa = (struct unwind_value){
		.form = UNWIND_FORM_REG,
		.reg = reg > UINT32_MAX ? UINT32_MAX : (uint32_t)reg,
		.add = off,
	};
}

/* Factored offsets; what overflows is nonsense. */
static int64_t factored(struct cfa_machine *m, int64_t number)
{
	int64_t off = 0;

	if (__builtin_mul_overflow(number, m->common->data_align, &off))
		m->bad = true;
	return off;
}

static int64_t not_negative(struct cfa_machine *m, uint64_t number)
{
	if (number > INT64_MAX)
		m->bad = true;
	return (int64_t)(number & INT64_MAX);
}

static void run_def_cfa(struct cfa_machine *m, const struct operands *o)
{
	set_cfa(m, o->a, not_negative(m, o->b));
}

static void run_def_cfa_sf(struct cfa_machine *m, const struct operands *o)
{
	set_cfa(m, o->a, factored(m, (int64_t)o->b));
}

static void change_offset(struct cfa_machine *m, int64_t off)
{
	if (m->state.cfa_is_expr)
		m->bad = true;
	m->state.cfa.add = off;
}

static void run_def_cfa_offset(struct cfa_machine *m, const struct operands *o)
{
	change_offset(m, not_negative(m, o->a));
}

static void run_def_cfa_offset_sf(struct cfa_machine *m, const struct operands *o)
{
	change_offset(m, factored(m, (int64_t)o->a));
}

static void run_def_cfa_register(struct cfa_machine *m, const struct operands *o)
{
	if (m->state.cfa_is_expr)
		m->bad = true;
	else
		set_cfa(m, o->a, m->state.cfa.add);
}

static void run_def_cfa_expression(struct cfa_machine *m, const struct operands *o)
{
	m->state.cfa_is_expr = true;
	m->state.cfa = unwind_expr_eval(o->block, false);
}

/* --- registers ------------------------------------------------------------------------------- */

static struct cfa_register *register_in(struct cfa_state *state, uint64_t reg)
{
	switch (reg) {
	case DWARF_RBP:
		return &state->fp;
	case DWARF_RBX:
		return &state->bx;
	case DWARF_RSP:
		return &state->sp;
	case DWARF_RIP:
		return &state->ra;
	default:
		return NULL;
	}
}

static void set_register(struct cfa_machine *m, uint64_t reg, struct cfa_register value)
{
	struct cfa_register *r = register_in(&m->state, reg);

	if (r)
		*r = value;
}

static void set_from_cfa(struct cfa_machine *m, uint64_t reg, enum cfa_where where, int64_t off)
{
	set_register(m, reg,
		     (struct cfa_register){ .where = where, .form = UNWIND_FORM_CFA, .off = off });
}

static void run_offset(struct cfa_machine *m, const struct operands *o)
{
	set_from_cfa(m, o->a, CFA_SAVED, factored(m, not_negative(m, o->b)));
}

static void run_offset_sf(struct cfa_machine *m, const struct operands *o)
{
	set_from_cfa(m, o->a, CFA_SAVED, factored(m, (int64_t)o->b));
}

static void run_negative_offset(struct cfa_machine *m, const struct operands *o)
{
	set_from_cfa(m, o->a, CFA_SAVED, factored(m, -not_negative(m, o->b)));
}

static void run_val_offset(struct cfa_machine *m, const struct operands *o)
{
	set_from_cfa(m, o->a, CFA_EQUALS, factored(m, not_negative(m, o->b)));
}

static void run_val_offset_sf(struct cfa_machine *m, const struct operands *o)
{
	set_from_cfa(m, o->a, CFA_EQUALS, factored(m, (int64_t)o->b));
}

static void run_undefined(struct cfa_machine *m, const struct operands *o)
{
	set_register(m, o->a, (struct cfa_register){ .where = CFA_UNDEFINED });
}

static void run_same_value(struct cfa_machine *m, const struct operands *o)
{
	set_register(m, o->a, (struct cfa_register){ .where = CFA_UNSPECIFIED });
}

static void run_register(struct cfa_machine *m, const struct operands *o)
{
	set_register(m, o->a, (struct cfa_register){ .where = CFA_BEYOND });
}

static void run_restore(struct cfa_machine *m, const struct operands *o)
{
	struct cfa_state initial = m->common->initial;
	const struct cfa_register *r = register_in(&initial, o->a);

	if (r)
		set_register(m, o->a, *r);
}

static void set_by_expression(struct cfa_machine *m, const struct operands *o, enum cfa_where where)
{
	struct cfa_register value = { .where = CFA_BEYOND };
	struct unwind_value v;

	if (!register_in(&m->state, o->a))
		return;
	v = unwind_expr_eval(o->block, true);
	if (v.form == UNWIND_FORM_CFA || v.form == UNWIND_FORM_REG)
		value = (struct cfa_register){
			.where = where,
			.form = v.form,
			.reg = v.reg,
			.off = v.add,
		};
	set_register(m, o->a, value);
}

static void run_expression(struct cfa_machine *m, const struct operands *o)
{
	set_by_expression(m, o, CFA_SAVED);
}

static void run_val_expression(struct cfa_machine *m, const struct operands *o)
{
	set_by_expression(m, o, CFA_EQUALS);
}

/* --- the rest -------------------------------------------------------------------------------- */

static void run_nop(struct cfa_machine *m, const struct operands *o)
{
}

static void run_remember(struct cfa_machine *m, const struct operands *o)
{
	if (m->saved_count == CFA_SAVED_MAX)
		m->bad = true;
	else
		m->saved[m->saved_count++] = m->state;
}

static void run_restore_state(struct cfa_machine *m, const struct operands *o)
{
	if (m->saved_count == 0)
		m->bad = true;
	else
		m->state = m->saved[--m->saved_count];
}

/* By the low six bits where the two high ones are 0. */
static const struct instruction instructions[64] = {
	[DW_CFA_nop] = { { NONE, NONE }, run_nop },
	[DW_CFA_set_loc] = { { POINTER, NONE }, run_set_loc },
	[DW_CFA_advance_loc1] = { { U1, NONE }, run_advance },
	[DW_CFA_advance_loc2] = { { U2, NONE }, run_advance },
	[DW_CFA_advance_loc4] = { { U4, NONE }, run_advance },
	[DW_CFA_MIPS_advance_loc8] = { { U8, NONE }, run_advance },
	[DW_CFA_offset_extended] = { { ULEB, ULEB }, run_offset },
	[DW_CFA_offset_extended_sf] = { { ULEB, SLEB }, run_offset_sf },
	[DW_CFA_GNU_negative_offset_extended] = { { ULEB, ULEB }, run_negative_offset },
	[DW_CFA_val_offset] = { { ULEB, ULEB }, run_val_offset },
	[DW_CFA_val_offset_sf] = { { ULEB, SLEB }, run_val_offset_sf },
	[DW_CFA_restore_extended] = { { ULEB, NONE }, run_restore },
	[DW_CFA_undefined] = { { ULEB, NONE }, run_undefined },
	[DW_CFA_same_value] = { { ULEB, NONE }, run_same_value },
	[DW_CFA_register] = { { ULEB, ULEB }, run_register },
	[DW_CFA_remember_state] = { { NONE, NONE }, run_remember },
	[DW_CFA_restore_state] = { { NONE, NONE }, run_restore_state },
	[DW_CFA_def_cfa] = { { ULEB, ULEB }, run_def_cfa },
	[DW_CFA_def_cfa_sf] = { { ULEB, SLEB }, run_def_cfa_sf },
	[DW_CFA_def_cfa_register] = { { ULEB, NONE }, run_def_cfa_register },
	[DW_CFA_def_cfa_offset] = { { ULEB, NONE }, run_def_cfa_offset },
	[DW_CFA_def_cfa_offset_sf] = { { SLEB, NONE }, run_def_cfa_offset_sf },
	[DW_CFA_def_cfa_expression] = { { BLOCK, NONE }, run_def_cfa_expression },
	[DW_CFA_expression] = { { ULEB, BLOCK }, run_expression },
	[DW_CFA_val_expression] = { { ULEB, BLOCK }, run_val_expression },
	[DW_CFA_GNU_args_size] = { { ULEB, NONE }, run_nop },
};

static uint64_t read_operand(struct cfa_machine *m, enum operand kind, struct operands *o)
{
	static const uint8_t sizes[] = { [U1] = 1, [U2] = 2, [U4] = 4, [U8] = 8 };
	struct bytes *b = &m->program;

	switch (kind) {
	case NONE:
		return 0;
	case ULEB:
		return bytes_uleb(b);
	case SLEB:
		return (uint64_t)bytes_sleb(b);
	case POINTER:
		return cfa_pointer(b, m->common->pointer_encoding,
				   m->program_vaddr + (uint64_t)(b->p - m->program_start));
	case BLOCK:
		o->block = bytes_take(b, bytes_uleb(b));
		return 0;
	default:
		return bytes_number(b, sizes[kind]);
	}
}

static void run_instruction(struct cfa_machine *m)
{
	uint8_t byte = *m->program.p++, low = byte & 0x3f;
	struct operands o = { .a = low };

	switch (byte & 0xc0) {
	case DW_CFA_advance_loc:
		advance(m, low);
		return;
	case DW_CFA_offset:
		o.b = bytes_uleb(&m->program);
		run_offset(m, &o);
		return;
	case DW_CFA_restore:
		run_restore(m, &o);
		return;
	}
	if (!instructions[low].run) {
		m->bad = true;
		return;
	}
	o.a = read_operand(m, instructions[low].operands[0], &o);
	o.b = read_operand(m, instructions[low].operands[1], &o);
	if (!m->program.bad)
		instructions[low].run(m, &o);
}

void cfa_start(struct cfa_machine *m, const struct cfa_common *common, struct bytes program,
	       uint64_t vaddr, uint64_t loc)
{
	m->common = common;
	m->state = common->initial;
	m->saved_count = 0;
	m->program = program;
	m->program_vaddr = vaddr;
	m->program_start = program.p;
	m->loc = m->next = loc;
	m->advanced = m->bad = false;
}

enum cfa_step cfa_run(struct cfa_machine *m)
{
	m->loc = m->next;
	m->advanced = false;
	while (bytes_left(&m->program) > 0 && !m->advanced) {
		run_instruction(m);
		if (m->bad || m->program.bad)
			return CFA_BAD;
	}
	return m->advanced ? CFA_ADVANCED : CFA_ENDED;
}
