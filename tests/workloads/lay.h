/* SPDX-License-Identifier: Apache-2.0 */
/* What dlrun wants of a library: a table of functions and the names they must be shown by. */
#ifndef WORKLOADS_LAY_H
#define WORKLOADS_LAY_H

#include "burn.h"

struct lay_entry {
	const char *name; /* 15 bytes at most: it is the thread's name meanwhile; NULL ends */
	burn_fn fn;
	unsigned int weight; /* percent */
};

extern const struct lay_entry lay_table[];

#endif
