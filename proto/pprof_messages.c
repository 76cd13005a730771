/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of a pprof file into the profile model; see pprof_reader.h. */
#include <errno.h>
#include <string.h>

#include "proto/pprof_fields.h"
#include "proto/pprof_reader.h"

enum { NUMBERS_MAX = 7 }; /* the highest field number that parse_numbers is asked for */

static int find_string(struct pprof_reader *r, uint64_t index, uint32_t *ret_string)
{
	if (index >= r->string_count)
		return pprof_refuse(r, "string %llu of %zu does not exist",
				    (unsigned long long)index, r->string_count);
	*ret_string = r->strings[index];
	return 0;
}

static uint32_t find_id(const struct id_table *table, uint64_t id)
{
	uint32_t *have;

	if (id < table->dense_len)
		return table->dense[id];
	have = map_find(&table->sparse, &id);
	return have ? *have : 0;
}

static int set_id(struct pprof_reader *r, struct id_table *table, uint64_t id, uint32_t number)
{
	uint32_t *slot;
	int got = 0;

	if (id == 0)
		return pprof_refuse(r, "a %s has id 0", table->what);
	if (id < table->dense_len)
		slot = &table->dense[id];
	else
		got = map_add(&table->sparse, &id, &slot);
	if (got < 0)
		return pprof_add_failed(r);
	if (*slot)
		return pprof_refuse(r, "%s id %llu comes twice", table->what,
				    (unsigned long long)id);
	*slot = number;
	return 0;
}

/* A flat message of integers, by field number; the last of equal fields counts. */
static int parse_numbers(struct pprof_reader *r, struct wire_reader bytes,
			 uint64_t numbers[NUMBERS_MAX + 1])
{
	struct wire_field field;
	int got;

	while ((got = wire_next(&bytes, &field)) == 1) {
		if (field.number <= NUMBERS_MAX && field.type == WIRE_VARINT)
			numbers[field.number] = field.value;
	}
	return got < 0 ? pprof_refuse(r, "damaged message") : 0;
}

int pprof_parse_string(struct pprof_reader *r, struct wire_field *field)
{
	size_t len = (size_t)(field->bytes.end - field->bytes.pos);
	int64_t number;

	if (r->string_count == 0 && len)
		return pprof_refuse(r, "string 0 is not empty");
	number = profile_string_n(r->p, (const char *)field->bytes.pos, len);
	if (number < 0)
		return pprof_add_failed(r);
	r->strings[r->string_count++] = (uint32_t)number;
	return 0;
}

int pprof_parse_scalar(struct pprof_reader *r, struct wire_field *field)
{
	struct profile *p = r->p;

	switch (field->number) {
	case PROFILE_TIME_NANOS:
		/* pprof's own sign of files that were joined. */
		if (r->seen_time)
			return pprof_refuse(r, "several profiles joined in one file");
		r->seen_time = field->value != 0;
		p->time_ns = (int64_t)field->value;
		return 0;
	case PROFILE_DURATION_NANOS:
		p->duration_ns = (int64_t)field->value;
		return 0;
	case PROFILE_PERIOD:
		p->period = (int64_t)field->value;
		return 0;
	default:
		return find_string(r, field->value, &p->default_type);
	}
}

static int parse_type(struct pprof_reader *r, struct wire_field *field,
		      struct profile_type *ret_type)
{
	uint64_t numbers[NUMBERS_MAX + 1] = { 0 };
	struct profile_type type;

	if (parse_numbers(r, field->bytes, numbers) ||
	    find_string(r, numbers[VALUE_TYPE_TYPE], &type.type) ||
	    find_string(r, numbers[VALUE_TYPE_UNIT], &type.unit))
		return -EBADMSG;
	*ret_type = type;
	return 0;
}

int pprof_parse_sample_type(struct pprof_reader *r, struct wire_field *field)
{
	struct profile *p = r->p;

	if (p->type_count == PROFILE_MAX_TYPES)
		return pprof_refuse(r, "more than %d sample types", PROFILE_MAX_TYPES);
	if (parse_type(r, field, &p->types[p->type_count]))
		return -EBADMSG;
	p->type_count++;
	return 0;
}

int pprof_parse_period_type(struct pprof_reader *r, struct wire_field *field)
{
	return parse_type(r, field, &r->p->period_type);
}

int pprof_parse_comments(struct pprof_reader *r, struct wire_field *field)
{
	uint64_t index;
	uint32_t string = 0;
	int got;

	while ((got = wire_next_element(field, &index)) == 1) {
		if (find_string(r, index, &string))
			return -EBADMSG;
		if (profile_add_comment(r->p, "%s", profile_text(r->p, string)))
			return pprof_add_failed(r);
	}
	return got < 0 ? pprof_refuse(r, "damaged comment") : 0;
}

int pprof_parse_mapping(struct pprof_reader *r, struct wire_field *field)
{
	uint64_t numbers[NUMBERS_MAX + 1] = { 0 };
	struct profile_mapping mapping = { 0 };
	int64_t number;

	if (parse_numbers(r, field->bytes, numbers) ||
	    find_string(r, numbers[MAPPING_FILENAME], &mapping.filename) ||
	    find_string(r, numbers[MAPPING_BUILD_ID], &mapping.build_id))
		return -EBADMSG;
	mapping.memory_start = numbers[MAPPING_START];
	mapping.memory_limit = numbers[MAPPING_LIMIT];
	mapping.file_offset = numbers[MAPPING_OFFSET];
	mapping.has_functions = numbers[MAPPING_HAS_FUNCTIONS] != 0;
	number = profile_add_mapping(r->p, &mapping);
	if (number < 0)
		return pprof_add_failed(r);
	return set_id(r, &r->mappings, numbers[MAPPING_ID], (uint32_t)number);
}

int pprof_parse_function(struct pprof_reader *r, struct wire_field *field)
{
	uint64_t numbers[NUMBERS_MAX + 1] = { 0 };
	struct profile_function function = { 0 };
	int64_t number;

	if (parse_numbers(r, field->bytes, numbers) ||
	    find_string(r, numbers[FUNCTION_NAME], &function.name) ||
	    find_string(r, numbers[FUNCTION_SYSTEM_NAME], &function.system_name) ||
	    find_string(r, numbers[FUNCTION_FILENAME], &function.filename))
		return -EBADMSG;
	function.start_line = (int64_t)numbers[FUNCTION_START_LINE];
	number = profile_add_function(r->p, &function);
	if (number < 0)
		return pprof_add_failed(r);
	return set_id(r, &r->functions, numbers[FUNCTION_ID], (uint32_t)number);
}

static int parse_line(struct pprof_reader *r, struct wire_reader bytes)
{
	uint64_t numbers[NUMBERS_MAX + 1] = { 0 };
	struct profile_line line = { 0 };

	if (parse_numbers(r, bytes, numbers))
		return -EBADMSG;
	line.function_id = find_id(&r->functions, numbers[LINE_FUNCTION_ID]);
	line.line = (int64_t)numbers[LINE_LINE];
	if (!line.function_id)
		return pprof_refuse(r, "a line refers to function %llu, which does not exist",
				    (unsigned long long)numbers[LINE_FUNCTION_ID]);
	buf_put(&r->lines, &line, sizeof(line));
	return 0;
}

static int parse_lines(struct pprof_reader *r, struct wire_reader bytes)
{
	struct wire_field field;

	buf_reset(&r->lines);
	while (wire_next(&bytes, &field) == 1) {
		if (field.number == LOCATION_LINE && field.type == WIRE_BYTES &&
		    parse_line(r, field.bytes))
			return -EBADMSG;
	}
	return buf_error(&r->lines) ? pprof_add_failed(r) : 0;
}

int pprof_parse_location(struct pprof_reader *r, struct wire_field *field)
{
	uint64_t numbers[NUMBERS_MAX + 1] = { 0 };
	int64_t number;
	int err;

	if (parse_numbers(r, field->bytes, numbers))
		return -EBADMSG;
	err = parse_lines(r, field->bytes);
	if (err)
		return err;
	/* As pprof does, a mapping that does not exist is none. */
	number = profile_add_location(r->p, find_id(&r->mappings, numbers[LOCATION_MAPPING_ID]),
				      numbers[LOCATION_ADDRESS],
				      (const struct profile_line *)r->lines.data,
				      r->lines.len / sizeof(struct profile_line));
	if (number < 0)
		return pprof_add_failed(r);
	r->p->locations[number - 1].is_folded |= numbers[LOCATION_IS_FOLDED] != 0;
	return set_id(r, &r->locations, numbers[LOCATION_ID], (uint32_t)number);
}

static int parse_label(struct pprof_reader *r, struct wire_field *field)
{
	uint64_t numbers[NUMBERS_MAX + 1] = { 0 };
	struct profile_label label = { 0 };

	if (field->type != WIRE_BYTES)
		return pprof_refuse(r, "sample %zu has a damaged label", r->sample_number);
	if (parse_numbers(r, field->bytes, numbers) ||
	    find_string(r, numbers[LABEL_KEY], &label.key) ||
	    find_string(r, numbers[LABEL_STR], &label.str) ||
	    find_string(r, numbers[LABEL_NUM_UNIT], &label.unit))
		return -EBADMSG;
	if (label.str)
		label.unit = 0;
	else
		label.num = (int64_t)numbers[LABEL_NUM];
	buf_put(&r->labels, &label, sizeof(label));
	return 0;
}

static int parse_stack(struct pprof_reader *r, struct wire_field *field)
{
	uint64_t id;
	int got;

	while ((got = wire_next_element(field, &id)) == 1) {
		uint32_t number = find_id(&r->locations, id);

		if (!number)
			return pprof_refuse(r, "sample %zu has location %llu, which does not exist",
					    r->sample_number, (unsigned long long)id);
		buf_put(&r->stack, &number, sizeof(number));
	}
	return got < 0 ? pprof_refuse(r, "sample %zu has a damaged stack", r->sample_number) : 0;
}

static int parse_values(struct pprof_reader *r, struct wire_field *field)
{
	uint64_t value;
	int got;

	while ((got = wire_next_element(field, &value)) == 1) {
		if (value > INT64_MAX)
			return pprof_refuse(r, "sample %zu has a negative value (a difference of "
					    "two profiles?)", r->sample_number);
		buf_put(&r->values, &value, sizeof(value));
	}
	return got < 0 ? pprof_refuse(r, "sample %zu has damaged values", r->sample_number) : 0;
}

static int parse_sample_field(struct pprof_reader *r, struct wire_field *field)
{
	switch (field->number) {
	case SAMPLE_LOCATION_ID:
		return parse_stack(r, field);
	case SAMPLE_VALUE:
		return parse_values(r, field);
	case SAMPLE_LABEL:
		return parse_label(r, field);
	default:
		return 0;
	}
}

static int parse_sample_fields(struct pprof_reader *r, struct wire_reader bytes)
{
	struct wire_field field;
	int got;

	buf_reset(&r->stack);
	buf_reset(&r->values);
	buf_reset(&r->labels);
	while ((got = wire_next(&bytes, &field)) == 1) {
		if (parse_sample_field(r, &field))
			return -EBADMSG;
	}
	if (got < 0)
		return pprof_refuse(r, "sample %zu is damaged", r->sample_number);
	if (buf_error(&r->stack) || buf_error(&r->values) || buf_error(&r->labels))
		return pprof_add_failed(r);
	return 0;
}

int pprof_parse_sample(struct pprof_reader *r, struct wire_field *field)
{
	size_t value_count;
	int err;

	r->sample_number++;
	err = parse_sample_fields(r, field->bytes);
	if (err)
		return err;
	value_count = r->values.len / sizeof(int64_t);
	if (value_count != r->p->type_count)
		return pprof_refuse(r, "sample %zu has %zu values for %zu sample types",
				    r->sample_number, value_count, r->p->type_count);
	if (r->p->type_count == 0)
		return pprof_refuse(r, "samples but no sample types");
	err = profile_append_sample(r->p, (const uint32_t *)r->stack.data,
				    r->stack.len / sizeof(uint32_t),
				    (const int64_t *)r->values.data,
				    (const struct profile_label *)r->labels.data,
				    r->labels.len / sizeof(struct profile_label));
	return err ? pprof_add_failed(r) : 0;
}
