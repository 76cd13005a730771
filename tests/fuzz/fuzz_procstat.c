/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: /proc/<pid>/stat. A process chooses its own name, and no name may change the
 * number that is read behind it.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/proc.h"

enum { NAME_BYTES = 64, TICKS = 987654 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(const uint8_t *data, size_t size)
{
	static const char rest[] = ") S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 2 3\n";
	char text[NAME_BYTES + sizeof(rest) + 8] = "17 (";
	size_t len = strlen(text), name = size < NAME_BYTES ? size : NAME_BYTES;
	uint64_t ticks = 0;

	memcpy(text + len, data, name);
	memcpy(text + len + name, rest, sizeof(rest) - 1);
	assert(proc_stat_start_ticks(text, len + name + sizeof(rest) - 1, &ticks) == 0);
	assert(ticks == TICKS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint64_t untouched = 4711;
	uint64_t ticks = untouched;
	char *text = malloc(size ? size : 1);

	memcpy(text, data, size);
	if (proc_stat_start_ticks(text, size, &ticks))
		assert(ticks == untouched);
	free(text);
	check_name(data, size);
	return 0;
}
