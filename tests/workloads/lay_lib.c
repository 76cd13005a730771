/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library for dlrun, linked in many layouts (cases S-01, S-02, S-03): constants before the code,
 * so that file offset and address part ways under lld, a function on a page of its own, and with
 * -DLAY_SECOND_SEGMENT one in a second executable segment.
 */
#include "lay.h"

#ifdef LAY_SECOND_SEGMENT
#define SECOND __attribute__((section("text_two")))
#else
#define SECOND
#endif

extern const unsigned char lay_constants[70000];
const unsigned char lay_constants[70000] = { 1, 2, 3 };

DEFINE_BURN(lay_60)
SECOND DEFINE_BURN(lay_10)

/* The page in the middle of the text that dlrun -p protects differently. */
__attribute__((aligned(4096))) DEFINE_BURN(lay_30)
__attribute__((aligned(4096))) DEFINE_BURN(lay_pad)

const struct lay_entry lay_table[] = {
	{ "lay_60", lay_60, 60 },
	{ "lay_30", lay_30, 30 },
	{ "lay_10", lay_10, 10 },
	{ NULL, NULL, 0 },
};
