/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strict checker of pprof files, for tests: stricter than any consumer. Ids run from 1 in
 * order, every reference exists, no string is repeated, no zero is spelled out, repeated
 * numbers are packed, samples have one value per type and not all zero.
 */
#ifndef TESTS_UNIT_PPROF_CHECK_H
#define TESTS_UNIT_PPROF_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "proto/pprof_fields.h"
#include "proto/profile.h"
#include "proto/wire.h"

enum { CHECK_MAX_STRINGS = 1000 };

struct check_counts {
	size_t types, samples, mappings, locations, functions, strings, period_types;
	struct wire_reader string[CHECK_MAX_STRINGS];
};

/* Fills numbers[field] of a message; each field may come once only. */
static inline void numbers_of(struct wire_reader bytes, uint64_t numbers[8])
{
	struct wire_field field;
	int got;

	memset(numbers, 0, 8 * sizeof(numbers[0]));
	while ((got = wire_next(&bytes, &field)) == 1) {
		assert_in_range(field.number, 1, 7);
		if (field.type == WIRE_VARINT) {
			assert_int_equal(numbers[field.number], 0);
			assert_int_not_equal(field.value, 0);
			numbers[field.number] = field.value;
		}
	}
	assert_int_equal(got, 0);
}

static inline void check_string(const struct check_counts *c, uint64_t index)
{
	assert_true(index < c->strings);
}

static inline void check_sample(const struct check_counts *c, struct wire_reader bytes)
{
	struct wire_field field;
	size_t values = 0;
	uint64_t number, nonzero = 0;

	while (wire_next(&bytes, &field) == 1) {
		assert_int_equal(field.type, WIRE_BYTES); /* all packed */
		if (field.number == SAMPLE_LABEL) {
			uint64_t label[8];

			numbers_of(field.bytes, label);
			assert_in_range(label[LABEL_KEY], 1, c->strings - 1);
			check_string(c, label[LABEL_STR]);
			assert_true(!label[LABEL_STR] || (!label[LABEL_NUM] && !label[LABEL_NUM_UNIT]));
			continue;
		}
		while (wire_next_element(&field, &number) == 1) {
			if (field.number == SAMPLE_LOCATION_ID) {
				assert_in_range(number, 1, c->locations);
			} else {
				assert_int_equal(field.number, SAMPLE_VALUE);
				assert_true(number <= INT64_MAX);
				nonzero |= number;
				values++;
			}
		}
	}
	assert_int_equal(values, c->types);
	assert_true(nonzero != 0);
}

static inline void check_location(const struct check_counts *c, struct wire_reader bytes, size_t id)
{
	struct wire_field field;
	uint64_t numbers[8];

	numbers_of(bytes, numbers);
	assert_int_equal(numbers[LOCATION_ID], id);
	assert_true(numbers[LOCATION_MAPPING_ID] <= c->mappings);
	while (wire_next(&bytes, &field) == 1) {
		if (field.number != LOCATION_LINE)
			continue;
		numbers_of(field.bytes, numbers);
		assert_in_range(numbers[LINE_FUNCTION_ID], 1, c->functions);
	}
}

static inline void check_references(const struct check_counts *c, struct wire_reader all)
{
	size_t mapping = 0, location = 0, function = 0;
	struct wire_field field;
	uint64_t numbers[8];

	while (wire_next(&all, &field) == 1) {
		if (field.number == PROFILE_SAMPLE)
			check_sample(c, field.bytes);
		if (field.number == PROFILE_LOCATION)
			check_location(c, field.bytes, ++location);
		if (field.number == PROFILE_MAPPING) {
			numbers_of(field.bytes, numbers);
			assert_int_equal(numbers[MAPPING_ID], ++mapping);
			check_string(c, numbers[MAPPING_FILENAME]);
			check_string(c, numbers[MAPPING_BUILD_ID]);
		}
		if (field.number == PROFILE_FUNCTION) {
			numbers_of(field.bytes, numbers);
			assert_int_equal(numbers[FUNCTION_ID], ++function);
			assert_in_range(numbers[FUNCTION_NAME], 1, c->strings - 1);
			check_string(c, numbers[FUNCTION_SYSTEM_NAME]);
			check_string(c, numbers[FUNCTION_FILENAME]);
		}
		if (field.number == PROFILE_SAMPLE_TYPE || field.number == PROFILE_PERIOD_TYPE) {
			numbers_of(field.bytes, numbers);
			check_string(c, numbers[VALUE_TYPE_TYPE]);
			check_string(c, numbers[VALUE_TYPE_UNIT]);
		}
	}
}

static inline void count_messages(struct check_counts *c, struct wire_reader all)
{
	struct wire_field field;
	int got;

	while ((got = wire_next(&all, &field)) == 1) {
		c->types += field.number == PROFILE_SAMPLE_TYPE;
		c->samples += field.number == PROFILE_SAMPLE;
		c->mappings += field.number == PROFILE_MAPPING;
		c->locations += field.number == PROFILE_LOCATION;
		c->functions += field.number == PROFILE_FUNCTION;
		c->period_types += field.number == PROFILE_PERIOD_TYPE;
		if (field.number == PROFILE_STRING_TABLE) {
			assert_true(c->strings < CHECK_MAX_STRINGS);
			c->string[c->strings++] = field.bytes;
		}
	}
	assert_int_equal(got, 0);
}

static inline void check_strings(const struct check_counts *c)
{
	assert_true(c->strings > 0);
	assert_ptr_equal(c->string[0].pos, c->string[0].end);
	for (size_t i = 0; i < c->strings; i++) {
		size_t len = (size_t)(c->string[i].end - c->string[i].pos);

		for (size_t j = 0; j < i; j++)
			assert_false(len == (size_t)(c->string[j].end - c->string[j].pos) &&
				     memcmp(c->string[i].pos, c->string[j].pos, len) == 0);
	}
}

/* The whole file, which was written from `p`. */
static inline void check_strictly(const struct buf *file, const struct profile *p)
{
	struct wire_reader all = { file->data, file->data + file->len };
	struct check_counts c = { 0 };

	count_messages(&c, all);
	check_strings(&c);
	assert_int_equal(c.types, p->type_count);
	assert_int_equal(c.samples, p->sample_count);
	assert_int_equal(c.period_types, 1);
	check_references(&c, all);
}

#endif
