/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adding one profile to another: for windows built from collections, and for reports over many
 * windows. Cost: linear in the source; every string is looked up once.
 */
#ifndef PROTO_MERGE_H
#define PROTO_MERGE_H

#include "proto/profile.h"

/*
 * Adds `src` to `dst`, which may be empty (it then takes over types, period and times). Equal
 * stacks with equal labels are summed. The time range becomes that of both. -EINVAL, and `dst`
 * untouched, if the sample types or the period type differ; -ENOMEM over dst's bound (dst is
 * then unusable).
 *
 * Comments: "sonde.<name>=<digits>" are counters and are added up; of all others each distinct
 * line is kept once. mapping.has_functions stays only if both say so. The period becomes the
 * longer one.
 *
 * A counter that grew leaves its old text in dst's strings: before a profile of many merges is
 * written, merge it once more into an empty one, which takes only what is in use.
 */
int profile_merge(struct profile *dst, const struct profile *src);

/* Whether both have the same sample types, in the same order, and the same period type. */
bool profile_same_types(const struct profile *a, const struct profile *b);

/*
 * Some samples of `src`, by their index, as a new profile of at most max_bytes with the same
 * types, period and times, and only the strings, mappings, functions and locations that are in
 * use. Of the labels only those with the key `keep_label` stay ("": none), so samples that
 * differ in others become one. No comments. 0, -ENOMEM, or -EFBIG over the bound.
 */
#define PROFILE_ALL_LABELS NULL
int profile_extract(const struct profile *src, const uint32_t *samples, size_t count,
		    const char *keep_label, size_t max_bytes, struct profile **ret_profile);

#endif
