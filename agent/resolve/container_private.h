/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of a cgroup's path, one by one: what container_name.c reads off a name and its parents,
 * and container.c makes an answer of.
 */
#ifndef AGENT_RESOLVE_CONTAINER_PRIVATE_H
#define AGENT_RESOLVE_CONTAINER_PRIVATE_H

#include <string.h>

#include "agent/resolve/container.h"

enum { CONTAINER_MAX_NAMES = 64 };

/* The names of a path, innermost first. */
struct names {
	struct container_text list[CONTAINER_MAX_NAMES];
	size_t count;
};

/* What a name with an id in it is. */
enum id_form { ID_NONE, ID_BARE, ID_CONTAINER, ID_MONITOR };

struct id_found {
	enum id_form form;
	const char *runtime;
	bool in_unit; /* the unit that it lies in is its own, not that of a daemon */
	struct container_text id;
};

/* The pod's UID in "podUID" or "kubepods-burstable-podU_I_D.slice[:...]". */
bool name_pod(struct container_text name, struct container_text *ret_uid);
bool name_is_pod(struct container_text name);

/* The id of 64 digits in a name by itself. */
struct id_found name_id(struct container_text name);

/* The container that name number `i` is of, judged with its parents; ID_NONE if it is none. */
struct id_found name_container(const struct names *names, size_t i);

static inline bool name_equals(struct container_text t, const char *text)
{
	return t.len == strlen(text) && memcmp(t.at, text, t.len) == 0;
}

static inline bool name_starts(struct container_text t, const char *text)
{
	size_t len = strlen(text);

	return t.len >= len && memcmp(t.at, text, len) == 0;
}

static inline bool name_ends(struct container_text t, const char *text)
{
	size_t len = strlen(text);

	return t.len > len && memcmp(t.at + t.len - len, text, len) == 0;
}

static inline struct container_text name_part(struct container_text t, size_t from, size_t to)
{
	return (struct container_text){ t.at + from, to - from };
}

#endif
