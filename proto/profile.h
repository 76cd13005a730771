/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile model: what the collecting side fills, what the writers (pprof.h, folded.h)
 * serialise, what the pprof reader returns and the viewers walk. It mirrors pprof's messages
 * (https://github.com/google/pprof/blob/main/proto/profile.proto) but with dense ids.
 *
 * Invariants, kept by the adding functions and checked by the reader:
 *  - mapping, location and function ids run from 1 to count, in order of arrival; id n is
 *    element n - 1 of its array; 0 means none;
 *  - strings are numbers in `strings`; 0 is "" and means none. All text is clean UTF-8:
 *    the adding side escapes foreign bytes (base/text.h);
 *  - a sample's values are one per sample type, never negative; equal stacks with equal labels
 *    are one sample whose values are summed, saturating at INT64_MAX;
 *  - stacks are leaf first; a location without lines is an address without a name;
 *  - addresses are ELF virtual addresses; those of callers are return addresses minus one.
 *
 * Adding returns the id or number (> 0, strings >= 0), or -ENOMEM / -EINVAL. Everything belongs
 * to the profile and dies with it. Not thread-safe.
 */
#ifndef PROTO_PROFILE_H
#define PROTO_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/strtab.h"

enum { PROFILE_MAX_TYPES = 8 };

struct profile_type {
	uint32_t type; /* strings, e.g. "cpu" */
	uint32_t unit; /* e.g. "nanoseconds" */
};

struct profile_mapping {
	uint64_t memory_start, memory_limit, file_offset; /* 0/0/0 in what sonde writes */
	uint32_t filename;
	uint32_t build_id;
	bool has_functions; /* every location of the mapping is named */
};

struct profile_function {
	uint32_t name;
	uint32_t system_name;
	uint32_t filename;
	int64_t start_line;
};

struct profile_line {
	uint32_t function_id;
	int64_t line;
};

struct profile_location {
	uint32_t mapping_id;
	uint32_t line_count;
	uint64_t address;
	const struct profile_line *lines; /* innermost inlined function first */
	bool is_folded;
};

struct profile_label {
	uint32_t key;
	uint32_t str;  /* a string label, or 0 */
	int64_t num;   /* a numeric label if str is 0 */
	uint32_t unit;
};

struct profile_sample {
	const uint32_t *locations; /* leaf first */
	const struct profile_label *labels;
	int64_t *values;
	uint32_t location_count;
	uint32_t label_count;
};

struct profile {
	struct strtab strings;
	struct arena memory; /* stacks, labels, lines, values */

	struct profile_type types[PROFILE_MAX_TYPES];
	size_t type_count;
	struct profile_type period_type;
	int64_t period;
	int64_t time_ns;     /* start, since the epoch */
	int64_t duration_ns;
	uint32_t default_type; /* string; 0: the last type */
	uint32_t maxima;       /* bits of types whose values are maxima: of equal samples the larger stays */

	struct profile_mapping *mappings;
	struct profile_function *functions;
	struct profile_location *locations;
	struct profile_sample *samples;
	uint32_t *comments; /* strings */
	size_t mapping_count, function_count, location_count, sample_count, comment_count;

	size_t max_bytes;
	bool full; /* an addition was refused because of max_bytes */

	/* Indexes for merging; private to profile.c and profile_samples.c. */
	size_t mapping_cap, function_cap, location_cap, sample_cap, comment_cap;
	struct map mapping_index, function_index, location_index, sample_index;
};

/* max_bytes bounds all memory of the profile; over it, adding says -ENOMEM. */
int profile_new(size_t max_bytes, struct profile **ret_profile);
void profile_free(struct profile *p);

int64_t profile_string(struct profile *p, const char *text);
int64_t profile_string_n(struct profile *p, const char *text, size_t len);

int profile_add_type(struct profile *p, const char *type, const char *unit);
int64_t profile_add_mapping(struct profile *p, const struct profile_mapping *mapping);
int64_t profile_add_function(struct profile *p, const struct profile_function *function);

/* Equal mapping, address and lines are one location. `lines` is copied. */
int64_t profile_add_location(struct profile *p, uint32_t mapping_id, uint64_t address,
			     const struct profile_line *lines, size_t line_count);

/*
 * Gives lines (copied) to a location that has none. Locations stay apart even if they are equal
 * now. 0, -EINVAL or -ENOMEM.
 */
int profile_name_location(struct profile *p, uint32_t location_id, const struct profile_line *lines,
			  size_t line_count);

/*
 * Adds `values` (type_count of them) to the sample with this stack and these labels (which are
 * compared in the order given), making it if it is new. Both arrays are copied. A row whose
 * values are all zero is not kept. Returns 0 or -errno.
 */
int profile_add_sample(struct profile *p, const uint32_t *locations, size_t location_count,
		       const int64_t *values, const struct profile_label *labels,
		       size_t label_count);

/* As profile_add_sample, but keeps equal rows apart: for the reader. */
int profile_append_sample(struct profile *p, const uint32_t *locations, size_t location_count,
			  const int64_t *values, const struct profile_label *labels,
			  size_t label_count);

/* Appends a comment line; the text need not be clean. */
int profile_add_comment(struct profile *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static inline const char *profile_text(const struct profile *p, uint32_t string)
{
	return strtab_get(&p->strings, string);
}

#endif
