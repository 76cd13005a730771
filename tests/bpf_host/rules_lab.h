/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of the walk by unwind tables: a process of two files whose tables have one row for
 * each 256 bytes of code, that is for each "function". A function is named by its place in the
 * mapping; the rule of each can be set. Without a rule set a function has none.
 */
#ifndef TESTS_BPF_HOST_RULES_LAB_H
#define TESTS_BPF_HOST_RULES_LAB_H

#include "agent/collect/page_index.h"
#include "lab.h"

enum {
	RULES_GRAIN = 0x100, /* bytes of a function */
	RULES_ROWS = 0x100,  /* of a page */
	RULES_STRIDE = SONDE_INDEX_ROWS + RULES_ROWS,
	RULES_PAGES = (LAB_CODE_OFFSET + LAB_CODE_BYTES) >> SONDE_PAGE_SHIFT,
};

/* Where each file's first page lies: in different elements, the second's not at its beginning. */
#define RULES_EXE_FIRST 0u
#define RULES_LIB_FIRST (SONDE_ROWS_PER_ELEMENT + 777u)

static struct lab_process p;
static __u64 exe_id, lib_id;
static __u16 rules_used;

#define RULE(...) ((struct sonde_rule){ __VA_ARGS__ })
#define RULE_SP(offset) RULE(.cfa = SONDE_CFA_SP, .off = (offset))
#define RULE_SWITCH \
	RULE(.cfa = SONDE_CFA_FP_SWITCH, .off = 16, .fp = SONDE_FP_AT_CFA, .fp_off = -16)
#define RULE_END RULE(.cfa = SONDE_CFA_END)
#define RULE_SIGNAL(offset) RULE(.cfa = SONDE_CFA_SIGNAL, .off = (offset))

static inline __u64 id_at(__u64 addr)
{
	struct walk_state *s = walk_state(SONDE_CONTEXT_PERF);

	s->mm = (__u64)p.task->mm;
	s->addr = addr;
	assert_int_equal(vma_find(SONDE_CONTEXT_PERF), VMA_FOUND);
	return s->vma.file;
}

static inline void set_state(__u64 file, __u8 state)
{
	assert_int_equal(bpf_map_update_elem(&files, &file, &state, BPF_ANY), 0);
}

/* Rules change under a file's id in these tests only. */
static inline void forget_rules(void)
{
	static const struct sonde_rule_memo nothing;

	for (__u32 i = 0; i < SONDE_RULE_MEMOS; i++)
		bpf_map_update_elem(&rule_memos, &i, &nothing, BPF_ANY);
}

/* A row anywhere in the array. */
static inline void set_row(__u32 number, __u16 pc_low, __u16 rule)
{
	__u32 element = number / SONDE_ROWS_PER_ELEMENT;
	struct sonde_row *rows = bpf_map_lookup_elem(&unwind_rows, &element);

	assert_non_null(rows);
	rows[number % SONDE_ROWS_PER_ELEMENT] = (struct sonde_row){ pc_low, rule };
}

/* Row `i` of the page that lies at `first`. */
static inline void set_page_row(__u32 first, __u32 i, __u16 pc_low, __u16 rule)
{
	set_row(first + SONDE_INDEX_ROWS + i, pc_low, rule);
}

/* When the rows of a page are in place. */
static inline void index_page(__u32 first, __u32 count)
{
	__u32 element = first / SONDE_ROWS_PER_ELEMENT;
	struct sonde_row *rows = bpf_map_lookup_elem(&unwind_rows, &element);

	assert_non_null(rows);
	page_index_write(rows + first % SONDE_ROWS_PER_ELEMENT, count);
}

static inline void set_page(__u64 file, __u64 page, __u32 first, __u32 count)
{
	struct sonde_page_key key = { file, page };
	struct sonde_page value = { first, count };

	assert_int_equal(bpf_map_update_elem(&unwind_pages, &key, &value, BPF_ANY), 0);
}

static inline void drop_page(__u64 file, __u64 page)
{
	struct sonde_page_key key = { file, page };

	assert_int_equal(bpf_map_delete_elem(&unwind_pages, &key), 0);
}

static inline void empty_table(__u64 file, __u32 first)
{
	for (__u32 page = 0; page < RULES_PAGES; page++) {
		__u32 at = first + page * RULES_STRIDE;

		set_page(file, page, at, RULES_ROWS);
		for (__u32 i = 0; i < RULES_ROWS; i++)
			set_page_row(at, i, (__u16)(i * RULES_GRAIN), 0);
		index_page(at, RULES_ROWS);
	}
	set_state(file, SONDE_FILE_TABLE);
}

/* A number for the rule. */
static inline __u16 add_rule(struct sonde_rule rule)
{
	__u32 key = ++rules_used;

	assert_int_equal(bpf_map_update_elem(&unwind_rules, &key, &rule, BPF_ANY), 0);
	return rules_used;
}

/* The rule of the function at this address in LAB_CODE or LAB_LIB. */
static inline void set_rule(__u64 addr, struct sonde_rule rule)
{
	bool in_lib = addr >= LAB_LIB;
	__u64 off = addr - (in_lib ? LAB_LIB : LAB_CODE) + LAB_CODE_OFFSET;

	assert_int_equal(off % RULES_GRAIN, 0);
	set_page_row((in_lib ? RULES_LIB_FIRST : RULES_EXE_FIRST) +
			     (__u32)(off >> SONDE_PAGE_SHIFT) * RULES_STRIDE,
		     (__u32)(off / RULES_GRAIN % RULES_ROWS), (__u16)off, add_rule(rule));
}

static inline int rules_setup(void **state)
{
	host_reset();
	rules_used = 0;
	lab_process(&p, 100, 0, NULL, NULL);
	exe_id = id_at(LAB_CODE);
	lib_id = id_at(LAB_LIB);
	empty_table(exe_id, RULES_EXE_FIRST);
	empty_table(lib_id, RULES_LIB_FIRST);
	return 0;
}

/* ---- stacks: word `at` of the stack lies at SP(at) ---- */

#define SP(at) (LAB_STACK + (__u64)(at) * 8)
#define NO_FP 0x1111 /* in use as a plain register, leads nowhere */

static inline void begin_at(__u64 pc, __u64 sp)
{
	forget_rules();
	lab_begin(&p, pc);
	p.ctx.regs.sp = sp;
	p.ctx.regs.bp = NO_FP;
}

/* What a kernel leaves for a handler: the ucontext with all registers, at word `at`. */
static inline void push_ucontext(__u32 at, const struct arch_regs *r)
{
	__u64 *words = p.stack + at + UCONTEXT_R8 / 8;
	const __u64 regs[] = { r->r8,  r->r9, r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->di,
			       r->si, r->bp, r->bx,  r->dx,  r->ax,  r->cx,  r->sp,  r->ip };

	memcpy(words, regs, sizeof(regs));
}

/* ---- what came out ---- */

/* Frames as addresses in LAB_CODE or LAB_LIB; the walk must have ended whole. */
static inline void check_addrs(const __u64 *addrs, __u32 n, __u32 more)
{
	const struct sonde_user_stack *stack = lab_last_stack();

	assert_int_equal(stack->count, n + more);
	for (__u32 i = 0; i < n; i++) {
		bool in_lib = addrs[i] >= LAB_LIB;

		check_frame(stack, i, in_lib ? lib_id : exe_id,
			    addrs[i] - (in_lib ? LAB_LIB : LAB_CODE) + LAB_CODE_OFFSET);
	}
	lab_check_books();
}

static inline void check_unmarked(void)
{
	for (int i = SONDE_COUNT_TRUNCATED_DEPTH; i <= SONDE_COUNT_KERNEL_STACK_ERROR; i++)
		assert_int_equal(counter((enum sonde_counter)i), 0);
}

/* Samples; the stack must be whole and consist of these addresses, as they are looked up. */
#define CHECK_WHOLE(...) \
	do { \
		const __u64 want[] = { __VA_ARGS__ }; \
		lab_sample(&p); \
		check_addrs(want, ARRAY_SIZE(want), 0); \
		check_unmarked(); \
	} while (0)

/* The same for a stack that ends in a marker, counted once. */
#define CHECK_MARKED(id, ...) \
	do { \
		const __u64 want[] = { __VA_ARGS__ }; \
		lab_sample(&p); \
		check_addrs(want, ARRAY_SIZE(want), 1); \
		check_frame(lab_last_stack(), ARRAY_SIZE(want), SONDE_FRAME_MARKER, \
			    SONDE_MARKER_##id); \
		assert_int_equal(counter(SONDE_COUNT_##id), 1); \
	} while (0)

static inline void check_counts(__u64 by_table, __u64 by_pointer)
{
	assert_int_equal(counter(SONDE_COUNT_FRAMES_BY_TABLE), by_table);
	assert_int_equal(counter(SONDE_COUNT_FRAMES_BY_POINTER), by_pointer);
}

#endif
