/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's own metrics in Prometheus text format 0.0.4: names after the conventions
 * (sonde_..., base units, _total for counters), HELP and TYPE for each family. A writer: the
 * caller hands values, nothing is stored.
 */
#ifndef AGENT_METRICS_H
#define AGENT_METRICS_H

#include <stdint.h>

#include "base/buf.h"

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric_label {
	const char *name, *value;
};

/* Begins a family: HELP and TYPE lines. */
void metric_family(struct buf *out, const char *name, enum metric_type type, const char *help);

/* One sample of the family begun last; label may be NULL; the label's value is escaped. */
void metric_sample(struct buf *out, const char *name, const char *label, const char *label_value,
		   double value);

/* The same with several labels. A histogram's samples are named NAME_bucket, _sum and _count. */
void metric_labelled(struct buf *out, const char *name, const struct metric_label *labels,
		     size_t count, double value);

/* Family with a single sample without labels. */
void metric_single(struct buf *out, const char *name, enum metric_type type, const char *help,
		   double value);

#endif
