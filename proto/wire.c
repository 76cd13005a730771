/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf wire format; see wire.h. */
#include "proto/wire.h"

#include <errno.h>

enum { VARINT_MAX_BYTES = 10, FIELD_MAX = (1 << 29) - 1 };

void wire_put_varint(struct buf *out, uint64_t value)
{
	uint8_t bytes[VARINT_MAX_BYTES];
	size_t len = 0;

	for (; value >= 0x80; value >>= 7)
		bytes[len++] = (uint8_t)(value | 0x80);
	bytes[len++] = (uint8_t)value;
	buf_put(out, bytes, len);
}

size_t wire_varint_size(uint64_t value)
{
	size_t len = 1;

	while (value >>= 7)
		len++;
	return len;
}

void wire_put_uint(struct buf *out, uint32_t field, uint64_t value)
{
	if (!value)
		return;
	wire_put_varint(out, (uint64_t)field << 3 | WIRE_VARINT);
	wire_put_varint(out, value);
}

void wire_put_head(struct buf *out, uint32_t field, size_t len)
{
	wire_put_varint(out, (uint64_t)field << 3 | WIRE_BYTES);
	wire_put_varint(out, len);
}

void wire_put_bytes(struct buf *out, uint32_t field, const void *bytes, size_t len)
{
	wire_put_head(out, field, len);
	buf_put(out, bytes, len);
}

int wire_next_varint(struct wire_reader *r, uint64_t *ret_value)
{
	const uint8_t *p = r->pos;
	uint64_t value = 0;

	if (p == r->end)
		return 0;
	for (unsigned shift = 0; p < r->end; shift += 7) {
		uint8_t byte = *p++;

		/* The tenth byte has room for one bit. */
		if (shift == 63 && byte > 1)
			return -EBADMSG;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		r->pos = p;
		*ret_value = value;
		return 1;
	}
	return -EBADMSG;
}

/* Takes `len` bytes off the reader: a reader of just them. */
static int take(struct wire_reader *r, uint64_t len, struct wire_reader *ret_part)
{
	if (len > (uint64_t)(r->end - r->pos))
		return -EBADMSG;
	*ret_part = (struct wire_reader){ .pos = r->pos, .end = r->pos + len };
	r->pos += len;
	return 0;
}

static int read_fixed(struct wire_reader *r, unsigned size, uint64_t *ret_value)
{
	struct wire_reader part;
	uint64_t value = 0;

	if (take(r, size, &part))
		return -EBADMSG;
	for (unsigned i = 0; i < size; i++)
		value |= (uint64_t)part.pos[i] << (8 * i);
	*ret_value = value;
	return 0;
}

static int read_payload(struct wire_reader *r, struct wire_field *field)
{
	uint64_t len;

	switch (field->type) {
	case WIRE_VARINT:
		return wire_next_varint(r, &field->value) == 1 ? 0 : -EBADMSG;
	case WIRE_FIXED64:
		return read_fixed(r, 8, &field->value);
	case WIRE_FIXED32:
		return read_fixed(r, 4, &field->value);
	case WIRE_BYTES:
		if (wire_next_varint(r, &len) != 1)
			return -EBADMSG;
		return take(r, len, &field->bytes);
	}
	return -EBADMSG;
}

int wire_next(struct wire_reader *r, struct wire_field *ret_field)
{
	struct wire_reader at = *r;
	struct wire_field field = { 0 };
	uint64_t tag;
	int got = wire_next_varint(&at, &tag);

	if (got <= 0)
		return got;
	if (tag >> 3 == 0 || tag >> 3 > FIELD_MAX)
		return -EBADMSG;
	field.number = (uint32_t)(tag >> 3);
	field.type = (enum wire_type)(tag & 7);
	if (read_payload(&at, &field))
		return -EBADMSG;
	*r = at;
	*ret_field = field;
	return 1;
}

int wire_next_element(struct wire_field *field, uint64_t *ret_value)
{
	if (field->type == WIRE_BYTES)
		return wire_next_varint(&field->bytes, ret_value);
	if (field->type != WIRE_VARINT)
		return -EBADMSG;
	/* A lone element: hand it out once, then look like a packed field at its end. */
	*ret_value = field->value;
	field->type = WIRE_BYTES;
	field->bytes = (struct wire_reader){ 0 };
	return 1;
}
