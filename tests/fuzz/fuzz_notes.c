/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: ELF notes with a GNU build-id, as in /sys/kernel/notes and in files. */
#include <assert.h>
#include <string.h>

#include "symbolizer/build_id.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char hex[BUILD_ID_HEX_SIZE];
	size_t len;

	if (!build_id_in_notes(data, size, hex))
		return 0;
	len = strlen(hex);
	assert(len > 0 && len % 2 == 0 && len <= 2 * BUILD_ID_MAX);
	assert(strspn(hex, "0123456789abcdef") == len && strspn(hex, "0") < len);
	return 0;
}
