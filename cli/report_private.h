/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of `sonde report` share. In order of use: report.c loads the file,
 * report_frames.c names every frame once, report_keys.c says what a row is, report_groups.c
 * turns labels and frames into numbers and filters them, report_rows.c sums, report_header.c
 * and report_table.c print, report_tree.c adds call trees.
 *
 * A row is a pair of numbers: its group (distinct labels of samples, as far as the sort keys
 * look at them) and its class (distinct frames, likewise). So the cost of a frame of a stack is
 * one look-up of eight bytes, whatever the keys and filters are.
 */
#ifndef CLI_REPORT_PRIVATE_H
#define CLI_REPORT_PRIVATE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/strtab.h"
#include "cli/report.h"
#include "proto/profile.h"

enum { REPORT_MAX_KEYS = 16, REPORT_MAX_FILTERS = 8, REPORT_NO_TYPE = -1 };

/* One function of a stack; all fields are numbers in report.texts. */
struct report_frame {
	uint32_t dso;
	uint32_t symbol; /* with perf's mark: "[k] do_syscall_64" */
	uint32_t name;   /* without it */
	uint32_t text;   /* as in call trees: "libc.so.6+0x1234" for an address */
	uint32_t kind;   /* "kernel", "user", "jit" or "marker" */
	uint32_t file;
	uint32_t srcline;
};

/* A sort key: a label of the sample or a field of the frame. */
struct report_key {
	const char *name;
	const char *alias;
	const char *heading;
	const char *label;   /* NULL for a field of the frame */
	size_t frame_field;  /* its offset */
	bool needs_source;   /* makes sense only with file names */
	bool right;          /* numbers: to the right of their column */
};

struct report_row {
	uint32_t group, class;
	int64_t self, total; /* of the chosen sample type; total: --children */
	int64_t self_samples;
	uint64_t stamp; /* of the last stack counted: recursion counts once */
	size_t stacks;  /* how many stacks count for it */
};

/* The cells of a group or class: numbers in texts, by sort key; 0 for those of the other. */
struct report_cells {
	uint32_t text[REPORT_MAX_KEYS];
};

/* A label that groups look at: for a sort key, for a filter, or for both. */
struct report_label {
	uint32_t key;       /* string in the profile, or 0 if it has none */
	int cell;           /* number of the sort key, or -1 */
	const char *filter; /* or NULL */
	bool prefix;        /* the filter's items are what a text begins with: ids */
};

/* Distinct groups or classes, counted from 1; 0 is what the filters refuse. */
struct report_set {
	struct map index; /* struct report_cells -> number */
	struct report_cells *cells;
	size_t count, cap;
};

struct report_trees;

struct report {
	const struct report_options *options;
	struct profile *p;
	size_t type;      /* the chosen sample type */
	int samples_type; /* "samples/count", or REPORT_NO_TYPE */

	struct strtab texts;
	struct report_frame *frames; /* number 0 stands for an empty stack */
	uint32_t *first_frame;       /* by location id - 1; the end is the next one's */
	size_t frame_count;
	bool has_source;

	const struct report_key *keys[REPORT_MAX_KEYS];
	size_t key_count;
	struct report_label labels[REPORT_MAX_KEYS + REPORT_MAX_FILTERS];
	size_t label_count;
	bool hides_idle; /* there are such waits */

	struct report_set groups, classes;
	struct map group_of_labels; /* raw labels -> group */
	uint32_t *frame_class;      /* by frame */

	struct report_row *rows;
	size_t row_count, row_cap;
	struct map row_index; /* group and class -> number of the row */
	uint64_t stamp;
	struct buf chain; /* scratch: the frames of one stack, leaf first */

	int64_t total, total_samples; /* of the file */
	int64_t shown, shown_samples; /* what counts in some row, so passed the filters */
	uint64_t shown_stamp;
	struct report_trees *trees;
};

/* Where in a stack a row was met. */
struct report_visit {
	size_t sample;
	size_t at; /* 0: the leaf */
	size_t len;
	int64_t value, samples;
};

/* One profile file, or - for standard input; on failure its cause is in `reason`. */
int report_load_file(const char *path, struct profile **ret_profile, struct buf *reason);

int report_frames_build(struct report *r);

/* Sets up keys from options->sort. On failure writes the cause to `reason` and returns -EINVAL. */
int report_keys_parse(struct report *r, struct buf *reason);

/* Gives every frame its class. After the keys are known. */
int report_groups_init(struct report *r);
void report_groups_fini(struct report *r);

/* The group of a sample: 0 if a filter refuses it, -ENOMEM. */
int64_t report_group_find(struct report *r, const struct profile_sample *sample);

/* Filters by label: their names and the options' lists; NULL behind the last name. */
struct report_filter {
	const char *name, *label;
	size_t option; /* offset in struct report_options */
	bool prefix;
};

extern const struct report_filter report_filters[];

/* The list of a filter, or NULL. */
const char *report_filter_list(const struct report *r, const struct report_filter *filter);

/* Whether `text` is in a filter's list; a NULL list takes all. */
bool report_matches(const char *list, const char *text, bool prefix);

/* Frames of a stack in r->chain, leaf first: 0 or -ENOMEM. */
int report_chain_build(struct report *r, const struct profile_sample *sample);

int report_rows_build(struct report *r);

/*
 * Calls `visit` for each row that each sample counts for, once per sample; with --children
 * these are the rows of all frames, else that of the leaf. Rows are made as needed.
 */
int report_walk(struct report *r, int (*visit)(struct report *r, uint32_t row,
					       const struct report_visit *visit));

int64_t report_row_value(const struct report *r, const struct report_row *row);
double report_percent(const struct report *r, int64_t value);

/* A value in its unit: "1.50 s", "3.00 MiB", "17". */
void report_put_value(struct buf *out, int64_t value, const char *unit);

void report_print_header(struct report *r, struct buf *out);
void report_print_table(struct report *r, struct buf *out);

/* Call trees for the first `row_count` rows, which must not change any more. */
int report_trees_build(struct report *r, size_t row_count);
void report_trees_print(const struct report *r, size_t row, struct buf *out);
void report_trees_free(struct report_trees *trees);

static inline const char *report_text(const struct report *r, uint32_t text)
{
	return strtab_get(&r->texts, text);
}

/* The text of a row in the column of sort key number `key`. */
static inline const char *report_cell(const struct report *r, const struct report_row *row,
				      size_t key)
{
	const struct report_set *set = r->keys[key]->label ? &r->groups : &r->classes;
	uint32_t number = r->keys[key]->label ? row->group : row->class;

	return report_text(r, set->cells[number].text[key]);
}

static inline int64_t report_add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

#endif
