/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window's samples by what they belong to: a series is a program in a container, pod, unit or
 * cgroup. Stores keep series for long, so their number is bounded: over the bound the lightest
 * programs of a container become one series without a program, and if that does not
 * suffice, the lightest containers become one without any identity.
 */
#ifndef AGENT_EXPORT_SERIES_H
#define AGENT_EXPORT_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/profile.h"

/* id, label of a sample, name in Pyroscope and Parca, name as an attribute of a resource */
#define SERIES_LABELS(X)                                                                           \
	X(NAMESPACE, "namespace", "namespace", "k8s.namespace.name")                               \
	X(POD, "pod", "pod", "k8s.pod.name")                                                       \
	X(POD_UID, "pod_uid", "pod_uid", "k8s.pod.uid")                                            \
	X(CONTAINER, "container", "container", "k8s.container.name")                               \
	X(CONTAINER_ID, "container_id", "container_id", "container.id")                            \
	X(RUNTIME, "container_runtime", "container_runtime", "container.runtime.name")             \
	X(UNIT, "systemd_unit", "systemd_unit", "systemd.unit")                                    \
	X(CGROUP, "cgroup", "cgroup", "process.linux.cgroup")                                      \
	X(PROGRAM, "comm", "comm", "process.executable.name")

enum series_label {
#define X(id, key, name, attribute) SERIES_##id,
	SERIES_LABELS(X)
#undef X
		SERIES_LABEL_COUNT
};

struct series {
	uint32_t labels[SERIES_LABEL_COUNT]; /* strings of the profile; 0: unknown */
	size_t first, count;                 /* in the list's order */
	int64_t weight;                      /* sum of the first value */
};

struct series_list {
	struct series *series;
	size_t count;
	uint32_t *order; /* indexes of samples, series by series */
	size_t sample_count;
	size_t folded; /* series that lost their identity to the bound */
};

/* Whether the first value counts samples; else it is time, as in the scheduler's accounts. */
bool series_counts_samples(const struct profile *p);

/* 0 or -ENOMEM. The profile outlives the list. max_series: at least 1. */
int series_split(const struct profile *p, size_t max_series, struct series_list *ret_list);
void series_list_fini(struct series_list *list);

/* The series that holds element `at` of the order. */
size_t series_at(const struct series_list *list, size_t at);

/* What the label is called in Pyroscope and Parca, and in OTLP. */
const char *series_label_name(enum series_label label);
const char *series_label_attribute(enum series_label label);

/*
 * The service: namespace/container if both are known, else the container's name, the program,
 * the unit without its ending, or "other". Valid as long as `buffer` and the profile.
 */
enum { SERIES_SERVICE_BYTES = 512 };
const char *series_service(const struct profile *p, const struct series *series,
			   char buffer[SERIES_SERVICE_BYTES]);

#endif
