/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: names of the Java VM. What is made of one is a text that fits; else nothing changes. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "symbolizer/jvm_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char raw[2048], out[512] = "untouched";

	if (size >= sizeof(raw))
		return 0;
	memcpy(raw, data, size);
	raw[size] = 0;
	if (jvm_name(raw, out, sizeof(out)))
		assert(strlen(out) < sizeof(out) && !strchr(out, ';') && !strchr(out, '/'));
	else
		assert(strcmp(out, "untouched") == 0);
	return 0;
}
