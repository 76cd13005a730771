/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels to be careful with; see kernel_quirks.h. */
#include "agent/collect/kernel_quirks.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

bool kernel_user_reads_may_hang(const char *release, const char *version)
{
	/* Within each series: broken below this patch level. */
	static const struct {
		int major, minor, fixed_in;
	} broken[] = {
		{ 5, 19, 1000000 }, { 6, 0, 1000000 }, { 6, 1, 36 }, { 6, 2, 1000000 }, { 6, 3, 10 },
	};
	static const char mark[] = "Debian ";
	const char *debian = strstr(version, mark);
	int major, minor, patch = 0;
	bool is_debian = debian && sscanf(debian + strlen(mark), "%d.%d.%d", &major, &minor,
					  &patch) == 3;

	if (!is_debian && sscanf(release, "%d.%d.%d", &major, &minor, &patch) < 2)
		return false;
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		if (broken[i].major == major && broken[i].minor == minor)
			return patch < broken[i].fixed_in;
	}
	return false;
}
