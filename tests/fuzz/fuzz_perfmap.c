/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: perf maps. Each look-up gives a non-empty name from below the address, or none. */
#include <assert.h>

#include "symbolizer/symbolizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sym_perfmap *map;
	struct sym_hit hit;

	if (sym_perfmap_parse((const char *)data, size, &map))
		return 0;
	assert(sym_perfmap_bad_lines(map) <= size);
	for (uint64_t addr = 0; addr < 0x4000; addr += 7) {
		if (sym_perfmap_find(map, addr, UINT64_MAX, &hit) == SYM_OK)
			assert(hit.start <= addr && hit.name[0]);
	}
	sym_perfmap_find(map, UINT64_MAX, UINT64_MAX, &hit);
	assert(!sym_perfmap_is_moving(map, UINT64_MAX));
	sym_perfmap_free(map);
	return 0;
}
