/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The streaming pprof writer; see pprof.h. Fields go out in the order of their numbers. Each
 * message is built in `message` (its sub-messages in `part`), so memory is one message plus
 * the output block.
 */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "proto/pprof.h"
#include "proto/pprof_fields.h"
#include "proto/pprof_order.h"
#include "proto/wire.h"

enum { BLOCK_SIZE = 64 * 1024 };

/* Blocks and messages are as large as the largest stack or string, which the model bounds. */
static const size_t NO_BOUND = SIZE_MAX / 4;

struct writer {
	const struct profile *p;
	struct pprof_order order;
	struct byte_sink sink;
	struct buf block;   /* bytes on their way to the sink */
	struct buf message; /* the message being built */
	struct buf part;    /* a sub-message of it */
	int err;            /* the sink's */
};

static void flush(struct writer *w)
{
	if (!w->err && w->block.len && !buf_error(&w->block))
		w->err = w->sink.write(w->sink.context, w->block.data, w->block.len);
	if (!buf_error(&w->block))
		buf_reset(&w->block);
}

static void flush_full(struct writer *w)
{
	if (w->block.len >= BLOCK_SIZE)
		flush(w);
}

/* Moves the built message to the output as field `number` of the profile. */
static void put_message(struct writer *w, uint32_t number)
{
	wire_put_bytes(&w->block, number, w->message.data, w->message.len);
	if (!buf_error(&w->message))
		buf_reset(&w->message);
	flush_full(w);
}

/* Moves the built sub-message into the message. */
static void put_part(struct writer *w, uint32_t number)
{
	wire_put_bytes(&w->message, number, w->part.data, w->part.len);
	if (!buf_error(&w->part))
		buf_reset(&w->part);
}

static void put_type(struct writer *w, uint32_t number, const struct profile_type *type)
{
	wire_put_uint(&w->message, VALUE_TYPE_TYPE, type->type);
	wire_put_uint(&w->message, VALUE_TYPE_UNIT, type->unit);
	put_message(w, number);
}

static void put_label(struct writer *w, const struct profile_label *label)
{
	wire_put_uint(&w->part, LABEL_KEY, label->key);
	if (label->str) {
		wire_put_uint(&w->part, LABEL_STR, label->str);
	} else {
		wire_put_uint(&w->part, LABEL_NUM, (uint64_t)label->num);
		wire_put_uint(&w->part, LABEL_NUM_UNIT, label->unit);
	}
	put_part(w, SAMPLE_LABEL);
}

static void put_sample(struct writer *w, const struct profile_sample *sample)
{
	if (sample->location_count) {
		for (size_t i = 0; i < sample->location_count; i++)
			wire_put_varint(&w->part, w->order.location_ids[sample->locations[i] - 1]);
		put_part(w, SAMPLE_LOCATION_ID);
	}
	for (size_t i = 0; i < w->p->type_count; i++)
		wire_put_varint(&w->part, (uint64_t)sample->values[i]);
	put_part(w, SAMPLE_VALUE);
	for (size_t i = 0; i < sample->label_count; i++)
		put_label(w, &sample->labels[i]);
	put_message(w, PROFILE_SAMPLE);
}

static void put_mapping(struct writer *w, uint64_t id, const struct profile_mapping *mapping)
{
	struct buf *out = &w->message;

	wire_put_uint(out, MAPPING_ID, id);
	wire_put_uint(out, MAPPING_START, mapping->memory_start);
	wire_put_uint(out, MAPPING_LIMIT, mapping->memory_limit);
	wire_put_uint(out, MAPPING_OFFSET, mapping->file_offset);
	wire_put_uint(out, MAPPING_FILENAME, mapping->filename);
	wire_put_uint(out, MAPPING_BUILD_ID, mapping->build_id);
	wire_put_uint(out, MAPPING_HAS_FUNCTIONS, mapping->has_functions);
	put_message(w, PROFILE_MAPPING);
}

static void put_location(struct writer *w, uint64_t id, const struct profile_location *location)
{
	struct buf *out = &w->message;

	wire_put_uint(out, LOCATION_ID, id);
	wire_put_uint(out, LOCATION_MAPPING_ID, location->mapping_id);
	wire_put_uint(out, LOCATION_ADDRESS, location->address);
	for (size_t i = 0; i < location->line_count; i++) {
		uint32_t function = location->lines[i].function_id;

		wire_put_uint(&w->part, LINE_FUNCTION_ID,
			      function ? w->order.function_ids[function - 1] : 0);
		wire_put_uint(&w->part, LINE_LINE, (uint64_t)location->lines[i].line);
		put_part(w, LOCATION_LINE);
	}
	wire_put_uint(out, LOCATION_IS_FOLDED, location->is_folded);
	put_message(w, PROFILE_LOCATION);
}

static void put_function(struct writer *w, uint64_t id, const struct profile_function *function)
{
	struct buf *out = &w->message;

	wire_put_uint(out, FUNCTION_ID, id);
	wire_put_uint(out, FUNCTION_NAME, function->name);
	wire_put_uint(out, FUNCTION_SYSTEM_NAME, function->system_name);
	wire_put_uint(out, FUNCTION_FILENAME, function->filename);
	wire_put_uint(out, FUNCTION_START_LINE, (uint64_t)function->start_line);
	put_message(w, PROFILE_FUNCTION);
}

static void put_tables(struct writer *w)
{
	const struct profile *p = w->p;

	for (size_t i = 0; i < p->type_count && !w->err; i++)
		put_type(w, PROFILE_SAMPLE_TYPE, &p->types[i]);
	for (size_t i = 0; i < p->sample_count && !w->err; i++)
		put_sample(w, &p->samples[w->order.samples[i]]);
	for (size_t i = 0; i < p->mapping_count && !w->err; i++)
		put_mapping(w, i + 1, &p->mappings[i]);
	for (size_t i = 0; i < p->location_count && !w->err; i++)
		put_location(w, i + 1, &p->locations[w->order.locations[i]]);
	for (size_t i = 0; i < p->function_count && !w->err; i++)
		put_function(w, i + 1, &p->functions[w->order.functions[i]]);
	for (size_t i = 0; i < p->strings.count && !w->err; i++) {
		const char *text = profile_text(p, (uint32_t)i);

		wire_put_bytes(&w->block, PROFILE_STRING_TABLE, text, strlen(text));
		flush_full(w);
	}
}

/* period_type is written even when it is empty: stores take its absence badly. */
static void put_scalars(struct writer *w)
{
	const struct profile *p = w->p;

	wire_put_uint(&w->block, PROFILE_TIME_NANOS, (uint64_t)p->time_ns);
	wire_put_uint(&w->block, PROFILE_DURATION_NANOS, (uint64_t)p->duration_ns);
	put_type(w, PROFILE_PERIOD_TYPE, &p->period_type);
	wire_put_uint(&w->block, PROFILE_PERIOD, (uint64_t)p->period);
	for (size_t i = 0; i < p->comment_count; i++)
		wire_put_varint(&w->part, p->comments[i]);
	if (p->comment_count)
		wire_put_bytes(&w->block, PROFILE_COMMENT, w->part.data, w->part.len);
	wire_put_uint(&w->block, PROFILE_DEFAULT_TYPE, p->default_type);
}

int pprof_write(const struct profile *p, struct byte_sink sink)
{
	struct writer w = { .p = p, .sink = sink };
	int err = pprof_order_init(&w.order, p);

	if (err)
		return err;
	buf_init(&w.block, NO_BOUND);
	buf_init(&w.message, NO_BOUND);
	buf_init(&w.part, NO_BOUND);
	put_tables(&w);
	put_scalars(&w);
	flush(&w);
	err = w.err;
	if (!err && (buf_error(&w.block) || buf_error(&w.message) || buf_error(&w.part)))
		err = -ENOMEM;
	buf_fini(&w.block);
	buf_fini(&w.message);
	buf_fini(&w.part);
	pprof_order_fini(&w.order);
	return err;
}
