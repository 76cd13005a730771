/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of `sonde report` share. In order of use: report.c loads the file,
 * report_frames.c names every frame once, report_keys.c says what a row is, report_rows.c
 * filters and sums, report_table.c prints, report_tree.c adds call trees.
 */
#ifndef CLI_REPORT_PRIVATE_H
#define CLI_REPORT_PRIVATE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/strtab.h"
#include "cli/report.h"
#include "proto/profile.h"

enum { REPORT_MAX_KEYS = 12, REPORT_NO_TYPE = -1 };

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
	uint32_t cells[REPORT_MAX_KEYS]; /* numbers in texts, one per key, then zeros */
	int64_t self, total;             /* of the chosen sample type; total: --children */
	int64_t self_samples;
	uint64_t stamp; /* of the last stack counted: recursion counts once */
	uint32_t tree;  /* its root in the call trees, or 0 */
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
	uint32_t key_labels[REPORT_MAX_KEYS]; /* the label's string in p->strings, or 0 */
	size_t key_count;
	uint32_t comm_label, pid_label;

	struct report_row *rows;
	size_t row_count, row_cap;
	struct map row_index; /* cells -> number of the row */
	uint64_t stamp;
	struct buf chain; /* scratch: the frames of one stack, leaf first */

	int64_t total, total_samples; /* of the file */
	int64_t shown, shown_samples; /* what counts in some row, so passed the filters */
	uint64_t shown_stamp;
	struct report_trees *trees;
};

/* Where in a stack a row was met. */
struct report_visit {
	const uint32_t *chain; /* frames, leaf first */
	size_t len;
	size_t at;
	int64_t value, samples;
};

int report_frames_build(struct report *r);

/* Sets up keys from options->sort. On failure writes the cause to `reason` and returns -EINVAL. */
int report_keys_parse(struct report *r, struct buf *reason);

/* The text of a sample's label as a number in texts ("-" without it), or -ENOMEM. */
int64_t report_label_text(struct report *r, const struct profile_sample *sample, uint32_t label);

/* Whether `text` is in a filter's list; a NULL list takes all. */
bool report_matches(const char *list, const char *text);

/* Whether labels and leaf of a sample pass the filters, for folded output. */
bool report_sample_passes(struct report *r, const struct profile_sample *sample);

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

/* Call trees for the rows in rows[0..count): build, print one, free. */
int report_trees_build(struct report *r, size_t row_count);
void report_trees_print(const struct report *r, const struct report_row *row, struct buf *out);
void report_trees_free(struct report_trees *trees);

/* The line without blanks at its end. */
void report_end_line(struct buf *out);

static inline const char *report_text(const struct report *r, uint32_t text)
{
	return strtab_get(&r->texts, text);
}

static inline int64_t report_add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

#endif
