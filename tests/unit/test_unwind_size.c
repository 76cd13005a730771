/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind data that is very large, or made to cost much: bounds on rows, rules and work. */
#include "base/clock.h"
#include "symbolizer/unwind.h"
#include "unwind_lab.h"

static void test_many_functions(void **state)
{
	enum { COUNT = 200 * 1000, STRIDE = 77777 }; /* the stride is prime to the count */
	struct unwind_options few_rows = { .max_rows = 1000 }, few_rules = { .max_rules = 20 };
	struct unwind_table *t = NULL;
	nsec_t begin;
	struct image im;
	size_t cie;

	image_init(&im);
	im.code_size = COUNT * 32;
	cie = put_cie(&im.frames, "", 0);
	for (uint64_t i = 0; i < COUNT; i++) {
		uint64_t at = i * STRIDE % COUNT;
		uint8_t program[] = { 0x41, 0x0e, (uint8_t)(16 + 8 * (at % 14)) };

		put_fde(&im.frames, cie, CODE + at * 32, 32, program, sizeof(program));
	}
	begin = clock_read(CLOCK_PROCESS_CPUTIME_ID);
	t = image_table(&im);
	assert_true(clock_read(CLOCK_PROCESS_CPUTIME_ID) - begin < 5 * NSEC_PER_SEC);
	assert_int_equal(t->fdes, COUNT);
	assert_int_equal(t->row_count, 2 * COUNT + 1);
	assert_int_equal(t->rule_count, 16);
	assert_true(t->bytes < t->row_count * sizeof(struct unwind_row) + 4096);
	assert_string_equal(rule_at(t, CODE + 32 * 13 + 1), "sp+120 same");
	unwind_table_free(t);
	assert_int_equal(image_build(&im, &few_rows, &t), -EFBIG);
	assert_int_equal(image_build(&im, &few_rules, &t), 0);
	unwind_table_free(t);
	few_rules.max_rules = 15;
	assert_int_equal(image_build(&im, &few_rules, &t), -EFBIG);
	few_rows.max_rows = 2 * COUNT + 1;
	assert_int_equal(image_build(&im, &few_rows, &t), 0);
	unwind_table_free(t);
	buf_fini(&im.frames);
}

/* Long CIEs, used in turn so that no cache helps: refused after bounded work. */
static void test_work_is_bounded(void **state)
{
	enum { CIES = 500, FDES = 100 * 1000 };
	struct unwind_table *t = NULL;
	struct image im;
	size_t cies[CIES];
	char *nops = calloc(1, 60000);

	image_init(&im);
	im.code_size = FDES * 16;
	for (int i = 0; i < CIES; i++)
		cies[i] = put_cie(&im.frames, nops, 60000);
	for (uint64_t i = 0; i < FDES; i++)
		put_fde(&im.frames, cies[i % CIES], CODE + i * 16, 16, "", 0);
	assert_int_equal(image_build(&im, NULL, &t), -EFBIG);
	free(nops);
	buf_fini(&im.frames);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_functions),
		cmocka_unit_test(test_work_is_bounded),
	};

	return cmocka_run_group_tests(tests, lab_open, lab_close);
}
