/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: /proc/PID/maps, whose paths the process chooses, looked through for a jitdump. */
#include <assert.h>
#include <string.h>

#include "symbolizer/jitdump_place.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char name[] = "/jit-42.dump";
	struct jitdump_place place;
	size_t len;

	if (jitdump_place_parse((const char *)data, size, 42, &place))
		return 0;
	assert(memchr(place.range, 0, sizeof(place.range)) && !strchr(place.range, ' '));
	assert(memchr(place.path, 0, sizeof(place.path)));
	len = strlen(place.path);
	/* Nothing of a deleted file. A NUL, which the kernel does not write, cuts the path. */
	if (len >= sizeof(name) - 1 && !memchr(data, 0, size))
		assert(strcmp(place.path + len - (sizeof(name) - 1), name) == 0);
	return 0;
}
