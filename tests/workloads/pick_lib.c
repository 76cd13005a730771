/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library for dlrun whose symbols are easy to choose wrongly (case S-08): a hand-written function
 * without a size, one between two others whose own symbol is removed after linking
 * (pick_nameless), an ifunc, a hot PLT, and version markers (by pick.map).
 */
#include "lay.h"

uint64_t pick_tiny(uint64_t x);

#define SPIN_BODY(iters) \
	uint64_t x = (iters) | 1; \
	KEEP_FRAME(); \
	for (uint64_t i = 0; i < (iters); i++) { \
		x *= 0x9e3779b97f4a7c15ULL; \
		__asm__ volatile("" : "+r"(x)); \
	} \
	return x

#define LOCAL BURN_APART __attribute__((used)) static uint64_t

LOCAL pick_first(uint64_t iters)
{
	SPIN_BODY(iters);
}

LOCAL pick_nameless(uint64_t iters)
{
	SPIN_BODY(iters);
}

LOCAL pick_last(uint64_t iters)
{
	SPIN_BODY(iters);
}

#if defined(__x86_64__)
__asm__(".text\n"
	".type pick_nosize,@function\n"
	"pick_nosize:\n"
	"	push %rbp\n"
	"	mov %rsp,%rbp\n"
	"	lea 1(%rdi),%rcx\n"
	"1:	imul %rcx,%rax\n"
	"	dec %rcx\n"
	"	jnz 1b\n"
	"	pop %rbp\n"
	"	ret\n");
uint64_t pick_nosize(uint64_t iters);
#else
#define pick_nosize pick_first
#endif

LOCAL pick_impl(uint64_t iters)
{
	SPIN_BODY(iters);
}

__attribute__((used)) static burn_fn pick_resolve(void)
{
	return pick_impl;
}

uint64_t pick_ifunc(uint64_t iters) __attribute__((ifunc("pick_resolve")));

/* Exported, so that the call below goes through the PLT. */
__attribute__((noinline)) uint64_t pick_tiny(uint64_t x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

LOCAL pick_plt_loop(uint64_t iters)
{
	uint64_t x = 0;

	KEEP_FRAME();
	for (uint64_t i = 0; i < iters / 2; i++)
		x = pick_tiny(x);
	return x;
}

const struct lay_entry lay_table[] = {
	{ "pick_first", pick_first, 15 },
	{ "pick_nameless", pick_nameless, 15 },
	{ "pick_last", pick_last, 15 },
	{ "pick_nosize", pick_nosize, 15 },
	{ "pick_impl", pick_ifunc, 20 },
	{ "pick_plt_loop", pick_plt_loop, 20 },
	{ NULL, NULL, 0 },
};
