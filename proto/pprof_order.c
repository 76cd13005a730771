/* SPDX-License-Identifier: Apache-2.0 */
/* See pprof_order.h. */
#include "proto/pprof_order.h"

#include <errno.h>
#include <stdlib.h>

struct context {
	const struct profile *p;
	const struct pprof_order *order;
};

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_address(const void *a, const void *b, void *context_ptr)
{
	const struct context *context = context_ptr;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct profile_location *x = &context->p->locations[i];
	const struct profile_location *y = &context->p->locations[j];
	int result = compare(x->mapping_id, y->mapping_id);

	if (!result)
		result = compare(x->address, y->address);
	return result ? result : compare(i, j);
}

static int by_stack(const void *a, const void *b, void *context_ptr)
{
	const struct context *context = context_ptr;
	const uint32_t *ids = context->order->location_ids;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct profile_sample *x = &context->p->samples[i], *y = &context->p->samples[j];
	uint32_t m = x->location_count, n = y->location_count;
	int result = 0;

	while (!result && m && n)
		result = compare(ids[x->locations[--m] - 1], ids[y->locations[--n] - 1]);
	if (!result)
		result = compare(m, n);
	return result ? result : compare(i, j);
}

static uint32_t *numbers(size_t count)
{
	uint32_t *all = calloc(count + 1, sizeof(*all));

	for (uint32_t i = 0; all && i < count; i++)
		all[i] = i;
	return all;
}

static void order_functions(struct pprof_order *o, const struct profile *p)
{
	uint32_t count = 0;

	for (size_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[o->locations[i]];

		for (uint32_t line = 0; line < l->line_count; line++) {
			uint32_t id = l->lines[line].function_id;

			if (id && !o->function_ids[id - 1]) {
				o->functions[count] = id - 1;
				o->function_ids[id - 1] = ++count;
			}
		}
	}
	for (uint32_t i = 0; i < p->function_count; i++) {
		if (!o->function_ids[i]) {
			o->functions[count] = i;
			o->function_ids[i] = ++count;
		}
	}
}

int pprof_order_init(struct pprof_order *o, const struct profile *p)
{
	struct context context = { p, o };

	*o = (struct pprof_order){
		.samples = numbers(p->sample_count),
		.locations = numbers(p->location_count),
		.location_ids = calloc(p->location_count + 1, sizeof(uint32_t)),
		.functions = numbers(p->function_count),
		.function_ids = calloc(p->function_count + 1, sizeof(uint32_t)),
	};
	if (!o->samples || !o->locations || !o->location_ids || !o->functions || !o->function_ids) {
		pprof_order_fini(o);
		return -ENOMEM;
	}
	qsort_r(o->locations, p->location_count, sizeof(uint32_t), by_address, &context);
	for (uint32_t i = 0; i < p->location_count; i++)
		o->location_ids[o->locations[i]] = i + 1;
	order_functions(o, p);
	qsort_r(o->samples, p->sample_count, sizeof(uint32_t), by_stack, &context);
	return 0;
}

void pprof_order_fini(struct pprof_order *o)
{
	free(o->samples);
	free(o->locations);
	free(o->location_ids);
	free(o->functions);
	free(o->function_ids);
	*o = (struct pprof_order){ 0 };
}
