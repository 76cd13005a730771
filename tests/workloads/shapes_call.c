/* SPDX-License-Identifier: Apache-2.0 */
/* A library that calls into several others by its PLT, for the lazy resolver (U-03). */
#include <stdlib.h>
#include <string.h>

#include "shapes.h"

uint64_t shape_call_tiny(uint64_t x);
uint64_t shape_call_tiny(uint64_t x)
{
	return shape_tiny(x) + (uint64_t)labs((long)x) + (getenv("SHAPES_NOT_SET") != NULL) +
	       strlen(strchr("a:b", (int)(x + ':' - 1)));
}
