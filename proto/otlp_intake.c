/* SPDX-License-Identifier: Apache-2.0 */
/* A profile's tables, as far as samples need them, into the dictionary; see otlp_private.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/otlp_private.h"

int otlp_intake_init(struct otlp_intake *in, struct otlp_dictionary *d, const struct profile *p)
{
	*in = (struct otlp_intake){
		.d = d,
		.p = p,
		.strings = calloc(p->strings.count, sizeof(uint32_t)),
		.mappings = calloc(p->mapping_count + 1, sizeof(uint32_t)),
		.functions = calloc(p->function_count + 1, sizeof(uint32_t)),
		.locations = calloc(p->location_count + 1, sizeof(uint32_t)),
	};
	buf_init(&in->lines, SIZE_MAX / 2);
	buf_init(&in->stack, SIZE_MAX / 2);
	return in->strings && in->mappings && in->functions && in->locations ? 0 : -ENOMEM;
}

void otlp_intake_fini(struct otlp_intake *in)
{
	free(in->strings);
	free(in->mappings);
	free(in->functions);
	free(in->locations);
	buf_fini(&in->lines);
	buf_fini(&in->stack);
}

/* Notes the number of an id once it is known; returns it. */
static int64_t note(uint32_t *numbers, uint32_t id, int64_t number)
{
	if (number > 0)
		numbers[id] = (uint32_t)number;
	return number;
}

int64_t otlp_intake_string(struct otlp_intake *in, uint32_t string)
{
	if (string == 0 || in->strings[string])
		return in->strings[string];
	return note(in->strings, string, otlp_add_string(in->d, profile_text(in->p, string)));
}

/* Translates `count` strings; 0 or -errno. */
static int strings_of(struct otlp_intake *in, const uint32_t *from, uint32_t *to, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int64_t number = otlp_intake_string(in, from[i]);

		if (number < 0)
			return (int)number;
		to[i] = (uint32_t)number;
	}
	return 0;
}

static int64_t take_mapping(struct otlp_intake *in, uint32_t id)
{
	const struct profile_mapping *from = &in->p->mappings[id - 1];
	const char *build_id = profile_text(in->p, from->build_id);
	struct otlp_mapping row = { from->memory_start, from->memory_limit, from->file_offset };
	int64_t attribute = 0;
	int err;

	if (in->mappings[id])
		return in->mappings[id];
	err = strings_of(in, &from->filename, &row.filename, 1);
	if (!err && *build_id)
		attribute = otlp_add_attribute(in->d, "process.executable.build_id.gnu", build_id);
	if (err || attribute < 0)
		return err ? err : attribute;
	row.attribute = (uint32_t)attribute;
	return note(in->mappings, id, otlp_add_row(in->d, &in->d->mappings, &row));
}

static int64_t take_function(struct otlp_intake *in, uint32_t id)
{
	const struct profile_function *from = &in->p->functions[id - 1];
	uint32_t names[] = { from->name, from->system_name, from->filename };
	struct otlp_function row = { .start_line = from->start_line };
	int err;

	if (in->functions[id])
		return in->functions[id];
	err = strings_of(in, names, names, sizeof(names) / sizeof(names[0]));
	if (err)
		return err;
	row.name = names[0];
	/* Each number costs two bytes, compressed; most functions have one name. */
	row.system_name = names[1] == names[0] ? 0 : names[1];
	row.filename = names[2];
	return note(in->functions, id, otlp_add_row(in->d, &in->d->functions, &row));
}

static int64_t take_lines(struct otlp_intake *in, const struct profile_location *from)
{
	buf_reset(&in->lines);
	for (size_t i = 0; i < from->line_count; i++) {
		int64_t function = take_function(in, from->lines[i].function_id);
		struct otlp_line line = { from->lines[i].line, (uint32_t)function, 0 };

		if (function < 0)
			return function;
		buf_put(&in->lines, &line, sizeof(line));
	}
	if (buf_error(&in->lines))
		return -ENOMEM;
	return otlp_add_list(in->d, &in->d->lines, in->lines.data, in->lines.len);
}

/*
 * By the name of the mapping: a file is native code, as is the vDSO; other names in brackets
 * are the kernel and its modules. Code without a file has no known type.
 */
static const char *frame_type(const char *mapping)
{
	static const struct {
		const char *mapping, *type;
	} special[] = {
		{ "", NULL },
		{ "[jit]", NULL },
		{ "[anon]", NULL },
		{ "[vdso]", "native" },
	};

	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
		if (strcmp(mapping, special[i].mapping) == 0)
			return special[i].type;
	}
	return mapping[0] == '[' ? "kernel" : "native";
}

static int64_t take_frame_type(struct otlp_intake *in, uint32_t mapping_id)
{
	const struct profile *p = in->p;
	const char *type =
		mapping_id ? frame_type(profile_text(p, p->mappings[mapping_id - 1].filename))
			   : NULL;

	return type ? otlp_add_attribute(in->d, "profile.frame.type", type) : 0;
}

static int64_t take_location(struct otlp_intake *in, uint32_t id)
{
	const struct profile_location *from = &in->p->locations[id - 1];
	struct otlp_location row = { .address = from->address };
	int64_t numbers[3];

	if (in->locations[id])
		return in->locations[id];
	numbers[0] = from->mapping_id ? take_mapping(in, from->mapping_id) : 0;
	numbers[1] = take_lines(in, from);
	numbers[2] = take_frame_type(in, from->mapping_id);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (numbers[i] < 0)
			return numbers[i];
	}
	row.mapping = (uint32_t)numbers[0];
	row.lines = (uint32_t)numbers[1];
	row.attribute = (uint32_t)numbers[2];
	return note(in->locations, id, otlp_add_row(in->d, &in->d->locations, &row));
}

int64_t otlp_intake_stack(struct otlp_intake *in, const struct profile_sample *sample)
{
	buf_reset(&in->stack);
	for (size_t i = 0; i < sample->location_count; i++) {
		int64_t number = take_location(in, sample->locations[i]);
		uint32_t id = (uint32_t)number;

		if (number < 0)
			return number;
		buf_put(&in->stack, &id, sizeof(id));
	}
	if (buf_error(&in->stack))
		return -ENOMEM;
	return otlp_add_list(in->d, &in->d->stacks, in->stack.data, in->stack.len);
}
