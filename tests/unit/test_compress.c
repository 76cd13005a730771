/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "proto/compress.h"

static const enum compress_kind KINDS[] = { COMPRESS_NONE, COMPRESS_GZIP, COMPRESS_ZSTD };

static int to_buf(void *context, const void *bytes, size_t len)
{
	buf_put(context, bytes, len);
	return buf_error(context);
}

static int refuse(void *context, const void *bytes, size_t len)
{
	return -EPIPE;
}

/* Compresses in pieces of `step` bytes. */
static void pack(enum compress_kind kind, const void *bytes, size_t len, size_t step,
		 struct buf *out)
{
	struct compressor *c;
	struct byte_sink sink;

	assert_int_equal(compressor_open(kind, 0, (struct byte_sink){ to_buf, out }, &c), 0);
	sink = compressor_sink(c);
	for (size_t at = 0; at < len; at += step) {
		size_t part = len - at < step ? len - at : step;

		assert_int_equal(sink.write(sink.context, (const uint8_t *)bytes + at, part), 0);
	}
	assert_int_equal(compressor_finish(c), 0);
	compressor_close(c);
}

static uint8_t *noise(size_t len)
{
	uint8_t *bytes = malloc(len);
	uint32_t x = 1;

	assert_non_null(bytes);
	for (size_t i = 0; i < len; i++) {
		x = x * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(x >> (i % 7 ? 24 : 29));
	}
	return bytes;
}

static void what_goes_in_comes_out(void **state)
{
	static const size_t lens[] = { 0, 1, 1000, 65536, 300000 };
	uint8_t *bytes = noise(300000);

	for (size_t k = 0; k < 3; k++) {
		for (size_t i = 0; i < 5; i++) {
			struct buf packed, plain;

			buf_init(&packed, 1 << 20);
			buf_init(&plain, lens[i]); /* exactly enough */
			pack(KINDS[k], bytes, lens[i], 777, &packed);
			if (packed.len)
				assert_int_equal(compress_detect(packed.data, packed.len), KINDS[k]);
			assert_int_equal(decompress(KINDS[k], packed.data, packed.len, &plain), 0);
			assert_int_equal(plain.len, lens[i]);
			if (plain.len)
				assert_memory_equal(plain.data, bytes, plain.len);
			buf_fini(&packed);
			buf_fini(&plain);
		}
	}
	free(bytes);
}

static void equal_input_gives_equal_output(void **state)
{
	uint8_t *bytes = noise(5000);

	for (size_t k = 0; k < 3; k++) {
		struct buf one, two;

		buf_init(&one, 1 << 20);
		buf_init(&two, 1 << 20);
		pack(KINDS[k], bytes, 5000, 5000, &one);
		pack(KINDS[k], bytes, 5000, 5000, &two);
		assert_int_equal(one.len, two.len);
		assert_memory_equal(one.data, two.data, one.len);
		buf_fini(&one);
		buf_fini(&two);
	}
	free(bytes);
}

static void bombs_stop_at_the_bound(void **state)
{
	enum { BIG = 64 << 20, BOUND = 1 << 20 };
	uint8_t *zeros = calloc(1, BIG);

	assert_non_null(zeros);
	for (size_t k = 0; k < 3; k++) {
		struct buf packed, plain;

		buf_init(&packed, BIG);
		buf_init(&plain, BOUND);
		pack(KINDS[k], zeros, BIG, BIG, &packed);
		assert_int_equal(decompress(KINDS[k], packed.data, packed.len, &plain), -ENOSPC);
		assert_int_equal(plain.len, 0);
		assert_true(plain.cap <= BOUND);
		buf_fini(&packed);
		buf_fini(&plain);
	}
	free(zeros);
}

static void cut_input_is_refused_at_every_length(void **state)
{
	uint8_t *bytes = noise(2000);

	for (size_t k = 1; k < 3; k++) {
		struct buf packed;

		buf_init(&packed, 1 << 20);
		pack(KINDS[k], bytes, 2000, 2000, &packed);
		for (size_t cut = 0; cut < packed.len; cut++) {
			struct buf plain;

			buf_init(&plain, 1 << 20);
			assert_int_equal(decompress(KINDS[k], packed.data, cut, &plain), -EBADMSG);
			assert_int_equal(plain.len, 0);
			buf_fini(&plain);
		}
		buf_fini(&packed);
	}
	free(bytes);
}

static void flipped_bytes_are_refused(void **state)
{
	uint8_t *bytes = noise(2000);

	for (size_t k = 1; k < 3; k++) {
		struct buf packed, plain;

		buf_init(&packed, 1 << 20);
		buf_init(&plain, 1 << 20);
		pack(KINDS[k], bytes, 2000, 2000, &packed);
		packed.data[packed.len / 2] ^= 0x55;
		assert_int_equal(decompress(KINDS[k], packed.data, packed.len, &plain), -EBADMSG);
		buf_fini(&packed);
		buf_fini(&plain);
	}
	free(bytes);
}

static void members_join_and_garbage_is_refused(void **state)
{
	for (size_t k = 1; k < 3; k++) {
		struct buf packed, plain;

		buf_init(&packed, 1 << 20);
		buf_init(&plain, 1 << 20);
		buf_put_str(&plain, "kept ");
		pack(KINDS[k], "one ", 4, 4, &packed);
		pack(KINDS[k], "two", 3, 3, &packed);
		assert_int_equal(decompress(KINDS[k], packed.data, packed.len, &plain), 0);
		assert_string_equal(buf_cstr(&plain), "kept one two");
		buf_put_str(&packed, "garbage");
		assert_int_equal(decompress(KINDS[k], packed.data, packed.len, &plain), -EBADMSG);
		assert_string_equal(buf_cstr(&plain), "kept one two");
		buf_fini(&packed);
		buf_fini(&plain);
	}
}

static void sink_errors_come_back(void **state)
{
	uint8_t *bytes = noise(300000);

	for (size_t k = 0; k < 3; k++) {
		struct compressor *c;
		struct byte_sink sink;
		int err;

		assert_int_equal(compressor_open(KINDS[k], 0, (struct byte_sink){ refuse, NULL }, &c),
				 0);
		sink = compressor_sink(c);
		err = sink.write(sink.context, bytes, 300000);
		if (!err)
			err = compressor_finish(c);
		assert_int_equal(err, -EPIPE);
		compressor_close(c);
	}
	compressor_close(NULL);
	free(bytes);
}

static void a_level_out_of_range_is_refused(void **state)
{
	struct compressor *c = NULL;

	assert_int_equal(compressor_open(COMPRESS_GZIP, 99, (struct byte_sink){ refuse, NULL }, &c),
			 -EINVAL);
	assert_null(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_goes_in_comes_out),
		cmocka_unit_test(equal_input_gives_equal_output),
		cmocka_unit_test(bombs_stop_at_the_bound),
		cmocka_unit_test(cut_input_is_refused_at_every_length),
		cmocka_unit_test(flipped_bytes_are_refused),
		cmocka_unit_test(members_join_and_garbage_is_refused),
		cmocka_unit_test(sink_errors_come_back),
		cmocka_unit_test(a_level_out_of_range_is_refused),
	};

	return cmocka_run_group_tests_name("compress", tests, NULL, NULL);
}
