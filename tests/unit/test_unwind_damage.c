/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .eh_frame written byte by byte: unusual but legal, malformed (case U-08), overlapping. The
 * tests run with sanitizers; CPU time is bounded generously.
 */
#include "base/clock.h"
#include "symbolizer/unwind.h"
#include "unwind_lab.h"

static const uint8_t push[] = { 0x41, 0x0e, 16 }; /* one byte on, CFA = sp + 16 */

/* A CIE of its own bytes from behind the identifier. */
static size_t raw_cie(struct buf *b, const void *bytes, size_t len)
{
	size_t at = b->len;

	put(b, 0, 8);
	buf_put(b, bytes, len);
	end_entry(b, at);
	return at;
}

#define RAW_CIE(b, text) raw_cie(b, text, sizeof(text) - 1)
#define INITIAL          "\x0c\7\x08\x90\1"

/* --- legal ----------------------------------------------------------------------------------- */

static void test_augmentations(void **state)
{
	static const struct {
		const char *cie;
		size_t len;
		bool sizes; /* FDEs have an augmentation size */
	} cases[] = {
#define CASE(text, sizes) { text, sizeof(text) - 1, sizes }
		CASE("\1\0\1\x78\x10" INITIAL, false),
		CASE("\3\0\1\x78\x10" INITIAL, false),
		CASE("\4\0\x08\0\1\x78\x10" INITIAL, false),
		CASE("\1eh\0\1\2\3\4\5\6\7\x08\1\x78\x10" INITIAL, false),
		CASE("\1z\0\1\x78\x10\0" INITIAL, true),
		CASE("\1zR\0\1\x78\x10\1\0" INITIAL, true),
		CASE("\1zRB\0\1\x78\x10\1\0" INITIAL, true),
		CASE("\1zPLR\0\1\x78\x10\7\3\1\2\3\4\x1b\0" INITIAL, true),
		CASE("\1zPR\0\1\x78\x10\2\xff\0" INITIAL, true),
		CASE("\1zRQ\0\1\x78\x10\5\0\1\2\3\4" INITIAL, true),
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct unwind_table *t;
		struct image im;
		size_t cie, fde;

		image_init(&im);
		cie = raw_cie(&im.frames, cases[i].cie, cases[i].len);
		fde = im.frames.len;
		put(&im.frames, 0, 4);
		put(&im.frames, fde + 4 - cie, 4);
		put(&im.frames, CODE, 8);
		put(&im.frames, 32, 8);
		if (cases[i].sizes)
			buf_put(&im.frames, "\3\x0e\x0e\x0e", 4);
		buf_put(&im.frames, push, sizeof(push));
		end_entry(&im.frames, fde);
		t = image_table(&im);
		assert_string_equal(image_rule(t, CODE), "sp+8 same");
		assert_string_equal(image_rule(t, CODE + 1), "sp+16 same");
		assert_string_equal(image_rule(t, CODE + 32), "none");
		assert_int_equal(t->bad_fdes, 0);
		unwind_table_free(t);
		buf_fini(&im.frames);
	}
}

static void test_encodings(void **state)
{
	static const struct {
		char encoding;
		size_t size; /* of a field; 0: LEB128 */
	} cases[] = { { 0x00, 8 }, { 0x02, 2 }, { 0x03, 4 }, { 0x04, 8 }, { 0x0a, 2 }, { 0x0b, 4 },
		      { 0x0c, 8 }, { 0x01, 0 }, { 0x1b, 4 }, { 0x1c, 8 }, { 0x10, 8 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char cie_text[] = "\1zR\0\1\x78\x10\1?" INITIAL;
		struct unwind_table *t;
		struct image im;
		uint64_t start = CODE + 0x100;
		size_t cie, fde;

		image_init(&im);
		cie_text[8] = cases[i].encoding;
		cie = raw_cie(&im.frames, cie_text, sizeof(cie_text) - 1);
		fde = im.frames.len;
		put(&im.frames, 0, 4);
		put(&im.frames, fde + 4 - cie, 4);
		if (cases[i].encoding & 0x10)
			start -= CODE + im.code_size + im.frames.len;
		if (cases[i].size) {
			put(&im.frames, start, cases[i].size);
			put(&im.frames, 32, cases[i].size);
		} else {
			buf_put(&im.frames, "\x80\x22\x20", 3);
		}
		buf_put_byte(&im.frames, 0);
		buf_put(&im.frames, push, sizeof(push));
		end_entry(&im.frames, fde);
		t = image_table(&im);
		assert_string_equal(image_rule(t, CODE + 0x100), "sp+8 same");
		assert_string_equal(image_rule(t, CODE + 0x101), "sp+16 same");
		assert_string_equal(image_rule(t, CODE + 0x120), "none");
		unwind_table_free(t);
		buf_fini(&im.frames);
	}
}

static void test_terminator_in_the_middle(void **state)
{
	struct unwind_table *t;
	struct image im;
	size_t cie;

	image_init(&im);
	cie = put_cie(&im.frames, "", 0);
	put_fde(&im.frames, cie, CODE, 16, push, sizeof(push));
	put(&im.frames, 0, 4);
	put(&im.frames, 0, 4);
	put_fde(&im.frames, cie, CODE + 64, 16, push, sizeof(push));
	im.type = 0x70000001; /* SHT_X86_64_UNWIND, as gold has it */
	t = image_table(&im);
	assert_int_equal(t->fdes, 2);
	assert_string_equal(image_rule(t, CODE + 65), "sp+16 same");
	unwind_table_free(t);
	buf_fini(&im.frames);
}

static void test_long_length(void **state)
{
	struct unwind_table *t;
	struct image im;
	size_t cie, at;

	image_init(&im);
	cie = put_cie(&im.frames, "", 0);
	at = im.frames.len;
	put(&im.frames, UINT32_MAX, 4);
	put(&im.frames, 4 + 17 + sizeof(push), 8);
	put(&im.frames, at + 12 - cie, 4);
	put(&im.frames, CODE, 8);
	put(&im.frames, 16, 8);
	buf_put_byte(&im.frames, 0);
	buf_put(&im.frames, push, sizeof(push));
	put_fde(&im.frames, cie, CODE + 64, 16, push, sizeof(push));
	t = image_table(&im);
	assert_int_equal(t->fdes, 2);
	assert_int_equal(t->bad_fdes, 0);
	assert_string_equal(image_rule(t, CODE + 1), "sp+16 same");
	assert_string_equal(image_rule(t, CODE + 65), "sp+16 same");
	unwind_table_free(t);
	buf_fini(&im.frames);
}

static void test_overlaps(void **state)
{
	static const uint8_t big[] = { 0x0e, 64 };
	struct unwind_table *t;
	struct image im;
	size_t cie;

	image_init(&im);
	cie = put_cie(&im.frames, "", 0);
	/* Not in order; the second lies in the first; the third begins with the second. */
	put_fde(&im.frames, cie, CODE + 100, 20, big, sizeof(big));
	put_fde(&im.frames, cie, CODE, 200, "", 0);
	put_fde(&im.frames, cie, CODE + 100, 50, push, sizeof(push));
	put_fde(&im.frames, cie, CODE + 200, 0, push, sizeof(push));
	t = image_table(&im);
	assert_string_equal(image_rule(t, CODE + 99), "sp+8 same");
	assert_string_equal(image_rule(t, CODE + 100), "sp+64 same");
	assert_string_equal(image_rule(t, CODE + 119), "sp+64 same");
	assert_string_equal(image_rule(t, CODE + 120), "none");
	assert_string_equal(image_rule(t, CODE + 200), "none");
	unwind_table_free(t);
	buf_fini(&im.frames);
}

/* A gap is filled only if it aligns the next function and both sides have one rule. */
static void test_gaps(void **state)
{
	static const struct {
		uint64_t end, next; /* of the first function, of the second */
		const char *rule;
	} cases[] = {
		{ 17, 32, "sp+8 same" },
		{ 16, 32, "none" },
		{ 30, 33, "none" },
		{ 1, 64, "none" },
	};
	struct unwind_table *t;
	struct image im;
	size_t cie;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		image_init(&im);
		cie = put_cie(&im.frames, "", 0);
		put_fde(&im.frames, cie, CODE, cases[i].end, "", 0);
		put_fde(&im.frames, cie, CODE + cases[i].next, 16, "", 0);
		t = image_table(&im);
		assert_string_equal(image_rule(t, CODE + cases[i].end), cases[i].rule);
		unwind_table_free(t);
		buf_fini(&im.frames);
	}
	image_init(&im);
	cie = put_cie(&im.frames, "", 0);
	put_fde(&im.frames, cie, CODE, 17, push, sizeof(push));
	put_fde(&im.frames, cie, CODE + 32, 16, "", 0);
	t = image_table(&im);
	assert_string_equal(image_rule(t, CODE + 17), "none");
	unwind_table_free(t);
	buf_fini(&im.frames);
}

/* --- malformed ------------------------------------------------------------------------------- */

/* Builds within 100 ms, whatever comes of it. */
static int build_quickly(const struct image *im, struct unwind_table **ret_table)
{
	nsec_t begin = clock_read(CLOCK_THREAD_CPUTIME_ID);
	int err = image_build(im, NULL, ret_table);

	assert_true(clock_read(CLOCK_THREAD_CPUTIME_ID) - begin < NSEC_PER_SEC / 2);
	return err;
}

/* Only damaged entries: unusable, and said so. */
static void check_unusable(struct image *im)
{
	struct unwind_table *t = NULL;

	assert_int_equal(build_quickly(im, &t), -EBADMSG);
	buf_fini(&im->frames);
}

static void test_bad_cies(void **state)
{
	static const struct {
		const char *cie;
		size_t len;
	} cases[] = {
#define BAD(text) { text, sizeof(text) - 1 }
		BAD("\1zRRRRRRRRRRRRRRRRRRRR"),          /* no NUL */
		BAD("\2zR\0\1\x78\x10\1\0" INITIAL),     /* version */
		BAD("\4zR\0\4\0\1\x78\x10\1\0" INITIAL), /* 32-bit addresses */
		BAD("\1R\0\1\x78\x10\1\0" INITIAL),      /* no 'z' */
		BAD("\1zR\0\1\x78\7\1\0" INITIAL),       /* return address in rsp */
		BAD("\1zR\0\1\x78\x10\x7f\0" INITIAL),   /* size */
		BAD("\1zR\0\1\x78\x10\1\0\x41" INITIAL), /* advances */
		BAD("\1zR\0\1\x78\x10\1\0\x0b"),         /* restores nothing */
		BAD("\1zR\0\1\x78\x10\1\x30" INITIAL),   /* relative to data */
		BAD("\1zR\0\1\x78\x10\1\xff" INITIAL),   /* omitted */
		BAD("\1zR\0\1\x78\x10\1\x9b" INITIAL),   /* indirect */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct image im;
		size_t cie;

		image_init(&im);
		cie = raw_cie(&im.frames, cases[i].cie, cases[i].len);
		if (i == 0) /* nothing behind it that ends the text */
			memset(im.frames.data + cie + 9, 'R', im.frames.len - cie - 9);
		put_fde(&im.frames, cie, CODE, 16, push, sizeof(push));
		check_unusable(&im);
	}
}

static void test_bad_entries(void **state)
{
	struct unwind_table *t = NULL;
	struct image im;
	size_t cie, fde;

	/* The CIE lies before the section, in an FDE, behind the end. */
	for (uint64_t distance = 1; distance < 4; distance++) {
		image_init(&im);
		cie = put_cie(&im.frames, "", 0);
		fde = put_fde(&im.frames, cie, CODE, 16, "", 0);
		put(&im.frames, 0, 0);
		memcpy(im.frames.data + fde + 4,
		       (uint32_t[]){ distance == 1   ? (uint32_t)fde + 5
				     : distance == 2 ? 4
						     : 0x7fffffff },
		       4);
		check_unusable(&im);
	}
	/* A length past the end: what comes before it counts. */
	image_init(&im);
	cie = put_cie(&im.frames, "", 0);
	put_fde(&im.frames, cie, CODE, 16, push, sizeof(push));
	fde = put_fde(&im.frames, cie, CODE + 64, 16, push, sizeof(push));
	memcpy(im.frames.data + fde, "\0\0\0\x10", 4);
	assert_int_equal(build_quickly(&im, &t), 0);
	assert_int_equal(t->bad_fdes, 1);
	assert_string_equal(image_rule(t, CODE + 1), "sp+16 same");
	assert_string_equal(image_rule(t, CODE + 65), "none");
	unwind_table_free(t);
	buf_fini(&im.frames);
	/* Code outside every executable segment. */
	image_init(&im);
	cie = put_cie(&im.frames, "", 0);
	put_fde(&im.frames, cie, CODE + CODE_SIZE, 16, push, sizeof(push));
	put_fde(&im.frames, cie, UINT64_MAX - 8, 16, push, sizeof(push));
	put_fde(&im.frames, cie, 0, UINT64_MAX, push, sizeof(push));
	check_unusable(&im);
	/* Code that only begins inside is cut at the end. */
	image_init(&im);
	cie = put_cie(&im.frames, "", 0);
	put_fde(&im.frames, cie, CODE + CODE_SIZE - 2, UINT64_MAX, push, sizeof(push));
	t = image_table(&im);
	assert_string_equal(image_rule(t, CODE + CODE_SIZE - 1), "sp+16 same");
	assert_string_equal(image_rule(t, CODE + CODE_SIZE), "none");
	unwind_table_free(t);
	buf_fini(&im.frames);
}

/* .eh_frame_hdr: its table is never used, so that neither "omit" nor a huge count matters. */
static void test_headers(void **state)
{
	struct unwind_table *t = NULL;
	struct image im;
	size_t cie;

	for (int i = 0; i < 4; i++) {
		uint64_t frames = CODE + CODE_SIZE;

		image_init(&im);
		cie = put_cie(&im.frames, "", 0);
		put_fde(&im.frames, cie, CODE, 16, push, sizeof(push));
		put(&im.frames, 0, 8);
		put_fde(&im.frames, cie, CODE + 64, 16, push, sizeof(push));
		im.no_sections = true;
		im.header_size = 24;
		/* Address of 8 bytes, count of 4, table omitted; the count is huge. */
		memcpy(im.header, (uint8_t[]){ i == 1 ? 2 : 1, i == 2 ? 0xff : 4, 3, 0xff }, 4);
		frames = i == 3 ? UINT64_MAX - 4 : frames;
		memcpy(im.header + 4, &frames, 8);
		memset(im.header + 12, 0xff, 4);
		if (i == 0) {
			assert_int_equal(build_quickly(&im, &t), 0);
			assert_string_equal(image_rule(t, CODE + 1), "sp+16 same");
			/* Without a section its size is not known: the terminator counts. */
			assert_string_equal(image_rule(t, CODE + 65), "none");
			unwind_table_free(t);
			buf_fini(&im.frames);
		} else {
			check_unusable(&im);
		}
	}
}

/* Each byte of a good section changed in some ways. */
static void test_each_byte(void **state)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };
	struct image im;
	size_t cie;

	image_init(&im);
	im.code_size = 0x1000;
	cie = put_cie(&im.frames, "", 0);
	put_fde(&im.frames, cie, CODE, 64, "\x41\x0e\x10\x86\2\x43\x0d\6\x0a\x45\x0c\7\x08\x0b",
		14);
	put_fde(&im.frames, cie, CODE + 64, 64, "\x0f\3\x77\x08\6\x10\6\2\x76\0", 10);
	for (size_t i = 0; i < im.frames.len; i++) {
		uint8_t good = im.frames.data[i];

		for (size_t v = 0; v < sizeof(values); v++) {
			struct unwind_table *t = NULL;
			int err;

			im.frames.data[i] = values[v];
			err = image_build(&im, NULL, &t);
			assert_true(err == 0 || err == -EBADMSG);
			unwind_table_free(t);
		}
		im.frames.data[i] = good;
	}
	buf_fini(&im.frames);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_augmentations), cmocka_unit_test(test_encodings),
		cmocka_unit_test(test_long_length),   cmocka_unit_test(test_terminator_in_the_middle),
		cmocka_unit_test(test_overlaps),      cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_bad_cies),      cmocka_unit_test(test_bad_entries),
		cmocka_unit_test(test_headers),       cmocka_unit_test(test_each_byte),
	};

	return cmocka_run_group_tests(tests, lab_open, lab_close);
}
