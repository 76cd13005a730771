/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP profiles, package opentelemetry.proto.profiles.v1development as of version 1.11 of
 * opentelemetry-proto; the subset that is written here is proto/schema/otlp_profiles.proto.
 *
 * A request is many profiles, each under a resource (a service in a container), and one
 * dictionary that they all share. Profiles are added one after the other, encoded at once; the
 * dictionary holds each string, function, location, attribute and stack once, and nothing that no
 * profile uses. Writing streams the dictionary behind the profiles. For the sake of compression
 * locations are in the order of mappings and addresses, and a function whose system name is its name
 * has none.
 *
 * OTLP knows one sample type a profile, so a model with several becomes several; but of
 * samples and cpu time with the period of cpu time only the samples go out: receivers multiply
 * them by the period, and would count both.
 */
#ifndef PROTO_OTLP_H
#define PROTO_OTLP_H

#include <stddef.h>
#include <stdint.h>

#include "proto/pprof.h"
#include "proto/profile.h"

struct otlp_attribute {
	const char *key, *text;
};

struct otlp_resource {
	const struct otlp_attribute *attributes; /* keys unique */
	size_t attribute_count;
	const char *scope_name, *scope_version;
	uint8_t profile_id[16]; /* of the first profile; the others count on from there */
};

struct otlp_request;

/* max_bytes bounds the encoded profiles and, apart, the dictionary in memory. */
int otlp_request_new(size_t max_bytes, struct otlp_request **ret_request);
void otlp_request_free(struct otlp_request *r);

/*
 * Adds the samples of `p` with their label `thread`, as attribute thread.name; other labels are not
 * written. A profile without samples adds nothing. 0, -ENOMEM, or -EFBIG over a bound, and then the
 * request is no longer of use.
 */
int otlp_request_add(struct otlp_request *r, const struct otlp_resource *resource,
		     const struct profile *p);

/* Profiles added so far. */
size_t otlp_request_profiles(const struct otlp_request *r);

/* An ExportProfilesServiceRequest. 0, -ENOMEM or what the sink returned. */
int otlp_request_write(const struct otlp_request *r, struct byte_sink sink);

#endif
