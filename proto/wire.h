/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protobuf's wire format, the part that profiles need: varints, lengths and fixed words.
 * Encoding appends to a buf (whose error is sticky); decoding walks foreign bytes and never
 * reads past their end. Groups (wire types 3 and 4) are refused, as pprof does.
 */
#ifndef PROTO_WIRE_H
#define PROTO_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

void wire_put_varint(struct buf *out, uint64_t value);
size_t wire_varint_size(uint64_t value);

/* A varint field; 0 is left out, as proto3 does. */
void wire_put_uint(struct buf *out, uint32_t field, uint64_t value);

/* Text, bytes, packed words or a message; written even when empty. */
void wire_put_bytes(struct buf *out, uint32_t field, const void *bytes, size_t len);

/* The tag and the length of a WIRE_BYTES field whose content the caller appends. */
void wire_put_head(struct buf *out, uint32_t field, size_t len);

/* Bytes being decoded. */
struct wire_reader {
	const uint8_t *pos;
	const uint8_t *end;
};

struct wire_field {
	uint32_t number;
	enum wire_type type;
	uint64_t value;           /* of a varint or fixed field */
	struct wire_reader bytes; /* of a WIRE_BYTES field */
};

/* The next field: 1, 0 at the end, -EBADMSG for damaged bytes. */
int wire_next(struct wire_reader *r, struct wire_field *ret_field);

/* One bare varint: 1, 0 at the end, -EBADMSG. */
int wire_next_varint(struct wire_reader *r, uint64_t *ret_value);

/*
 * The next element of a repeated integer field, which may be packed or not: 1, 0 when the
 * field is used up, -EBADMSG. Consumes the field. An element that is not an integer: -EBADMSG.
 */
int wire_next_element(struct wire_field *field, uint64_t *ret_value);

#endif
