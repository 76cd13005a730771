/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dictionary of an OTLP request: tables without doubles whose element 0 is empty, so that
 * number 0 means none. Adding gives the number of what is there already or new; each addition
 * counts against one bound in bytes. Only what goes out is in the tables: texts of attributes are
 * written in place, so they are apart from the strings.
 */
#ifndef PROTO_OTLP_DICTIONARY_H
#define PROTO_OTLP_DICTIONARY_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/strtab.h"
#include "proto/profile.h"

/* Rows of one fixed size, compared as bytes; number n is element n - 1. */
struct otlp_table {
	struct buf rows;
	struct map index;
};

/* Lists of bytes. */
struct otlp_lists {
	struct arena memory;
	struct otlp_table table; /* struct otlp_list; its index goes by hash */
};

struct otlp_list {
	const void *bytes;
	size_t len;
};

/* Rows; no padding. */
struct otlp_mapping {
	uint64_t start, limit, offset;
	uint32_t filename, attribute;
};

struct otlp_function {
	uint32_t name, system_name, filename, zero;
	int64_t start_line;
};

struct otlp_location {
	uint64_t address;
	uint32_t mapping, lines; /* lines: a list of struct otlp_line */
	uint32_t attribute, zero;
};

struct otlp_line {
	int64_t line;
	uint32_t function, zero;
};

struct otlp_attribute_row {
	uint32_t key, text; /* of strings; of texts */
};

struct otlp_dictionary {
	size_t bytes, max_bytes;
	struct strtab strings, texts;
	struct otlp_table mappings, functions, locations, attributes;
	struct otlp_lists lines, stacks; /* stacks: lists of uint32_t */
};

int otlp_dictionary_init(struct otlp_dictionary *d, size_t max_bytes);
void otlp_dictionary_fini(struct otlp_dictionary *d);

/* Numbers, or -ENOMEM, or -EFBIG over the bound. */
int64_t otlp_add_string(struct otlp_dictionary *d, const char *text);
int64_t otlp_add_attribute(struct otlp_dictionary *d, const char *key, const char *text);
int64_t otlp_add_row(struct otlp_dictionary *d, struct otlp_table *t, const void *row);
int64_t otlp_add_list(struct otlp_dictionary *d, struct otlp_lists *l, const void *bytes,
		      size_t len);

#endif
