/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: mountinfo. Roots and points are absolute; a translated path is below its point. */
#include <assert.h>
#include <string.h>

#include "agent/resolve/mounts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct mount *m)
{
	char out[256], inside[512];
	size_t point_len = strcmp(m->point, "/") == 0 ? 0 : strlen(m->point);

	assert(m->root[0] == '/' && m->point[0] == '/');
	if (mount_translate(m, "/usr/lib/libc.so.6", out, sizeof(out)))
		assert(strlen(out) < sizeof(out) && strncmp(out, m->point, point_len) == 0);
	if (strlen(m->root) > sizeof(inside) - 8)
		return;
	/* What lies directly in the mounted part is always visible, room permitting. */
	strcpy(inside, strcmp(m->root, "/") == 0 ? "" : m->root);
	strcat(inside, "/x");
	if (point_len + 3 <= sizeof(out))
		assert(mount_translate(m, inside, out, sizeof(out)));
	else
		assert(!mount_translate(m, inside, out, sizeof(out)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mounts mounts;
	struct buf text;

	buf_init(&text, size);
	buf_put(&text, data, size);
	if (mounts_parse(&text, &mounts) == 0) {
		for (size_t i = 0; i < mounts.count; i++)
			check(&mounts.list[i]);
		mounts_fini(&mounts);
	}
	buf_fini(&text);
	return 0;
}
