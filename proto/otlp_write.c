/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of an OTLP request; see otlp.h. The dictionary is one message whose length stands before
 * it, so it is encoded twice: first to be counted, then to be written, a block at a time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/otlp.h"
#include "proto/otlp_fields.h"
#include "proto/otlp_private.h"
#include "proto/wire.h"

enum { BLOCK_SIZE = 64 * 1024 };

static const size_t NO_BOUND = SIZE_MAX / 4;

/* Locations sorted: neighbours in memory have most bytes of their address in common. */
struct order {
	uint32_t *at;     /* the n-th to be written, from 0 */
	uint32_t *number; /* of the n-th row: what stacks say */
};

struct writer {
	const struct otlp_dictionary *d;
	const struct order *locations;
	struct byte_sink sink; /* write NULL: only count */
	uint64_t count;
	struct buf block, message, part;
	int err;
};

static void flush(struct writer *w)
{
	w->count += w->block.len;
	if (!w->err && w->sink.write && w->block.len && !buf_error(&w->block))
		w->err = w->sink.write(w->sink.context, w->block.data, w->block.len);
	if (!buf_error(&w->block))
		buf_reset(&w->block);
}

static void put_message(struct writer *w, uint32_t table)
{
	wire_put_bytes(&w->block, table, w->message.data, w->message.len);
	if (!buf_error(&w->message))
		buf_reset(&w->message);
	if (w->block.len >= BLOCK_SIZE)
		flush(w);
}

static void put_part(struct writer *w, uint32_t field)
{
	wire_put_bytes(&w->message, field, w->part.data, w->part.len);
	if (!buf_error(&w->part))
		buf_reset(&w->part);
}

/* At most one attribute, as a packed list. */
static void put_attribute_index(struct writer *w, uint32_t field, uint32_t attribute)
{
	if (!attribute)
		return;
	wire_put_varint(&w->part, attribute);
	put_part(w, field);
}

static void put_mapping(struct writer *w, const void *row)
{
	const struct otlp_mapping *mapping = row;

	wire_put_uint(&w->message, OTLP_MAPPING_START, mapping->start);
	wire_put_uint(&w->message, OTLP_MAPPING_LIMIT, mapping->limit);
	wire_put_uint(&w->message, OTLP_MAPPING_OFFSET, mapping->offset);
	wire_put_uint(&w->message, OTLP_MAPPING_FILENAME, mapping->filename);
	put_attribute_index(w, OTLP_MAPPING_ATTRIBUTES, mapping->attribute);
}

static void put_lines(struct writer *w, uint32_t list)
{
	const struct otlp_list *lines;

	if (!list)
		return;
	lines = (const struct otlp_list *)w->d->lines.table.rows.data + list - 1;
	for (size_t i = 0; i < lines->len / sizeof(struct otlp_line); i++) {
		const struct otlp_line *line = (const struct otlp_line *)lines->bytes + i;

		wire_put_uint(&w->part, OTLP_LINE_FUNCTION, line->function);
		wire_put_uint(&w->part, OTLP_LINE_LINE, (uint64_t)line->line);
		put_part(w, OTLP_LOCATION_LINES);
	}
}

static void put_location(struct writer *w, const void *row)
{
	const struct otlp_location *location = row;

	wire_put_uint(&w->message, OTLP_LOCATION_MAPPING, location->mapping);
	wire_put_uint(&w->message, OTLP_LOCATION_ADDRESS, location->address);
	put_lines(w, location->lines);
	put_attribute_index(w, OTLP_LOCATION_ATTRIBUTES, location->attribute);
}

static void put_function(struct writer *w, const void *row)
{
	const struct otlp_function *function = row;

	wire_put_uint(&w->message, OTLP_FUNCTION_NAME, function->name);
	wire_put_uint(&w->message, OTLP_FUNCTION_SYSTEM_NAME, function->system_name);
	wire_put_uint(&w->message, OTLP_FUNCTION_FILENAME, function->filename);
	wire_put_uint(&w->message, OTLP_FUNCTION_START_LINE, (uint64_t)function->start_line);
}

static void put_attribute(struct writer *w, const void *row)
{
	const struct otlp_attribute_row *attribute = row;
	const char *text = strtab_get(&w->d->texts, attribute->text);

	wire_put_uint(&w->message, OTLP_ATTRIBUTE_KEY, attribute->key);
	wire_put_bytes(&w->part, OTLP_ANY_STRING, text, strlen(text));
	put_part(w, OTLP_ATTRIBUTE_VALUE);
}

static uint32_t location_number(const struct writer *w, uint32_t row)
{
	return row ? w->locations->number[row - 1] : 0;
}

static void put_stack(struct writer *w, const void *row)
{
	const struct otlp_list *stack = row;

	for (size_t i = 0; i < stack->len / sizeof(uint32_t); i++)
		wire_put_varint(&w->part, location_number(w, ((const uint32_t *)stack->bytes)[i]));
	put_part(w, OTLP_STACK_LOCATIONS);
}

static void put_strings(struct writer *w)
{
	for (size_t i = 0; i < w->d->strings.count && !w->err; i++) {
		const char *text = strtab_get(&w->d->strings, (uint32_t)i);

		buf_put(&w->message, text, strlen(text));
		put_message(w, OTLP_DICTIONARY_STRINGS);
	}
}

/* Each table begins with its empty element; of links there is no other. */
static void put_tables(struct writer *w)
{
	const struct {
		uint32_t field;
		const struct otlp_table *table;
		const uint32_t *order;
		size_t row_size;
		void (*put)(struct writer *w, const void *row);
	} tables[] = {
		{ OTLP_DICTIONARY_MAPPINGS, &w->d->mappings, NULL,
		  sizeof(struct otlp_mapping), put_mapping },
		{ OTLP_DICTIONARY_LOCATIONS, &w->d->locations, w->locations->at,
		  sizeof(struct otlp_location), put_location },
		{ OTLP_DICTIONARY_FUNCTIONS, &w->d->functions, NULL,
		  sizeof(struct otlp_function), put_function },
		{ OTLP_DICTIONARY_ATTRIBUTES, &w->d->attributes, NULL,
		  sizeof(struct otlp_attribute_row), put_attribute },
		{ OTLP_DICTIONARY_STACKS, &w->d->stacks.table, NULL,
		  sizeof(struct otlp_list), put_stack },
	};

	put_message(w, OTLP_DICTIONARY_LINKS);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		const struct buf *rows = &tables[i].table->rows;

		put_message(w, tables[i].field);
		for (size_t n = 0; n < rows->len / tables[i].row_size && !w->err; n++) {
			size_t row = tables[i].order ? tables[i].order[n] : n;

			tables[i].put(w, rows->data + row * tables[i].row_size);
			put_message(w, tables[i].field);
		}
	}
	put_strings(w);
	flush(w);
}

/* The dictionary's bytes through the sink, or only counted. */
static int write_dictionary(const struct otlp_dictionary *d, const struct order *locations,
			    struct byte_sink sink, uint64_t *ret_count)
{
	struct writer w = { .d = d, .locations = locations, .sink = sink };
	int err;

	buf_init(&w.block, NO_BOUND);
	buf_init(&w.message, NO_BOUND);
	buf_init(&w.part, NO_BOUND);
	put_tables(&w);
	err = w.err;
	if (!err && (buf_error(&w.block) || buf_error(&w.message) || buf_error(&w.part)))
		err = -ENOMEM;
	*ret_count = w.count;
	buf_fini(&w.block);
	buf_fini(&w.message);
	buf_fini(&w.part);
	return err;
}

static int by_address(const void *a, const void *b, void *rows)
{
	const struct otlp_location *x = (const struct otlp_location *)rows + *(const uint32_t *)a;
	const struct otlp_location *y = (const struct otlp_location *)rows + *(const uint32_t *)b;

	if (x->mapping != y->mapping)
		return x->mapping < y->mapping ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

static void order_fini(struct order *o)
{
	free(o->at);
	free(o->number);
}

static int order_init(struct order *o, const struct otlp_table *locations)
{
	size_t count = locations->rows.len / sizeof(struct otlp_location);

	o->at = calloc(count + 1, sizeof(*o->at));
	o->number = calloc(count + 1, sizeof(*o->number));
	if (!o->at || !o->number)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		o->at[i] = i;
	qsort_r(o->at, count, sizeof(*o->at), by_address, locations->rows.data);
	for (uint32_t i = 0; i < count; i++)
		o->number[o->at[i]] = i + 1;
	return 0;
}

/* The length of a message stands before it. */
static int write_head(struct byte_sink sink, uint64_t count)
{
	struct buf head;
	int err;

	buf_init(&head, BLOCK_SIZE);
	wire_put_head(&head, OTLP_DATA_DICTIONARY, count);
	err = buf_error(&head);
	if (!err)
		err = sink.write(sink.context, head.data, head.len);
	buf_fini(&head);
	return err;
}

int otlp_request_write(const struct otlp_request *r, struct byte_sink sink)
{
	struct order order = { 0 };
	uint64_t count;
	int err = order_init(&order, &r->dictionary.locations);

	if (!err)
		err = write_dictionary(&r->dictionary, &order, (struct byte_sink){ 0 }, &count);
	if (!err && r->body.len)
		err = sink.write(sink.context, r->body.data, r->body.len);
	if (!err)
		err = write_head(sink, count);
	if (!err)
		err = write_dictionary(&r->dictionary, &order, sink, &count);
	order_fini(&order);
	return err;
}
