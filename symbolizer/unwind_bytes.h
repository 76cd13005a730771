/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cursor over foreign bytes with a sticky error: past the end every read gives 0 and sets
 * `bad`, which the caller looks at once for a group of fields.
 */
#ifndef SYMBOLIZER_UNWIND_BYTES_H
#define SYMBOLIZER_UNWIND_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "fields are read as they lie");

struct bytes {
	const uint8_t *p;
	const uint8_t *end;
	bool bad;
};

static inline struct bytes bytes_of(const uint8_t *p, size_t len)
{
	return (struct bytes){ .p = p, .end = p + len };
}

static inline size_t bytes_left(const struct bytes *b)
{
	return (size_t)(b->end - b->p);
}

static inline void bytes_fail(struct bytes *b)
{
	b->p = b->end;
	b->bad = true;
}

/* An unsigned number of `size` bytes, at most 8. */
static inline uint64_t bytes_number(struct bytes *b, size_t size)
{
	uint64_t value = 0;

	if (bytes_left(b) < size) {
		bytes_fail(b);
		return 0;
	}
	memcpy(&value, b->p, size);
	b->p += size;
	return value;
}

/* The same with its sign extended. */
static inline int64_t bytes_signed(struct bytes *b, size_t size)
{
	unsigned int spare = 64 - 8 * (unsigned int)size;

	return (int64_t)(bytes_number(b, size) << spare) >> spare;
}

/* LEB128 of at most 64 bits; *ret_shift is how many bits were given. */
static inline uint64_t bytes_leb(struct bytes *b, unsigned int *ret_shift)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		if (b->p == b->end || shift >= 70) {
			bytes_fail(b);
			value = 0;
			break;
		}
		byte = *b->p++;
		/* From bit 63 on there is room for one bit; more is padding of either sign. */
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	*ret_shift = shift;
	return value;
}

static inline uint64_t bytes_uleb(struct bytes *b)
{
	unsigned int shift;

	/* Nearly all are one byte. */
	if (b->p < b->end && *b->p < 0x80)
		return *b->p++;
	return bytes_leb(b, &shift);
}

static inline int64_t bytes_sleb(struct bytes *b)
{
	unsigned int shift;
	uint64_t value = bytes_leb(b, &shift);

	if (b->bad || shift >= 64)
		return (int64_t)value;
	return (int64_t)(value << (64 - shift)) >> (64 - shift);
}

/* The next `len` bytes as a cursor of their own; empty and bad if they are not there. */
static inline struct bytes bytes_take(struct bytes *b, uint64_t len)
{
	struct bytes part = { .p = b->p, .end = b->p };

	if (len > bytes_left(b)) {
		bytes_fail(b);
		part.bad = true;
		return part;
	}
	b->p += len;
	part.end = b->p;
	return part;
}

#endif
