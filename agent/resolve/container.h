/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose work a cgroup is: container, pod and systemd unit, read off its path. Text in, struct
 * out; knows no /proc and asks no runtime, so that it answers for containers that are gone.
 *
 * The path is that from the root of the hierarchy, as the kernel side packs it, whatever cgroup
 * namespace the agent is in. The innermost container counts: a pod in a kind node is the pod,
 * docker in a pod is docker's container in that pod. An id is whole or there is none. Who may
 * make cgroups may name them like a container: within what was delegated to them, names are claims.
 */
#ifndef AGENT_RESOLVE_CONTAINER_H
#define AGENT_RESOLVE_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>

/* What the path tells at most; ascending by how much that is. */
enum container_kind {
	CONTAINER_NONE,    /* the root, a slice, or names that mean nothing */
	CONTAINER_UNIT,    /* a unit of the system */
	CONTAINER_USER,    /* of a user: a session, or a unit of the user's manager */
	CONTAINER_POD,     /* a pod's, but in none of its containers */
	CONTAINER_PROCESS, /* in a container */
};

enum { CONTAINER_POD_UID_LEN = 36 };

/* A piece of the path; len 0: there is none. */
struct container_text {
	const char *at;
	size_t len;
};

struct container {
	enum container_kind kind;
	const char *runtime;      /* "docker", "containerd", ...; "" if the path does not tell */
	struct container_text id; /* 64 hex digits, or what the runtime has in their place */
	struct container_text
		unit; /* service or scope: of the host, or of systemd inside a container */
	struct container_text slice;             /* the innermost one around the unit */
	unsigned int depth;                      /* containers around the process */
	char pod_uid[CONTAINER_POD_UID_LEN + 1]; /* with dashes; a static pod's has none */
};

/* `path` must outlive *ret: its texts point there. Never fails: what it does not know is empty. */
void container_parse(const char *path, size_t len, struct container *ret);

/* Whether `a` tells more than `b`; of one task under two hierarchies. */
bool container_tells_more(const struct container *a, const struct container *b);

/* Whose samples are wanted: NULL or a list with commas, of what ids begin with. */
struct cgroup_filter {
	const char
		*containers; /* container ids, or names where runtimes have those in their place */
	const char *pods;    /* UIDs */
};

static inline bool cgroup_filter_is_set(const struct cgroup_filter *filter)
{
	return filter->containers || filter->pods;
}

/* For a filter that is set; NULL: the cgroup is in no container, or no pod. */
bool cgroup_filter_wants(const struct cgroup_filter *filter, const char *container_id,
			 const char *pod_uid);

#endif
