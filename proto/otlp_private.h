/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the OTLP writer share: otlp.c (requests, resources, profiles), otlp_intake.c
 * (a profile's tables into the dictionary), otlp_write.c (output).
 */
#ifndef PROTO_OTLP_PRIVATE_H
#define PROTO_OTLP_PRIVATE_H

#include "base/buf.h"
#include "proto/otlp_dictionary.h"

struct otlp_request {
	struct buf body; /* fields resource_profiles, encoded */
	struct otlp_dictionary dictionary;
	size_t profiles;
};

/* A profile being taken in: its ids to the dictionary's numbers, 0 for what was not met yet. */
struct otlp_intake {
	struct otlp_dictionary *d;
	const struct profile *p;
	uint32_t *strings, *mappings, *functions, *locations;
	struct buf lines, stack; /* scratch */
};

int otlp_intake_init(struct otlp_intake *in, struct otlp_dictionary *d, const struct profile *p);
void otlp_intake_fini(struct otlp_intake *in);

/* The dictionary's number (>= 0) of a string of the profile or of a sample's stack; -errno. */
int64_t otlp_intake_string(struct otlp_intake *in, uint32_t string);
int64_t otlp_intake_stack(struct otlp_intake *in, const struct profile_sample *sample);

#endif
