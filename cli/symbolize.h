/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of `sonde symbolize`: where the files of a mapping are, and what names its addresses. */
#ifndef CLI_SYMBOLIZE_H
#define CLI_SYMBOLIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/profile.h"
#include "symbolizer/symbolizer.h"

struct symbolize_options {
	const char *output; /* NULL: the file itself */
	const char *symfs;  /* NULL: this machine's root */
	const char *debug_dir;
	const char *cache_dir; /* of kernel_copy.h; NULL or "": none */
	bool no_demangle;
	bool quiet;
	bool starts; /* what has no name is shown by its function's start, as in a recording */
};

/* One mapping of a profile. */
struct symbolize_mapping {
	const char *path, *build_id;
	uint64_t kernel_text;   /* where the kernel lay; 0 if the profile does not tell */
	const char *release;    /* of the kernel; "" if the profile does not tell */
	const uint64_t *wanted; /* all its addresses without names */
	size_t wanted_count;
};

/* What names the addresses of one mapping. */
struct symbolize_source {
	struct sym_file *file; /* or NULL */
	struct sym_kernel *kernel;
	uint64_t slide; /* address in the profile minus that in the file */
};

bool symbolize_is_kernel(const char *path);

/*
 * Finds it, by the mapping's path and build-id: SYM_OK, or why there is none. The build-id must be
 * the same. Several threads may do so side by side.
 */
enum sym_reason symbolize_source_open(const struct symbolize_options *options,
				      const struct symbolize_mapping *mapping,
				      struct symbolize_source *ret_source);
void symbolize_source_close(struct symbolize_source *source);

enum sym_reason symbolize_source_find(struct symbolize_source *source, uint64_t address,
				      struct sym_hit *ret_hit);

/* Of the locations without a name. */
struct symbolize_tally {
	uint64_t named, left;
};

/* Names what can be named of the profile, and tells what not, and why, unless it shall be quiet. */
int symbolize_profile(struct profile *p, const struct symbolize_options *options,
		      struct symbolize_tally *ret_tally);

#endif
