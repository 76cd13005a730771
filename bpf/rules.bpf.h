/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unwind tables: finding the rule that holds at a place in a file, and applying it to the
 * registers of a frame to get those of its caller. x86-64.
 *
 * A rule is exact or it is not used: no row of another place stands in, no register is taken
 * for known that is not.
 */
#ifndef BPF_RULES_BPF_H
#define BPF_RULES_BPF_H

#include "bpf/regs.bpf.h"
#include "bpf/state.bpf.h"

/* ucontext of a signal frame: offsets of saved registers (asm/sigcontext.h). */
#define UCONTEXT_R8 40  /* r8 to r15 follow one another */
#define UCONTEXT_RDI 104 /* rdi rsi rbp rbx rdx rax rcx rsp rip */

/* What applying a rule came to. */
enum step_result {
	STEP_CALLER, /* registers are those of the caller; pc is its return address minus one */
	STEP_END,    /* this was the outermost frame */
	STEP_POINTER, /* no rule: the frame pointer may tell */
	STEP_RULE,
	STEP_REGISTER,
	STEP_STUCK,
	STEP_READ,
	STEP_BARE,
	STEP_TABLE, /* a table is on its way */
};

/*
 * The number of the rule that holds at `low` in a page: the index gives the rows of its block,
 * binary search the last of them at or below it. Without branches, for the verifier's sake.
 * Rule 0 is "none".
 */
static __always_inline __u32 page_search(const struct sonde_page *page, __u32 low)
{
	const __u64 row_mask = SONDE_ROWS_PER_ELEMENT - 1, index_mask = 2 * row_mask + 1;
	__u32 element = page->first / SONDE_ROWS_PER_ELEMENT, block = low >> SONDE_BLOCK_SHIFT;
	__u64 first = page->first % SONDE_ROWS_PER_ELEMENT, at, left;
	void *array = bpf_map_lookup_elem(&unwind_rows, &element);
	struct sonde_row *rows;
	const __u16 *index;
	__u32 zero = 0;

	if (!array)
		return 0;
	rows = bpf_map_lookup_elem(array, &zero);
	index = (const __u16 *)rows;
	if (!rows || !page->count)
		return 0;
	at = index[(2 * first + block) & index_mask];
	left = block == SONDE_BLOCKS - 1 ? page->count - 1
					 : index[(2 * first + block + 1) & index_mask];
	left = left - at + 1;
	at += first + SONDE_INDEX_ROWS;
	for (int i = 0; i < SONDE_SEARCH_STEPS; i++) {
		__u64 half = left >> 1, pc, up;

		if (!half)
			break;
		pc = rows[(at + half) & row_mask].pc_low;
		up = (pc - (__u64)low - 1) >> 63; /* 1 if pc <= low */

		at += half * up;
		left = half + (left - half - half) * up;
	}
	return rows[at & row_mask].rule;
}

/* The rule for `off` in the file of s->vma out of its table into s->rule; false: no such page. */
static __always_inline bool table_find(struct walk_state *s, __u64 off)
{
	struct sonde_page *page;
	struct sonde_rule *rule;
	__u32 number;

	if (s->page_key.file != s->vma.file || s->page_key.page != off >> SONDE_PAGE_SHIFT) {
		s->page_key.file = s->vma.file;
		s->page_key.page = off >> SONDE_PAGE_SHIFT;
		page = bpf_map_lookup_elem(&unwind_pages, &s->page_key);
		if (page)
			s->page = *page;
		else
			s->page.count = 0;
	}
	number = page_search(&s->page, off & ((1 << SONDE_PAGE_SHIFT) - 1));
	rule = bpf_map_lookup_elem(&unwind_rules, &number);
	if (rule)
		s->rule = *rule;
	return rule && number;
}

/*
 * The rule for s->pc in the file of s->vma into s->rule, out of this CPU's memory of those found
 * before: most callers of one sample were callers of an earlier one, and to find a rule anew
 * touches eight cache lines, all of them cold when a sample comes. What holds at an offset of a
 * file never changes under the file's id, so nothing is taken out but by another one.
 */
__noinline int rule_find(__u32 context)
{
	struct walk_state *s = walk_state(context);
	struct sonde_rule_memo *memo;
	__u64 off;
	__u32 at;

	if (!s)
		return 0;
	off = s->pc + s->vma.delta;
	at = bpf_get_smp_processor_id() * SONDE_RULE_MEMOS +
	     (hash_step(s->vma.file, off) & (SONDE_RULE_MEMOS - 1));
	memo = bpf_map_lookup_elem(&rule_memos, &at);
	if (memo && memo->file == s->vma.file && memo->off == off) {
		s->rule = memo->rule;
		return 0;
	}
	s->rule.cfa = SONDE_CFA_NONE;
	if (table_find(s, off) && memo) {
		memo->file = s->vma.file;
		memo->off = off;
		memo->rule = s->rule;
	}
	return 0;
}

static __always_inline bool read_word(__u64 addr, __u64 *to)
{
	return bpf_probe_read_user(to, sizeof(*to), (void *)addr) == 0;
}

/*
 * A word of the stack, out of a stretch that is read at once: a call of the helper takes 44 ns
 * for 8 bytes and 55 for 256 [6.18, x86-64], and the words of the next frames lie above.
 */
static __always_inline bool stack_word(struct walk_state *s, __u64 addr, __u64 *to)
{
	__u64 at = addr - s->stretch_start;

	if (at & 7 || at >= s->stretch_size) {
		s->stretch_start = addr;
		s->stretch_size = sizeof(s->stretch);
		/* Near the end of the mapping only the word itself may be there. */
		if (bpf_probe_read_user(s->stretch, sizeof(s->stretch), (void *)addr)) {
			s->stretch_size = 0;
			return read_word(addr, to);
		}
		at = 0;
	}
	*to = s->stretch[at / 8 & (STRETCH_WORDS - 1)];
	return true;
}

/* A signal handler's frame: every register of the interrupted code lies in memory. */
static __always_inline enum step_result rule_signal(struct walk_state *s)
{
	__u64 context = s->sp + s->rule.off, *words = s->node; /* scratch by now */

	if (bpf_probe_read_user(&s->gprs[8], 8 * sizeof(__u64), (void *)(context + UCONTEXT_R8)) ||
	    bpf_probe_read_user(words, 9 * sizeof(__u64), (void *)(context + UCONTEXT_RDI)))
		return STEP_READ;
	s->gprs[5] = words[0];
	s->gprs[4] = words[1];
	s->gprs[6] = s->fp = words[2];
	s->gprs[3] = words[3];
	s->gprs[1] = words[4];
	s->gprs[0] = words[5];
	s->gprs[2] = words[6];
	s->gprs[7] = s->sp = words[7];
	s->pc = words[8];
	s->regs_known = s->fp_known = 1;
	s->bx_slot = 0;
	s->fp_chained = 0;
	return STEP_CALLER;
}

/*
 * From Go's morestack, on the thread's stack, to the function that needed more: where the runtime noted
 * that it was, in its prologue, while its stack is being replaced. Frame pointers may lead to the old
 * stack or to the new one meanwhile. A thread without a goroutine has ended its turn.
 */
__noinline int rule_go_stack(__u32 context)
{
	struct walk_state *s = walk_state(context);
	__u64 *words, g, m, goroutine;

	if (!s)
		return STEP_RULE;
	words = s->node; /* scratch by now: sp, pc, g, ..., fp */
	if (!read_word(thread_base() + (__s64)s->rule.off, &g) ||
	    !read_word(g + (s->rule.add & 0xffff), &m) ||
	    !read_word(m + ((__u32)s->rule.add >> 16), &goroutine))
		return STEP_READ;
	if (!goroutine)
		return STEP_END;
	if (bpf_probe_read_user(words, 8 * sizeof(__u64), (void *)(goroutine + (__s64)s->rule.fp_off)))
		return STEP_READ;
	/* It runs itself: then its record is an old one. Or that is no record. */
	if (goroutine == g || words[2] != goroutine || !words[0] || !words[1])
		return STEP_RULE;
	s->sp = words[0];
	s->pc = words[1] - 1;
	s->fp = words[s->rule.reg / 8 & 7];
	s->entered = s->stack.count + 1;
	s->fp_known = 1;
	s->regs_known = s->fp_chained = 0;
	s->bx_slot = BX_UNKNOWN;
	return STEP_CALLER;
}

/*
 * A register by which the frame finds its CFA. Behind the first frame only rbx can be told, which
 * ld.so's resolver needs: not its value is kept, which would cost a read for each frame, but
 * where it was saved last.
 */
static __always_inline enum step_result rule_register(struct walk_state *s, __u64 *value)
{
	*value = s->gprs[s->rule.reg & (DWARF_REGISTERS - 1)];
	if (s->regs_known)
		return STEP_CALLER;
	if (s->rule.reg != DWARF_RBX || s->bx_slot == BX_UNKNOWN)
		return STEP_REGISTER;
	return !s->bx_slot || read_word(s->bx_slot, value) ? STEP_CALLER : STEP_READ;
}

/* The CFA by s->rule. */
static __always_inline enum step_result rule_cfa(struct walk_state *s, __u64 *cfa)
{
	__u64 off = (__s64)s->rule.off, base = s->sp;
	enum step_result result;

	switch (s->rule.cfa) {
	case SONDE_CFA_SP:
	case SONDE_CFA_SP_DEREF:
		break;
	case SONDE_CFA_FP:
	case SONDE_CFA_FP_DEREF:
	case SONDE_CFA_FP_SWITCH:
		if (!s->fp_known)
			return STEP_REGISTER;
		base = s->fp;
		break;
	case SONDE_CFA_REG:
		result = rule_register(s, &base);
		if (result != STEP_CALLER)
			return result;
		break;
	case SONDE_CFA_PLT:
		off += (s->pc & 15) >= (__u64)s->rule.add ? 8 : 0;
		break;
	default:
		return STEP_RULE;
	}
	*cfa = base + off;
	if (s->rule.cfa == SONDE_CFA_SP_DEREF || s->rule.cfa == SONDE_CFA_FP_DEREF) {
		if (!read_word(*cfa, cfa))
			return STEP_READ;
		*cfa += (__s64)s->rule.add;
	}
	return STEP_CALLER;
}

/*
 * Whether this is the code that the kernel entered the program by: sp is still what it was then,
 * but for an alignment downwards (musl) or a word taken off (argc).
 */
static __always_inline bool is_entry(struct walk_state *s)
{
	struct mm_struct *mm = (struct mm_struct *)s->mm;

	return s->sp - BPF_CORE_READ(mm, start_stack) + 16 <= 32;
}

/* Applies s->rule: the registers become those of the caller. */
static __always_inline enum step_result rule_apply(struct walk_state *s)
{
	enum step_result result;
	__u64 cfa, pc, fp = s->fp;

	if (s->rule.cfa == SONDE_CFA_NONE) {
		if (s->entered != s->stack.count)
			return STEP_POINTER;
		s->rule.cfa = SONDE_CFA_SP; /* only stripped programs do not say so themselves */
		s->rule.off = 8;
		s->rule.fp = SONDE_FP_SAME;
	}
	if (s->rule.cfa == SONDE_CFA_END)
		return STEP_END;
	if (s->rule.cfa == SONDE_CFA_BARE)
		return s->fp == 0 && is_entry(s) ? STEP_END : STEP_BARE;
	if (s->rule.cfa == SONDE_CFA_SIGNAL)
		return rule_signal(s);
	if (s->rule.cfa == SONDE_CFA_GO_STACK)
		return rule_go_stack(s->context);
	result = rule_cfa(s, &cfa);
	if (result != STEP_CALLER)
		return result;
	/* From one stack to another neither direction is wrong; the number of frames is the bound. */
	if (cfa <= s->sp && s->rule.cfa != SONDE_CFA_FP_SWITCH)
		return STEP_STUCK;
	/* The frame pointer first: it lies below the return address, in one stretch with it. */
	if (s->rule.fp == SONDE_FP_AT_CFA || (s->rule.fp == SONDE_FP_AT_FP && s->fp_known)) {
		/* Where it cannot be read it is lost; nobody may need it any more. */
		s->fp_known = stack_word(s, (s->rule.fp == SONDE_FP_AT_CFA ? cfa : s->fp) +
						    (__s64)s->rule.fp_off, &fp);
	} else if (s->rule.fp != SONDE_FP_SAME) {
		s->fp_known = 0;
	}
	if (!stack_word(s, cfa - 8, &pc))
		return STEP_READ;
	if (s->rule.bx != SONDE_BX_SAME)
		s->bx_slot = s->rule.bx ? cfa - 8 * (__u64)s->rule.bx : BX_UNKNOWN;
	s->regs_known = 0;
	s->fp_chained = s->rule.cfa == SONDE_CFA_FP_SWITCH; /* that is one of frame pointers */
	s->sp = cfa;
	s->fp = fp;
	s->pc = pc - 1;
	return pc ? STEP_CALLER : STEP_END;
}

#endif
