/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of Go's records of goroutines, from machine code; see unwind_go_stack.h. Only whole
 * sequences of instructions count, as every Go since 1.16 has them.
 */
#include "symbolizer/unwind_go_stack.h"

#include <string.h>

enum { RAX, RCX, RDX, RBX, RSP, RBP };
enum { MOV_STORE = 0x89, MOV_LOAD = 0x8b, CMP_STORE = 0x39, CMP_LOAD = 0x3b };

struct code {
	const uint8_t *at;
	const uint8_t *end;
};

static bool skip_bytes(struct code *c, const uint8_t *bytes, size_t len)
{
	if ((size_t)(c->end - c->at) < len || memcmp(c->at, bytes, len) != 0)
		return false;
	c->at += len;
	return true;
}

#define SKIP(code, ...)                                                                            \
	skip_bytes(code, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static bool take_word(struct code *c, int32_t *ret_value)
{
	if ((size_t)(c->end - c->at) < sizeof(*ret_value))
		return false;
	memcpy(ret_value, c->at, sizeof(*ret_value));
	c->at += sizeof(*ret_value);
	return true;
}

struct operands {
	unsigned int reg;
	unsigned int base;
	int32_t off;
};

/* An instruction of 64 bits on a register and on memory at another with an offset, both old ones. */
static bool take(struct code *c, uint8_t opcode, struct operands *ret_operands)
{
	struct code next = *c;
	struct operands o;
	uint8_t mode;

	if (!SKIP(&next, 0x48, opcode) || next.at == next.end)
		return false;
	mode = *next.at >> 6;
	o.reg = *next.at >> 3 & 7;
	o.base = *next.at & 7;
	next.at++;
	if (o.base == RSP || (mode != 1 && mode != 2))
		return false;
	if (mode == 2) {
		if (!take_word(&next, &o.off))
			return false;
	} else {
		if (next.at == next.end)
			return false;
		o.off = (int8_t)*next.at++;
	}
	*c = next;
	*ret_operands = o;
	return true;
}

static bool is_offset(int32_t off)
{
	return off > 0 && off < 0x8000 && off % 8 == 0;
}

/* "mov %fs:OFF, REG", or by way of rcx; then "mov M(REG), ...". */
static bool take_g(struct code c, struct unwind_go_stack *s)
{
	struct operands o;
	uint8_t reg;
	int32_t tls = 0;
	bool is_direct = !SKIP(&c, 0x48, 0xc7, 0xc0 | RCX);

	if (!is_direct && !take_word(&c, &tls))
		return false;
	if (!SKIP(&c, 0x64, 0x48, MOV_LOAD) || c.at == c.end)
		return false;
	reg = *c.at >> 3 & 7;
	if ((*c.at++ & 0xc7) != (is_direct ? RSP : RCX))
		return false;
	if (is_direct && (!SKIP(&c, 0x25) || !take_word(&c, &tls)))
		return false;
	if (!take(&c, MOV_LOAD, &o) || o.base != reg || !is_offset(o.off))
		return false;
	s->tls = tls;
	s->m = (uint16_t)o.off;
	return true;
}

/* The return address and the stack pointer behind it to the gobuf, then rbp. */
static bool take_sched(struct code c, struct unwind_go_stack *s)
{
	struct operands pc, sp, bp;

	if (!SKIP(&c, 0x48, MOV_LOAD, 0x04, 0x24) || !take(&c, MOV_STORE, &pc) || pc.reg != RAX)
		return false;
	if (!SKIP(&c, 0x48, 0x8d, 0x44, 0x24, 8) || !take(&c, MOV_STORE, &sp) || sp.reg != RAX)
		return false;
	if (!take(&c, MOV_STORE, &bp) || bp.reg != RBP || bp.base != pc.base || sp.base != pc.base)
		return false;
	if (!is_offset(sp.off) || pc.off != sp.off + 8 || bp.off < sp.off + 24 ||
	    bp.off > sp.off + 56 || bp.off % 8)
		return false;
	s->sched = (uint16_t)sp.off;
	s->bp = (uint8_t)(bp.off - sp.off);
	return true;
}

void unwind_go_stack_morestack(struct unwind_go_stack *s, const uint8_t *code, size_t len)
{
	bool has_g = false, has_sched = false;

	for (size_t i = 0; i < len && !(has_g && has_sched); i++) {
		struct code c = { code + i, code + len };

		has_g = has_g || take_g(c, s);
		has_sched = has_sched || take_sched(c, s);
	}
	s->has_sched = has_g && has_sched;
}

/* rax, the thread's g, is compared with two fields of m: gsignal, curg; which is loaded at the end. */
void unwind_go_stack_systemstack(struct unwind_go_stack *s, const uint8_t *code, size_t len)
{
	int32_t curg = 0;
	size_t compared = 0;

	s->has_curg = false;
	for (size_t i = 0; i < len; i++) {
		struct code c = { code + i, code + len };
		struct operands o;

		if ((take(&c, CMP_LOAD, &o) || take(&c, CMP_STORE, &o)) && o.reg == RAX &&
		    o.base == RBX) {
			curg = o.off;
			compared++;
		} else if (compared == 2 && take(&c, MOV_LOAD, &o) && o.reg == RAX &&
			   o.base == RBX && o.off == curg && is_offset(curg)) {
			s->curg = (uint16_t)curg;
			s->has_curg = true;
		}
	}
	s->has_curg = s->has_curg && compared == 2;
}

bool unwind_go_stack_rule(const struct unwind_go_stack *s, struct unwind_rule *ret_rule)
{
	if (!s->has_sched || !s->has_curg || !s->has_execute)
		return false;
	*ret_rule = (struct unwind_rule){
		.cfa = UNWIND_GO_STACK,
		.cfa_reg = s->bp,
		.cfa_off = s->tls,
		.cfa_add = s->m | s->curg << 16,
		.fp_off = s->sched,
	};
	return true;
}
