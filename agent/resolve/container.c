/* SPDX-License-Identifier: Apache-2.0 */
/* From the names of a cgroup's path to container, pod and unit; see container.h. */
#include "agent/resolve/container_private.h"

static const char *const unit_suffixes[] = { ".service", ".scope", ".socket", ".mount", ".swap" };

static void split(const char *path, size_t len, struct names *names)
{
	while (len > 0 && names->count < CONTAINER_MAX_NAMES) {
		size_t start = len;

		while (start > 0 && path[start - 1] != '/')
			start--;
		if (start < len)
			names->list[names->count++] =
				(struct container_text){ path + start, len - start };
		len = start ? start - 1 : 0;
	}
}

/* ---- systemd ---- */

static bool is_unit(struct container_text name)
{
	if (name_id(name).form != ID_NONE)
		return false;
	for (size_t i = 0; i < sizeof(unit_suffixes) / sizeof(unit_suffixes[0]); i++) {
		if (name_ends(name, unit_suffixes[i]))
			return true;
	}
	return false;
}

/* systemd puts "_" in front of a unit's name that would look like a file of the kernel's. */
static struct container_text unescape(struct container_text name)
{
	return name.at[0] == '_' ? name_part(name, 1, name.len) : name;
}

/*
 * As systemd reads a path: slices, then the unit; what a service makes below is its own. Below
 * user@UID.service the same once more, by the user's manager. From name `from` inwards to `to`.
 */
static void find_unit(const struct names *names, size_t from, size_t to, struct container *ret)
{
	for (size_t i = from; i-- > to;) {
		struct container_text name = names->list[i];

		if (name_ends(name, ".slice")) {
			ret->slice = name;
			continue;
		}
		if (!is_unit(name))
			return;
		ret->unit = unescape(name);
		if (ret->kind == CONTAINER_NONE)
			ret->kind =
				name_starts(ret->slice, "user-") ? CONTAINER_USER : CONTAINER_UNIT;
		if (!name_starts(name, "user@"))
			return;
	}
}

/* ---- the path ---- */

static void set_pod(struct container_text uid, struct container *ret)
{
	for (size_t i = 0; i < uid.len; i++)
		ret->pod_uid[i] = uid.at[i] == '_' ? '-' : uid.at[i];
	ret->pod_uid[uid.len] = 0;
}

/* The innermost container, unless a pod comes first; number of its name, or names->count. */
static size_t find_container(const struct names *names, struct id_found *ret_found)
{
	for (size_t i = 0; i < names->count; i++) {
		*ret_found = name_container(names, i);
		if (ret_found->form == ID_CONTAINER)
			return i;
		if (name_is_pod(names->list[i]))
			break;
	}
	*ret_found = (struct id_found){ .form = ID_NONE };
	return names->count;
}

void container_parse(const char *path, size_t len, struct container *ret)
{
	struct names names = { .count = 0 };
	struct container_text uid;
	struct id_found found = { .form = ID_NONE };
	size_t at;

	*ret = (struct container){ .runtime = "" };
	split(path, len, &names);
	at = find_container(&names, &found);
	for (size_t i = at < names.count ? at : 0; i < names.count; i++) {
		if (!ret->pod_uid[0] && name_pod(names.list[i], &uid))
			set_pod(uid, ret);
		ret->depth += name_container(&names, i).form == ID_CONTAINER;
	}
	if (found.form == ID_CONTAINER) {
		ret->id = found.id;
		ret->runtime = found.runtime;
		ret->kind = CONTAINER_PROCESS;
	} else if (ret->pod_uid[0]) {
		ret->kind = CONTAINER_POD;
	}
	if (ret->kind != CONTAINER_POD)
		find_unit(&names, found.in_unit ? names.count : at, 0, ret);
}

bool container_tells_more(const struct container *a, const struct container *b)
{
	return a->kind != b->kind ? a->kind > b->kind : a->depth > b->depth;
}

/* Whether `id` begins with an item of the list. */
static bool is_listed(const char *list, const char *id)
{
	while (list && id) {
		size_t len = strcspn(list, ",");

		if (len && strncmp(list, id, len) == 0)
			return true;
		list = list[len] ? list + len + 1 : NULL;
	}
	return false;
}

bool cgroup_filter_wants(const struct cgroup_filter *filter, const char *container_id,
			 const char *pod_uid)
{
	return is_listed(filter->containers, container_id) || is_listed(filter->pods, pod_uid);
}
