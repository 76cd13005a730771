/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pprof reader; see pprof.h. Messages may come in any order, but refer to one another, so
 * the top level is walked once for counting and once per kind, lowest kind first: strings,
 * tables, locations, samples. Walking skips over messages and costs little.
 *
 * What is refused is what `go tool pprof` refuses (its CheckValid and decoder), plus negative
 * values, which the model has no place for.
 */
#include "proto/pprof.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/pprof_fields.h"
#include "proto/pprof_reader.h"
#include "proto/profile_private.h"

enum { PASS_STRINGS, PASS_TABLES, PASS_LOCATIONS, PASS_SAMPLES, PASS_COUNT };

static const struct kind {
	int pass;
	enum wire_type type;
	bool repeated_number; /* may be packed or not */
	int (*parse)(struct pprof_reader *r, struct wire_field *field);
} KINDS[] = {
	[PROFILE_SAMPLE_TYPE] = { PASS_TABLES, WIRE_BYTES, false, pprof_parse_sample_type },
	[PROFILE_SAMPLE] = { PASS_SAMPLES, WIRE_BYTES, false, pprof_parse_sample },
	[PROFILE_MAPPING] = { PASS_TABLES, WIRE_BYTES, false, pprof_parse_mapping },
	[PROFILE_LOCATION] = { PASS_LOCATIONS, WIRE_BYTES, false, pprof_parse_location },
	[PROFILE_FUNCTION] = { PASS_TABLES, WIRE_BYTES, false, pprof_parse_function },
	[PROFILE_STRING_TABLE] = { PASS_STRINGS, WIRE_BYTES, false, pprof_parse_string },
	[PROFILE_TIME_NANOS] = { PASS_TABLES, WIRE_VARINT, false, pprof_parse_scalar },
	[PROFILE_DURATION_NANOS] = { PASS_TABLES, WIRE_VARINT, false, pprof_parse_scalar },
	[PROFILE_PERIOD_TYPE] = { PASS_TABLES, WIRE_BYTES, false, pprof_parse_period_type },
	[PROFILE_PERIOD] = { PASS_TABLES, WIRE_VARINT, false, pprof_parse_scalar },
	[PROFILE_COMMENT] = { PASS_TABLES, WIRE_BYTES, true, pprof_parse_comments },
	[PROFILE_DEFAULT_TYPE] = { PASS_TABLES, WIRE_VARINT, false, pprof_parse_scalar },
};

enum { KIND_COUNT = sizeof(KINDS) / sizeof(KINDS[0]) };

int pprof_refuse(struct pprof_reader *r, const char *format, ...)
{
	va_list args;

	if (r->reason_size == 0 || r->reason[0])
		return -EBADMSG;
	va_start(args, format);
	vsnprintf(r->reason, r->reason_size, format, args);
	va_end(args);
	return -EBADMSG;
}

int pprof_add_failed(struct pprof_reader *r)
{
	if (r->p->full) {
		pprof_refuse(r, "needs more than %zu MiB of memory", r->p->max_bytes >> 20);
		return -EFBIG;
	}
	pprof_refuse(r, "out of memory");
	return -ENOMEM;
}

static int id_table_init(struct id_table *table, const char *what, size_t count, size_t max_bytes)
{
	table->what = what;
	table->dense_len = count + 1;
	table->dense = calloc(table->dense_len, sizeof(*table->dense));
	map_init(&table->sparse, sizeof(uint64_t), sizeof(uint32_t), max_bytes / 16);
	return table->dense ? 0 : -ENOMEM;
}

static void id_table_fini(struct id_table *table)
{
	free(table->dense);
	if (table->sparse.key_size)
		map_fini(&table->sparse);
}

static const struct kind *kind_of(const struct wire_field *field)
{
	if (field->number >= KIND_COUNT || !KINDS[field->number].parse)
		return NULL;
	return &KINDS[field->number];
}

static int parse_field(struct pprof_reader *r, const struct kind *kind, struct wire_field *field)
{
	if (field->type != kind->type && !(kind->repeated_number && field->type == WIRE_VARINT))
		return pprof_refuse(r, "field %u has the wrong wire type", field->number);
	return kind->parse(r, field);
}

static int run_pass(struct pprof_reader *r, struct wire_reader all, int pass)
{
	struct wire_field field;
	int err;

	while (wire_next(&all, &field) == 1) {
		const struct kind *kind = kind_of(&field);

		if (!kind || kind->pass != pass)
			continue;
		err = parse_field(r, kind, &field);
		if (err)
			return err;
	}
	return 0;
}

/* Checks the framing of the top level, and counts the fields of each number. */
static int count_fields(struct pprof_reader *r, struct wire_reader all, size_t counts[KIND_COUNT])
{
	const uint8_t *start = all.pos;
	struct wire_field field;
	int got;

	while ((got = wire_next(&all, &field)) == 1) {
		if (field.number < KIND_COUNT)
			counts[field.number]++;
	}
	if (got < 0 && counts[PROFILE_SAMPLE_TYPE] == 0)
		return pprof_refuse(r, "not a pprof profile");
	if (got < 0)
		return pprof_refuse(r, "damaged or cut at byte %zu", (size_t)(all.pos - start));
	if (all.end == start)
		return pprof_refuse(r, "empty");
	if (counts[PROFILE_STRING_TABLE] == 0)
		return pprof_refuse(r, "not a pprof profile: no string table");
	return 0;
}

static int set_up(struct pprof_reader *r, const size_t counts[KIND_COUNT], size_t max_bytes)
{
	size_t numbers = counts[PROFILE_STRING_TABLE] + counts[PROFILE_MAPPING] +
			 counts[PROFILE_LOCATION] + counts[PROFILE_FUNCTION];

	if (numbers > UINT32_MAX / 2 || !profile_has_room(r->p, numbers * sizeof(uint32_t)))
		return pprof_add_failed(r);
	r->strings = calloc(counts[PROFILE_STRING_TABLE], sizeof(*r->strings));
	if (!r->strings ||
	    id_table_init(&r->mappings, "mapping", counts[PROFILE_MAPPING], max_bytes) ||
	    id_table_init(&r->locations, "location", counts[PROFILE_LOCATION], max_bytes) ||
	    id_table_init(&r->functions, "function", counts[PROFILE_FUNCTION], max_bytes))
		return pprof_add_failed(r);
	buf_init(&r->stack, max_bytes);
	buf_init(&r->values, max_bytes);
	buf_init(&r->labels, max_bytes);
	buf_init(&r->lines, max_bytes);
	return 0;
}

static void tear_down(struct pprof_reader *r)
{
	free(r->strings);
	id_table_fini(&r->mappings);
	id_table_fini(&r->locations);
	id_table_fini(&r->functions);
	buf_fini(&r->stack);
	buf_fini(&r->values);
	buf_fini(&r->labels);
	buf_fini(&r->lines);
	profile_free(r->p);
}

static int read_all(struct pprof_reader *r, struct wire_reader all, size_t max_bytes)
{
	size_t counts[KIND_COUNT] = { 0 };
	int err;

	err = count_fields(r, all, counts);
	if (!err)
		err = set_up(r, counts, max_bytes);
	for (int pass = 0; pass < PASS_COUNT && !err; pass++)
		err = run_pass(r, all, pass);
	return err;
}

int pprof_read(const void *bytes, size_t len, size_t max_bytes, struct profile **ret_profile,
	       char *reason, size_t reason_size)
{
	struct pprof_reader r = { .reason = reason, .reason_size = reason_size };
	struct wire_reader all = { .pos = bytes, .end = (const uint8_t *)bytes + len };
	int err;

	if (reason_size)
		reason[0] = 0;
	err = profile_new(max_bytes, &r.p);
	if (err) {
		pprof_refuse(&r, "out of memory");
		return err;
	}
	err = read_all(&r, all, max_bytes);
	if (!err) {
		*ret_profile = r.p;
		r.p = NULL;
	}
	tear_down(&r);
	return err;
}
