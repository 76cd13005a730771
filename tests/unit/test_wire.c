/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "proto/wire.h"

static struct wire_reader reader_of(const struct buf *b)
{
	return (struct wire_reader){ .pos = b->data, .end = b->data + b->len };
}

static void varints_survive(void **state)
{
	static const uint64_t values[] = { 0, 1, 127, 128, 300, 16383, 16384, 1ULL << 32,
					   INT64_MAX, 1ULL << 63, UINT64_MAX };

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct wire_reader r;
		uint64_t got = 42;
		struct buf b;

		buf_init(&b, 64);
		wire_put_varint(&b, values[i]);
		assert_int_equal(b.len, wire_varint_size(values[i]));
		r = reader_of(&b);
		assert_int_equal(wire_next_varint(&r, &got), 1);
		assert_true(got == values[i]);
		assert_int_equal(wire_next_varint(&r, &got), 0);
		for (size_t cut = 1; cut < b.len; cut++) {
			r = (struct wire_reader){ b.data, b.data + cut };
			assert_int_equal(wire_next_varint(&r, &got), -EBADMSG);
			assert_ptr_equal(r.pos, b.data);
		}
		buf_fini(&b);
	}
}

static void overlong_varints_are_refused(void **state)
{
	static const uint8_t too_big[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2 };
	static const uint8_t endless[] = { 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
					   0x80, 0x80, 0x80, 0x80, 0x80, 0x00 };
	struct wire_reader r = { too_big, too_big + sizeof(too_big) };
	uint64_t got;

	assert_int_equal(wire_next_varint(&r, &got), -EBADMSG);
	r = (struct wire_reader){ endless, endless + sizeof(endless) };
	assert_int_equal(wire_next_varint(&r, &got), -EBADMSG);
}

static void fields_come_in_order(void **state)
{
	struct wire_field field;
	struct wire_reader r;
	struct buf b;

	buf_init(&b, 256);
	wire_put_uint(&b, 1, 0); /* left out */
	wire_put_uint(&b, 2, 150);
	wire_put_bytes(&b, 3, "abc", 3);
	wire_put_bytes(&b, 4, NULL, 0); /* kept */
	buf_put(&b, "\x29\x01\x02\x03\x04\x05\x06\x07\x08", 9); /* 5, fixed64 */
	buf_put(&b, "\x35\x01\x00\x00\x80", 5);                 /* 6, fixed32 */
	assert_int_equal(buf_error(&b), 0);

	r = reader_of(&b);
	assert_int_equal(wire_next(&r, &field), 1);
	assert_int_equal(field.number, 2);
	assert_int_equal(field.value, 150);
	assert_int_equal(wire_next(&r, &field), 1);
	assert_int_equal(field.number, 3);
	assert_memory_equal(field.bytes.pos, "abc", 3);
	assert_int_equal(field.bytes.end - field.bytes.pos, 3);
	assert_int_equal(wire_next(&r, &field), 1);
	assert_int_equal(field.number, 4);
	assert_ptr_equal(field.bytes.end, field.bytes.pos);
	assert_int_equal(wire_next(&r, &field), 1);
	assert_true(field.value == 0x0807060504030201ULL);
	assert_int_equal(wire_next(&r, &field), 1);
	assert_true(field.value == 0x80000001ULL);
	assert_int_equal(wire_next(&r, &field), 0);
	buf_fini(&b);
}

static void damaged_fields_are_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} bad[] = {
		{ "\x00\x01", 2 },                 /* field 0 */
		{ "\x0b\x01", 2 },                 /* a group */
		{ "\x0c", 1 },                     /* the end of a group */
		{ "\x0e\x01", 2 },                 /* wire type 6 */
		{ "\x0a\x02\x01", 3 },             /* length over the end */
		{ "\x0a", 1 },                     /* no length */
		{ "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11 }, /* length 2^64-1 */
		{ "\x08", 1 },                     /* no value */
		{ "\x09\x01\x02", 3 },             /* short fixed64 */
		{ "\x0d\x01\x02", 3 },             /* short fixed32 */
		{ "\x80\x80\x80\x80\x10\x01", 6 }, /* field 2^29 */
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const uint8_t *bytes = (const uint8_t *)bad[i].bytes;
		struct wire_reader r = { bytes, bytes + bad[i].len };
		struct wire_field field;

		assert_int_equal(wire_next(&r, &field), -EBADMSG);
		assert_ptr_equal(r.pos, bytes);
	}
}

static void elements_packed_or_not(void **state)
{
	struct wire_field packed = { .type = WIRE_BYTES }, alone = { .type = WIRE_VARINT, .value = 9 },
			  wrong = { .type = WIRE_FIXED64, .value = 9 };
	static const uint8_t bytes[] = { 1, 0x96, 1 };
	uint64_t got;

	packed.bytes = (struct wire_reader){ bytes, bytes + sizeof(bytes) };
	assert_int_equal(wire_next_element(&packed, &got), 1);
	assert_int_equal(got, 1);
	assert_int_equal(wire_next_element(&packed, &got), 1);
	assert_int_equal(got, 150);
	assert_int_equal(wire_next_element(&packed, &got), 0);

	assert_int_equal(wire_next_element(&alone, &got), 1);
	assert_int_equal(got, 9);
	assert_int_equal(wire_next_element(&alone, &got), 0);
	assert_int_equal(wire_next_element(&wrong, &got), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(varints_survive),
		cmocka_unit_test(overlong_varints_are_refused),
		cmocka_unit_test(fields_come_in_order),
		cmocka_unit_test(damaged_fields_are_refused),
		cmocka_unit_test(elements_packed_or_not),
	};

	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
