/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: /proc/stat, and books made of whatever numbers it gave. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/collect/reconcile.h"

enum { CPUS = 4, PERIOD = 10000000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t idle[CPUS] = { 0 };
	char *text = malloc(size ? size : 1);
	struct reconcile r;

	memcpy(text, data, size);
	reconcile_parse_idle(text, size, PERIOD, idle, CPUS);
	free(text);
	if (reconcile_init(&r, CPUS))
		return 0;
	for (size_t cpu = 0; cpu < CPUS; cpu++) {
		struct cpu_books now = { .expected = size, .received = size / 2,
					 .idle_ns = idle[cpu] };

		reconcile_add(&r, cpu, &now, PERIOD);
	}
	assert(r.expected == CPUS * (size / 2) + r.missed + r.missed_idle);
	reconcile_fini(&r);
	return 0;
}
