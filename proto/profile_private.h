/* SPDX-License-Identifier: Apache-2.0 */
/* What profile.c and profile_samples.c share: bounded memory and the merging indexes. */
#ifndef PROTO_PROFILE_PRIVATE_H
#define PROTO_PROFILE_PRIVATE_H

#include "proto/profile.h"

/* Whether `more` bytes fit under the profile's bound; notes a refusal. */
bool profile_has_room(struct profile *p, size_t more);

/* Room for one more element of `size` bytes in an array: 0 or -ENOMEM. */
int profile_grow_array(struct profile *p, void *array_ptr, size_t size, size_t count,
		       size_t *cap);

/* Bounded memory that lives as long as the profile; a non-NULL pointer even for 0 bytes. */
void *profile_alloc(struct profile *p, size_t size);

/* map_add of an absent key with a u32 value, bounded: 0 or -ENOMEM. */
int profile_index_add(struct profile *p, struct map *index, const void *key, uint32_t value);

#endif
