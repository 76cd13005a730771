/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: jitdumps. The first 2 bytes choose since when there are samples. */
#include <assert.h>

#include "symbolizer/jitdump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jitdump *dump;
	struct sym_hit hit;
	uint64_t from;

	if (size < 2)
		return 0;
	from = 1 + (uint64_t)data[0] * 256 + data[1];
	if (jitdump_parse(data + 2, size - 2, 0, from, &dump))
		return 0;
	assert(jitdump_bad_records(dump) <= size);
	for (uint64_t addr = 0; addr < 0x4000; addr += 13) {
		enum sym_reason reason = jitdump_find(dump, addr, from, &hit);

		assert(reason != SYM_OK || (hit.start <= addr && hit.name[0]));
		/* What lies there now is never in doubt, once the samples are younger. */
		if (!jitdump_is_moving(dump, from))
			assert(reason != SYM_JIT_CHANGED);
	}
	assert(jitdump_find(dump, UINT64_MAX, UINT64_MAX, &hit) != SYM_JIT_CHANGED);
	jitdump_free(dump);
	return 0;
}
