/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: cgroup paths. All texts lie within the path and within one name of it; ids that
 * look like hex have their length; one more name inside changes neither id nor pod.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/resolve/container.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(struct container_text text, const char *path, size_t len)
{
	if (!text.len)
		return;
	assert(text.at >= path && text.len <= len && (size_t)(text.at - path) <= len - text.len);
	assert(!memchr(text.at, '/', text.len));
}

static int same(struct container_text a, struct container_text b)
{
	return a.len == b.len && (!a.len || memcmp(a.at, b.at, a.len) == 0);
}

static size_t count_names(const char *path, size_t len)
{
	size_t n = 1;

	for (size_t i = 0; i < len; i++)
		n += path[i] == '/';
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char inner[] = "/worker";
	char *path = malloc(size + sizeof(inner));
	struct container c, deeper;
	size_t uid;

	memcpy(path, data, size);
	container_parse(path, size, &c);
	check_text(c.id, path, size);
	check_text(c.unit, path, size);
	check_text(c.slice, path, size);
	uid = strlen(c.pod_uid);
	assert(uid == 0 || uid == 32 || uid == CONTAINER_POD_UID_LEN);
	assert((c.kind == CONTAINER_PROCESS) == (c.id.len > 0) && (!c.id.len || c.depth > 0));
	assert(c.kind != CONTAINER_POD || uid);
	assert(!container_tells_more(&c, &c));

	memcpy(path + size, inner, sizeof(inner) - 1);
	container_parse(path, size + sizeof(inner) - 1, &deeper);
	/* Unless the outermost name is one too many. */
	if (c.id.len && count_names(path, size) < 60) {
		assert(same(c.id, deeper.id));
		assert(strcmp(c.pod_uid, deeper.pod_uid) == 0);
	}
	free(path);
	return 0;
}
