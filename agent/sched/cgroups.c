/* SPDX-License-Identifier: Apache-2.0 */
/* See cgroups.h. */
#include "agent/sched/cgroups.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { MAX_CGROUPS = 16384, MAX_BYTES = 4 << 20, MAX_PATH = 4 * 4096 };
enum { UNUSED_SNAPSHOTS = 10, LEAVING_SNAPSHOTS = 2, SWEEP_BATCH = 256 };

struct entry {
	char *path;
	uint64_t used;      /* snapshot */
	uint64_t forgotten; /* snapshot at which the kernel side forgot it; 0: it has not */
};

void sched_cgroups_init(struct sched_cgroups *c)
{
	*c = (struct sched_cgroups){ 0 };
	map_init(&c->paths, sizeof(uint64_t), sizeof(struct entry), MAX_CGROUPS);
}

static void drop_path(struct sched_cgroups *c, struct entry *e)
{
	if (e->path)
		c->bytes -= strlen(e->path) + 1;
	free(e->path);
	e->path = NULL;
}

void sched_cgroups_fini(struct sched_cgroups *c)
{
	struct entry *e;
	size_t cursor = 0;

	while (map_next(&c->paths, &cursor, NULL, &e))
		free(e->path);
	map_fini(&c->paths);
}

static char *clean_path(const char *path, size_t len)
{
	struct buf text;
	const char *clean;
	char *copy;

	buf_init(&text, MAX_PATH);
	text_escape(&text, path, len);
	clean = buf_cstr(&text);
	copy = clean ? strdup(clean) : NULL;
	buf_fini(&text);
	return copy;
}

void sched_cgroups_add(struct sched_cgroups *c, uint64_t id, const char *path, size_t len,
		       uint64_t snapshot)
{
	char *text = clean_path(path, len);
	struct entry *e = NULL;

	if (!text || c->bytes + strlen(text) + 1 > MAX_BYTES || map_add(&c->paths, &id, &e) < 0) {
		c->refused++;
		free(text);
		return;
	}
	drop_path(c, e);
	*e = (struct entry){ .path = text, .used = snapshot };
	c->bytes += strlen(text) + 1;
}

void sched_cgroups_use(struct sched_cgroups *c, uint64_t id, uint64_t snapshot)
{
	struct entry *e = map_find(&c->paths, &id);

	if (e)
		e->used = snapshot;
}

const char *sched_cgroups_path(const struct sched_cgroups *c, uint64_t id)
{
	const struct entry *e = map_find(&c->paths, &id);

	return e ? e->path : NULL;
}

/* One step of forgetting; true: it can go now. */
static bool age(struct entry *e, uint64_t snapshot, bool *ret_forget)
{
	*ret_forget = false;
	if (e->forgotten && e->used >= e->forgotten)
		e->forgotten = 0; /* met again meanwhile */
	if (e->forgotten)
		return snapshot >= e->forgotten + LEAVING_SNAPSHOTS;
	if (snapshot >= e->used + UNUSED_SNAPSHOTS) {
		e->forgotten = snapshot;
		*ret_forget = true;
	}
	return false;
}

void sched_cgroups_sweep(struct sched_cgroups *c, uint64_t snapshot,
			 void (*forget)(void *context, uint64_t id), void *context)
{
	uint64_t gone[SWEEP_BATCH];
	size_t count = 0, cursor = 0;
	const uint64_t *id;
	struct entry *e;

	while (count < SWEEP_BATCH && map_next(&c->paths, &cursor, &id, &e)) {
		bool tell;

		if (age(e, snapshot, &tell))
			gone[count++] = *id;
		else if (tell && forget)
			forget(context, *id);
	}
	/* What is over the batch goes after the next snapshot. */
	for (size_t i = 0; i < count; i++) {
		drop_path(c, map_find(&c->paths, &gone[i]));
		map_del(&c->paths, &gone[i]);
	}
}
