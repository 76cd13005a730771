/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pprof reader's inside: pprof_read.c walks the file and owns this state, pprof_messages.c
 * parses each kind of message.
 */
#ifndef PROTO_PPROF_READER_H
#define PROTO_PPROF_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/map.h"
#include "proto/profile.h"
#include "proto/wire.h"

/*
 * Ids of the file to our numbers. Most writers count 1..n: those go in an array as long as
 * there are messages; all others in a map.
 */
struct id_table {
	const char *what; /* for reasons: "mapping" */
	uint32_t *dense;
	size_t dense_len;
	struct map sparse;
};

struct pprof_reader {
	struct profile *p;
	uint32_t *strings; /* by the file's index */
	size_t string_count;
	struct id_table mappings, locations, functions;
	size_t sample_number; /* of the sample being read, from 1 */
	bool seen_time;
	struct buf stack, values, labels, lines; /* scratch: arrays of the model's types */
	char *reason;
	size_t reason_size;
};

/* Notes why the file is refused; the first reason stays. Returns -EBADMSG. */
int pprof_refuse(struct pprof_reader *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The error of adding to the profile or of scratch memory, with its reason. */
int pprof_add_failed(struct pprof_reader *r);

/* Parse one top-level field each: 0, or -errno with the reason noted. */
int pprof_parse_string(struct pprof_reader *r, struct wire_field *field);
int pprof_parse_scalar(struct pprof_reader *r, struct wire_field *field);
int pprof_parse_sample_type(struct pprof_reader *r, struct wire_field *field);
int pprof_parse_period_type(struct pprof_reader *r, struct wire_field *field);
int pprof_parse_comments(struct pprof_reader *r, struct wire_field *field);
int pprof_parse_mapping(struct pprof_reader *r, struct wire_field *field);
int pprof_parse_function(struct pprof_reader *r, struct wire_field *field);
int pprof_parse_location(struct pprof_reader *r, struct wire_field *field);
int pprof_parse_sample(struct pprof_reader *r, struct wire_field *field);

#endif
