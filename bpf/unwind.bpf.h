/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The walk up a user stack: by unwind tables where a file has one, else by frame pointers.
 *
 * A bounded loop calls one *global* function for each frame: the verifier checks a global
 * function once, not once for each turn (a prototype needed 27,000 instructions so, 220,000
 * with the function inlined; the build prints today's number). Global
 * functions take scalars only on 5.10, so the state lives in a per-CPU map.
 *
 * Rules: the interrupted pc is looked up as it is (also the one below a signal handler), return
 * addresses minus one. By frame pointer (see pointer_zero for 0): it must lead up the stack and
 * be aligned; not in code that is known to have none (SONDE_CFA_BARE). While a file's table is on its
 * way nothing is tried. Each return address must lie in an executable mapping. Whatever does not
 * hold ends the walk with a marker frame: no guess is kept.
 */
#ifndef BPF_UNWIND_BPF_H
#define BPF_UNWIND_BPF_H

#include "bpf/ask.bpf.h"
#include "bpf/rules.bpf.h"
#include "bpf/vma.bpf.h"

static __always_inline void push_frame(struct walk_state *s, __u64 file, __u64 off)
{
	__u32 n = s->stack.count;

	if (n >= SONDE_MAX_FRAMES)
		return;
	s->stack.frames[n & (SONDE_MAX_FRAMES - 1)].file = file;
	s->stack.frames[n & (SONDE_MAX_FRAMES - 1)].off = off;
	s->stack.count = n + 1;
	s->hash = hash_step(hash_step(s->hash, file), off);
}

/* Ends a stack with a marker frame and counts it; rare, see facts.bpf.h. */
__noinline int push_marker(__u32 context, __u32 marker, __u32 counter)
{
	struct walk_state *s = walk_state(context);

	if (!s || counter >= SONDE_COUNTER_COUNT)
		return 0;
	push_frame(s, SONDE_FRAME_MARKER, marker);
	count_one(s->slot, counter);
	return 0;
}

/* s->vma for s->addr, by the walk's small cache first; see vma_find for the result. */
static __always_inline int vma_cached(struct walk_state *s)
{
	int found;

	if (s->addr >= s->vma.start && s->addr < s->vma.end)
		return VMA_FOUND; /* that of the frame before: mostly so */
	for (int i = 0; i < VMA_CACHE_SIZE; i++) {
		const struct vma *seen = &s->cache[i & (VMA_CACHE_SIZE - 1)];

		if (s->addr >= seen->start && s->addr < seen->end) {
			s->vma = *seen;
			return VMA_FOUND;
		}
	}
	found = vma_find(s->context);
	if (found != VMA_FOUND)
		return found;
	s->vma.state = 0;
	if (s->vma.file & SONDE_FILE_ID_BIT && s->vma.is_code) {
		/* s->node[0] is still the VMA that vma_find verified. */
		struct vm_area_struct *vma = (struct vm_area_struct *)s->node[0];

		s->vma.state = file_state(s, BPF_CORE_READ(vma, vm_file), s->vma.file,
					  s->vma.start, s->vma.end);
	}
	if (s->vma.file == SONDE_FRAME_VDSO)
		s->vma.state = SONDE_FILE_TABLE;
	s->cache[s->cache_next & (VMA_CACHE_SIZE - 1)] = s->vma;
	s->cache_next++;
	return VMA_FOUND;
}

/* Pushes the frame of s->pc. False when the walk must end here. */
static __always_inline bool push_pc(struct walk_state *s)
{
	bool first = s->stack.count == 0;
	int found;

	s->addr = s->pc;
	found = vma_cached(s);
	if (found == VMA_BUSY) {
		push_marker(s->context, SONDE_MARKER_VMA_BUSY, SONDE_COUNT_VMA_BUSY);
		return false;
	}
	if (found != VMA_FOUND || !s->vma.is_code) {
		if (!first)
			push_marker(s->context, SONDE_MARKER_TRUNCATED_CODE, SONDE_COUNT_TRUNCATED_CODE);
		else if (s->in_user)
			push_marker(s->context, SONDE_MARKER_NO_MAPPING, SONDE_COUNT_NO_MAPPING);
		else /* in exec or exit: the new program is not mapped yet, or the old no more */
			push_marker(s->context, SONDE_MARKER_NO_USER_STACK, SONDE_COUNT_NO_USER_STACK);
		return false;
	}
	if (s->vma.file == SONDE_FRAME_ANON)
		s->bound_to_process = 1;
	push_frame(s, s->vma.file, s->pc + s->vma.delta);
	return true;
}

/*
 * What a frame pointer of 0, or a return address of 0 beside it, says. In a chain of frame
 * pointers, or in code of which nothing is known: the outermost frame. But where a
 * table covers the rest of the file rbp may be any register, and 0 since the start of the
 * program: only its entry (which has no unwind data in ld.so and musl) is an end then. The same in
 * JIT code: no thread begins there, but HotSpot uses rbp as it likes.
 */
static __always_inline enum step_result pointer_zero(struct walk_state *s)
{
	bool is_free = s->vma.state == SONDE_FILE_TABLE || s->vma.file == SONDE_FRAME_ANON;

	return s->fp_chained || !is_free || is_entry(s) ? STEP_END : STEP_POINTER;
}

/* The caller by the frame pointer. */
static __always_inline enum step_result pointer_apply(struct walk_state *s)
{
	__u64 fp, pc;

	if (!s->fp_known)
		return STEP_REGISTER;
	if (s->fp == 0)
		return pointer_zero(s);
	if ((s->fp < s->sp && !s->entered) || (s->fp & 7))
		return STEP_POINTER; /* does not lead up the stack */
	if (!stack_word(s, s->fp, &fp) || !stack_word(s, s->fp + sizeof(__u64), &pc))
		return STEP_READ;
	if (pc == 0)
		return pointer_zero(s); /* no caller: the same question */
	s->regs_known = 0;
	s->bx_slot = BX_UNKNOWN;
	s->sp = s->fp + 2 * sizeof(__u64);
	s->fp = fp;
	s->fp_chained = 1;
	s->pc = pc - 1;
	return STEP_CALLER;
}

/* Marks how a walk ended that did not reach the outermost frame. */
static __always_inline void mark_end(struct walk_state *s, enum step_result result)
{
	switch (result) {
	case STEP_POINTER:
		push_marker(s->context, SONDE_MARKER_TRUNCATED_FRAME, SONDE_COUNT_TRUNCATED_FRAME);
		return;
	case STEP_RULE:
		push_marker(s->context, SONDE_MARKER_TRUNCATED_RULE, SONDE_COUNT_TRUNCATED_RULE);
		return;
	case STEP_REGISTER:
		push_marker(s->context, SONDE_MARKER_TRUNCATED_REGISTER, SONDE_COUNT_TRUNCATED_REGISTER);
		return;
	case STEP_STUCK:
		push_marker(s->context, SONDE_MARKER_TRUNCATED_STUCK, SONDE_COUNT_TRUNCATED_STUCK);
		return;
	case STEP_BARE:
		push_marker(s->context, SONDE_MARKER_TRUNCATED_BARE, SONDE_COUNT_TRUNCATED_BARE);
		return;
	case STEP_TABLE:
		push_marker(s->context, SONDE_MARKER_TRUNCATED_TABLE, SONDE_COUNT_TRUNCATED_TABLE);
		return;
	case STEP_READ:
		push_marker(s->context, SONDE_MARKER_TRUNCATED_READ, SONDE_COUNT_TRUNCATED_READ);
		return;
	default:
		return;
	}
}

/* Pushes one frame and finds its caller. Returns 1 when the walk is over. */
__noinline int unwind_step(__u32 context)
{
	struct walk_state *s = walk_state(context);
	enum step_result result = STEP_POINTER;

	if (!s)
		return 1;
	if (s->stack.count >= SONDE_MAX_FRAMES - 1) {
		push_marker(s->context, SONDE_MARKER_TRUNCATED_DEPTH, SONDE_COUNT_TRUNCATED_DEPTH);
		return 1;
	}
	if (!push_pc(s))
		return 1;
	if (s->vma.state == SONDE_FILE_TABLE) {
		rule_find(context);
		result = rule_apply(s);
	}
	if (s->vma.state == SONDE_FILE_ASKED) {
		result = STEP_TABLE; /* a frame pointer would be a guess: the file may not use them */
	} else if (result != STEP_POINTER) {
		s->by_table++;
	} else {
		result = pointer_apply(s);
		s->by_pointer++;
	}
	if (result == STEP_CALLER)
		return 0;
	mark_end(s, result);
	return 1;
}

/* Walks from the registers in s; the frames and their hash are in s->stack and s->hash. */
static __always_inline void unwind(struct walk_state *s, __u32 context)
{
	s->hash = settings.seed;
	s->bound_to_process = 0;
	s->regs_known = s->fp_known = 1;
	s->bx_slot = 0;
	s->fp_chained = 0;
	s->entered = 0;
	s->page_key.file = 0;
	s->by_table = s->by_pointer = 0;
	s->stack.count = 0;
	s->stretch_size = 0;
	s->vma.end = 0;
	for (int i = 0; i < VMA_CACHE_SIZE; i++)
		s->cache[i].end = 0;
	for (int i = 0; i < SONDE_MAX_FRAMES; i++) {
		if (unwind_step(context))
			break;
	}
	count_more(s->slot, SONDE_COUNT_FRAMES_BY_TABLE, s->by_table);
	count_more(s->slot, SONDE_COUNT_FRAMES_BY_POINTER, s->by_pointer);
}

#endif
