/* SPDX-License-Identifier: Apache-2.0 */
/* What resolve.c (events, counts, life), frames.c (frame to location) and waiting.c share. */
#ifndef AGENT_RESOLVE_RESOLVE_PRIVATE_H
#define AGENT_RESOLVE_RESOLVE_PRIVATE_H

#include "agent/resolve/files.h"
#include "agent/resolve/kernel.h"
#include "agent/resolve/resolve.h"
#include "agent/resolve/tasks.h"

enum { MAX_SAMPLE_FRAMES = SONDE_MAX_FRAMES + SONDE_MAX_KERNEL_FRAMES + 2 };

struct user_stack {
	uint32_t count;
	struct sonde_frame frames[];
};

struct kernel_stack {
	uint32_t count;
	__u64 addrs[];
};

/* A frame that has its location in the profile already. Padding-free: a map key. */
struct frame_key {
	uint64_t file; /* file id or tag; KERNEL_FRAME for kernel addresses */
	uint64_t off;
	uint64_t process; /* id and JIT version, for what means something in one process only */
};

struct frame_value {
	uint32_t location;
	uint32_t reason; /* enum sym_reason */
};

struct resolver {
	struct resolver_options options;
	struct known_table user_stacks, kernel_stacks;
	struct task_tables tasks;
	struct file_table files;
	struct sym_file *vdso;
	struct kernel_names *kernel;
	uint32_t now; /* number of the present drain, from 1 */
	uint64_t drain_from_ns; /* no sample of this drain is older; monotonic */
	uint64_t drain_began_ns;
	nsec_t made_ns, elapsed_ns; /* monotonic; since then, at the last drain */

	struct profile *profile;
	uint32_t profile_number;
	struct {
		int number, weight;
	} columns[SONDE_KIND_OFF_MAX + 1]; /* of profiles */
	struct map frame_locations; /* frame_key -> frame_value, of this profile */
	struct map unnamed_mappings; /* mapping id -> (): some location has no name */

	struct map waiting; /* sonde_count_key -> sonde_count: see waiting.c */
	bool no_waiting;    /* what is there must do */
	bool is_retrying;   /* counts that have waited are resolved */
	uint64_t carried;   /* samples that waited when the last profile was closed */

	struct forget_list forget[3]; /* by enum resolver_thing */
	struct resolver_totals totals;
};

/* The stack being resolved, leaf first. */
struct sample_frames {
	uint32_t locations[MAX_SAMPLE_FRAMES];
	uint32_t count;
	bool leaf_is_code;           /* else it is a text frame */
	enum sym_reason leaf_reason;
	uint64_t samples; /* weight for the totals */
};

enum { MAX_LABELS = 12 };

/* Appends a label; what there is no text for is left out. The new number of labels. */
size_t labels_add(struct resolver *r, struct profile_label *labels, size_t count, const char *key,
		  const char *text, int64_t number);

/* Names as other profilers of clusters have them; `cgroup` and `process` may be NULL. */
size_t labels_of_cgroup(struct resolver *r, const struct known_cgroup *cgroup,
			struct profile_label *labels, size_t n);
size_t labels_of_count(struct resolver *r, const struct sonde_count_key *key,
		       const struct known_process *process, const struct known_cgroup *cgroup,
		       struct profile_label *labels);

/* Adds a sample of a kind to the profile. */
void samples_add(struct resolver *r, const struct sample_frames *frames, enum sonde_kind kind,
		 const struct sonde_count *count, const struct profile_label *labels,
		 size_t label_count);

/*
 * off.c: what a thread waited for, and whether it looks like a worker without work; the kernel's stack
 * without the scheduler's own frames.
 */
size_t off_labels(struct resolver *r, uint32_t detail, const struct sample_frames *frames,
		  struct profile_label *labels, size_t count);
void off_add_kernel(struct resolver *r, const struct kernel_stack *stack,
		    struct sample_frames *frames);

void waiting_init(struct resolver *r);

/* Puts the count aside if a file that its stack needs is being read; false: resolve it now. */
bool waiting_take(struct resolver *r, const struct sonde_count_key *key,
		  const struct sonde_count *count, const struct user_stack *stack,
		  struct known_process *process);

/* Resolves what can be resolved by now. */
void waiting_retry(struct resolver *r);
uint64_t waiting_samples(const struct resolver *r);

/* Append the frames of a stack; what cannot be added for want of memory is left out. */
void frames_add_user(struct resolver *r, const struct user_stack *stack, uint64_t process_id,
		     const struct known_process *process, struct sample_frames *frames);
void frames_add_kernel(struct resolver *r, const struct kernel_stack *stack,
		       struct sample_frames *frames);

/* A frame "[text]" that is no code. */
void frames_add_text(struct resolver *r, const char *text, struct sample_frames *frames);

#endif
