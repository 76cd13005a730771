/* SPDX-License-Identifier: Apache-2.0 */
/* A library whose only function does next to nothing: callers spend their time in the PLT (U-03). */
#include "shapes.h"

uint64_t shape_tiny(uint64_t x)
{
	return x + 1;
}
