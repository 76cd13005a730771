/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration files: YAML (libyaml), a flat mapping from the names of an option table to
 * values. Unknown names, wrong values, nested values and doubled names are errors that name
 * file, line and cause.
 */
#ifndef AGENT_CONFIG_H
#define AGENT_CONFIG_H

#include <stddef.h>

#include "agent/options.h"
#include "base/arena.h"

/*
 * Sets the fields of `values` that the file names, the others stay. Texts are copied into
 * `memory`. 0, or -errno and one line in `reason`; then some fields may have been set: whoever
 * wants to keep the old ones loads into a copy.
 */
int config_load(const char *path, const struct option_row *rows, void *values,
		struct arena *memory, char *reason, size_t reason_size);

/* The same from bytes in memory; `name` stands for the file in messages. At most 64 KiB. */
int config_parse(const char *name, const void *bytes, size_t len, const struct option_row *rows,
		 void *values, struct arena *memory, char *reason, size_t reason_size);

/* An example file with each option, its help as a comment and its default, from the table. */
void config_example(const struct option_row *rows, FILE *out);

#endif
