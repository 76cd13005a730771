/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the program "shapes" call in each other. */
#ifndef WORKLOADS_SHAPES_H
#define WORKLOADS_SHAPES_H

#include <stdint.h>

#define APART __attribute__((noipa))

typedef uint64_t (*shape_fn)(uint64_t x);

/* Burns for a while; the leaf of most shapes. */
uint64_t shape_burn(uint64_t x);

/* shapes_fp.c: frame pointers, no unwind tables. fp_outer <- fp_inner <- fn. */
uint64_t fp_outer(shape_fn fn, uint64_t x);

/* shapes_asm.S, without unwind data: calls fn(x), with and without a frame of its own. */
uint64_t asm_framed(shape_fn fn, uint64_t x);
uint64_t asm_bare(shape_fn fn, uint64_t x);

/* shapes_lib.c */
uint64_t shape_tiny(uint64_t x);

#endif
