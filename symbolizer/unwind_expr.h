/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF expressions in call frame information, worked out symbolically: either the result
 * has one of the forms that a rule can hold, or it is beyond us.
 */
#ifndef SYMBOLIZER_UNWIND_EXPR_H
#define SYMBOLIZER_UNWIND_EXPR_H

#include "symbolizer/unwind_bytes.h"
#include "symbolizer/unwind_dwarf.h"

enum unwind_form {
	UNWIND_FORM_OTHER,  /* not understood */
	UNWIND_FORM_NUMBER, /* add */
	UNWIND_FORM_CFA,    /* CFA + add */
	UNWIND_FORM_REG,    /* reg + add */
	UNWIND_FORM_DEREF,  /* *(reg + off) + add */
	UNWIND_FORM_PLT,    /* rsp + off + ((rip & 15) >= add ? 8 : 0) */
};

struct unwind_value {
	enum unwind_form form;
	uint32_t reg; /* DWARF number */
	int64_t off;
	int64_t add;
};

/*
 * The value of an expression of known extent. `on_cfa`: the CFA lies on the stack when it
 * starts (expressions for registers), which an expression for the CFA itself has not.
 */
struct unwind_value unwind_expr_eval(struct bytes expr, bool on_cfa);

#endif
