/* SPDX-License-Identifier: Apache-2.0 */
/* Samples and their labels, as the profile has them. */
#include "agent/resolve/resolve_private.h"

size_t labels_add(struct resolver *r, struct profile_label *labels, size_t count, const char *key,
		  const char *text, int64_t number)
{
	int64_t key_string = profile_string(r->profile, key);
	int64_t str = text ? profile_string(r->profile, text) : 0;

	if (key_string < 0 || str < 0 || (text && !*text))
		return count;
	labels[count] = (struct profile_label){ .key = (uint32_t)key_string,
						.str = (uint32_t)str, .num = number };
	return count + 1;
}

size_t labels_of_cgroup(struct resolver *r, const struct known_cgroup *cgroup,
			struct profile_label *labels, size_t n)
{
	if (!cgroup)
		return n;
	n = labels_add(r, labels, n, "cgroup", cgroup->path, 0);
	if (cgroup->container_id)
		n = labels_add(r, labels, n, "container_id", cgroup->container_id, 0);
	if (cgroup->pod_uid)
		n = labels_add(r, labels, n, "pod_uid", cgroup->pod_uid, 0);
	if (cgroup->unit)
		n = labels_add(r, labels, n, "systemd_unit", cgroup->unit, 0);
	return n;
}

size_t labels_of_count(struct resolver *r, const struct sonde_count_key *key,
		       const struct known_process *process, const struct known_cgroup *cgroup,
		       struct profile_label *labels)
{
	const char *thread = known_get(&r->tasks.threads, key->thread, r->now);
	size_t n = 0;

	n = labels_add(r, labels, n, "comm", process ? process->comm : "[unknown process]", 0);
	if (process)
		n = labels_add(r, labels, n, "pid", NULL, process->tgid);
	if (thread)
		n = labels_add(r, labels, n, "thread", thread, 0);
	return labels_of_cgroup(r, cgroup, labels, n);
}

static int64_t to_value(uint64_t n)
{
	return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

void samples_add(struct resolver *r, const struct sample_frames *frames, enum sonde_kind kind,
		 const struct sonde_count *count, const struct profile_label *labels,
		 size_t label_count)
{
	int number = r->columns[kind].number, weight = r->columns[kind].weight;
	int64_t values[PROFILE_MAX_TYPES] = { 0 };

	if (number >= 0)
		values[number] = to_value(count->samples);
	if (weight >= 0)
		values[weight] = to_value(count->weight);
	if (profile_add_sample(r->profile, frames->locations, frames->count, values, labels,
			       label_count)) {
		r->totals.no_memory += count->samples;
		return;
	}
	if (kind == SONDE_KIND_OFF_MAX)
		return;
	r->totals.samples += count->samples;
	r->totals.weight += count->weight;
	if (frames->leaf_is_code)
		r->totals.leaf_frames[frames->leaf_reason] += count->samples;
}
