/* SPDX-License-Identifier: Apache-2.0 */
/* Part of "shapes", built without unwind tables but with frame pointers (U-02). */
#include "shapes.h"

APART uint64_t fp_inner(shape_fn fn, uint64_t x);
APART uint64_t fp_inner(shape_fn fn, uint64_t x)
{
	return fn(x + 1) + 1;
}

APART uint64_t fp_outer(shape_fn fn, uint64_t x)
{
	return fp_inner(fn, x + 1) + 1;
}
