/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where Go's runtime notes what a goroutine did whose stack it is about to replace: morestack leaves
 * that stack and does not come back, so that only the runtime's records lead to it. The layout of the
 * records differs between versions of Go, and is read from the code that writes them.
 */
#ifndef SYMBOLIZER_UNWIND_GO_STACK_H
#define SYMBOLIZER_UNWIND_GO_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/unwind.h"

/* A thread's g (in its TLS) has an m, that a curg, and that a gobuf: sp, pc, g, ..., bp. */
struct unwind_go_stack {
	bool has_sched, has_curg, has_execute;
	int32_t tls;    /* of g, from the thread's fs */
	uint16_t m;     /* in g */
	uint16_t curg;  /* in m */
	uint16_t sched; /* in g: the gobuf */
	uint8_t bp;     /* in the gobuf */
};

/* What the code of runtime.morestack and of runtime.systemstack tells, if it is as expected. */
void unwind_go_stack_morestack(struct unwind_go_stack *s, const uint8_t *code, size_t len);
void unwind_go_stack_systemstack(struct unwind_go_stack *s, const uint8_t *code, size_t len);

/* The rule that leads from morestack to the goroutine; false if something is not known. */
bool unwind_go_stack_rule(const struct unwind_go_stack *s, struct unwind_rule *ret_rule);

#endif
