/* SPDX-License-Identifier: Apache-2.0 */
/* How runtimes name the cgroups of containers and pods; see container_private.h. */
#include "agent/resolve/container_private.h"

enum { ID_LEN = 64, SHORT_ID_LEN = 32 };

/* Names made of a prefix, an id and perhaps ".scope"; the first that fits counts. */
static const struct id_prefix {
	const char *prefix, *runtime;
	bool is_container; /* else what watches one */
	bool in_unit;      /* see struct id_found */
} prefixes[] = {
	{ "docker", "docker", true, false },
	{ "cri-containerd", "containerd", true, false },
	{ "containerd", "containerd", true, false },
	{ "nerdctl", "containerd", true, false },
	{ "crio", "cri-o", true, false },
	{ "crio-conmon", "cri-o", false, false },
	{ "libpod", "podman", true, false },
	{ "libpod-payload", "podman", true, true },
	{ "libpod-conmon", "podman", false, false },
};

/* Whose a bare id is, by the name of the group around it, or by the one around that. */
static const struct {
	const char *parent, *runtime;
	size_t levels;
} parents[] = {
	{ "docker", "docker", 1 },
	{ "moby", "docker", 1 },
	{ "actions_job", "docker", 1 },
	{ "buildkit", "buildkit", 1 },
	{ "k8s.io", "containerd", 1 },
	{ "ecs", "ecs", 2 },
	{ "ecs", "ecs", 3 },
};

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* How many hex digits stand at `from`. */
static size_t hex_run(struct container_text t, size_t from)
{
	size_t i = from;

	while (i < t.len && is_hex(t.at[i]))
		i++;
	return i - from;
}

/* 8-4-4-4-N hex digits with any of `dashes` between; returns the length, or 0. */
static size_t uuid_length(struct container_text t, size_t from, const char *dashes, size_t last_min)
{
	static const size_t groups[] = { 8, 4, 4, 4 };
	size_t at = from, last;

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (hex_run(t, at) != groups[i])
			return 0;
		at += groups[i];
		if (at >= t.len || !strchr(dashes, t.at[at]) || !t.at[at])
			return 0;
		at++;
	}
	last = hex_run(t, at);
	return last >= last_min && last <= 12 ? at + last - from : 0;
}

static const struct id_prefix *find_prefix(struct container_text name)
{
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		if (name_equals(name, prefixes[i].prefix))
			return &prefixes[i];
	}
	return NULL;
}

/* ---- one name ---- */

bool name_pod(struct container_text name, struct container_text *ret_uid)
{
	for (size_t i = 0; i + 3 < name.len; i++) {
		size_t at = i + 3, len;

		if (memcmp(name.at + i, "pod", 3) != 0 || (i > 0 && name.at[i - 1] != '-'))
			continue;
		len = uuid_length(name, at, "-_", 12);
		if (!len && hex_run(name, at) == SHORT_ID_LEN)
			len = SHORT_ID_LEN; /* a static pod: a hash of its configuration */
		if (len && (at + len == name.len ||
			    name_starts(name_part(name, at + len, name.len), ".slice"))) {
			*ret_uid = name_part(name, at, at + len);
			return true;
		}
	}
	return false;
}

bool name_is_pod(struct container_text name)
{
	struct container_text uid;

	return name_pod(name, &uid);
}

/* The name in front of an id: small letters and dashes. NULL in *ret_prefix: not one we know. */
static bool prefix_is_valid(struct container_text prefix, const struct id_prefix **ret_prefix)
{
	for (size_t i = 0; i < prefix.len; i++) {
		if ((prefix.at[i] < 'a' || prefix.at[i] > 'z') && prefix.at[i] != '-')
			return false;
	}
	*ret_prefix = find_prefix(prefix);
	return prefix.len > 0;
}

static struct id_found with_prefix(struct container_text prefix, struct container_text id)
{
	const struct id_prefix *known;
	struct id_found found = { .form = ID_CONTAINER, .runtime = "", .id = id };

	if (!prefix_is_valid(prefix, &known))
		return (struct id_found){ .form = ID_NONE };
	if (known) {
		found.form = known->is_container ? ID_CONTAINER : ID_MONITOR;
		found.runtime = known->runtime;
		found.in_unit = known->in_unit;
	}
	return found;
}

/* "<64 hex>", "runtime-<64 hex>", both with or without ".scope", "x.slice:runtime:<64 hex>". */
struct id_found name_id(struct container_text name)
{
	struct id_found none = { .form = ID_NONE };
	struct container_text body =
		name_ends(name, ".scope") ? name_part(name, 0, name.len - 6) : name;
	size_t at = body.len - ID_LEN, from;

	if (body.len < ID_LEN || hex_run(body, at) != ID_LEN)
		return none;
	if (at == 0)
		return (struct id_found){ .form = ID_BARE, .runtime = "", .id = body };
	if (body.at[at - 1] == '-')
		return with_prefix(name_part(body, 0, at - 1), name_part(body, at, body.len));
	if (body.at[at - 1] != ':')
		return none;
	for (from = at - 1; from > 0 && body.at[from - 1] != ':'; from--)
		;
	return from ? with_prefix(name_part(body, from, at - 1), name_part(body, at, body.len))
		    : none;
}

/* ---- a name among its parents ---- */

/*
 * Whether a bare id is a container's. In what belongs to a user anybody may have made a directory
 * of that name, and runtimes use prefixes there; inside a container or pod it counts again.
 */
static bool bare_is_trusted(const struct names *names, size_t i)
{
	for (size_t outer = i + 1; outer < names->count; outer++) {
		if (name_is_pod(names->list[outer]) ||
		    name_id(names->list[outer]).form == ID_CONTAINER)
			return true;
		if (name_equals(names->list[outer], "user.slice"))
			return false;
	}
	return true;
}

static const char *bare_runtime(const struct names *names, size_t i)
{
	for (size_t p = 0; p < sizeof(parents) / sizeof(parents[0]); p++) {
		size_t outer = i + parents[p].levels;

		if (outer < names->count && name_equals(names->list[outer], parents[p].parent))
			return parents[p].runtime;
	}
	return "";
}

static bool is_below(const struct names *names, size_t i, const char *name)
{
	while (++i < names->count) {
		if (name_equals(names->list[i], name))
			return true;
	}
	return false;
}

/* ECS on Fargate: "/ecs/TASK/<32 hex>-<digits>". */
static bool is_ecs(const struct names *names, size_t i)
{
	struct container_text name = names->list[i];
	size_t at = SHORT_ID_LEN + 1;

	if (hex_run(name, 0) != SHORT_ID_LEN || name.len <= at || name.at[SHORT_ID_LEN] != '-')
		return false;
	while (at < name.len && name.at[at] >= '0' && name.at[at] <= '9')
		at++;
	return at == name.len && is_below(names, i, "ecs");
}

/* Cloud Foundry: "/garden/<uuid>", whose last group may be short. */
static bool is_garden(const struct names *names, size_t i)
{
	return i + 1 < names->count && name_equals(names->list[i + 1], "garden") &&
	       uuid_length(names->list[i], 0, "-", 4) == names->list[i].len;
}

/* "lxc.payload.NAME", and in older versions "lxc.payload/NAME" or "lxc/NAME". */
static bool lxc_name(const struct names *names, size_t i, struct container_text *ret_name)
{
	static const char payload[] = "lxc.payload.";
	struct container_text name = names->list[i];

	*ret_name = name;
	if (name_starts(name, payload) && name.len >= sizeof(payload)) {
		*ret_name = name_part(name, sizeof(payload) - 1, name.len);
		return true;
	}
	return i + 2 == names->count && (name_equals(names->list[i + 1], "lxc.payload") ||
					 name_equals(names->list[i + 1], "lxc"));
}

/* "systemd-nspawn@NAME.service", or "machine-NAME.scope" unless that is another manager's. */
static bool nspawn_name(const struct names *names, size_t i, struct container_text *ret_name)
{
	static const char service[] = "systemd-nspawn@", machine[] = "machine-";
	static const char qemu[] = "machine-qemu\\x2d", lxc[] = "machine-lxc\\x2d"; /* libvirt's */
	struct container_text name = names->list[i];

	if (i + 1 >= names->count || !name_equals(names->list[i + 1], "machine.slice"))
		return false;
	if (name_starts(name, service) && name_ends(name, ".service"))
		*ret_name = name_part(name, sizeof(service) - 1, name.len - strlen(".service"));
	else if (name_starts(name, machine) && name_ends(name, ".scope") &&
		 !name_starts(name, qemu) && !name_starts(name, lxc))
		*ret_name = name_part(name, sizeof(machine) - 1, name.len - strlen(".scope"));
	else
		return false;
	return ret_name->len > 0;
}

struct id_found name_container(const struct names *names, size_t i)
{
	struct id_found found = name_id(names->list[i]);

	if (found.form == ID_BARE) {
		found.form = bare_is_trusted(names, i) ? ID_CONTAINER : ID_NONE;
		found.runtime = bare_runtime(names, i);
	}
	if (found.form != ID_NONE)
		return found;
	found = (struct id_found){ .form = ID_CONTAINER, .id = names->list[i] };
	if (is_ecs(names, i))
		found.runtime = "ecs";
	else if (is_garden(names, i))
		found.runtime = "garden";
	else if (lxc_name(names, i, &found.id))
		found.runtime = "lxc";
	else if (nspawn_name(names, i, &found.id))
		found.runtime = "systemd-nspawn";
	else
		found.form = ID_NONE;
	return found;
}
