/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of base/map: single calls, and random operations against a plain array. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/map.h"

enum { KEYS = 300, STEPS = 200000 };

/* The model: keys are small numbers spread over a struct, `value` 0 means absent. */
struct key {
	uint32_t number;
	uint8_t filler[7];
};

static struct key key_of(uint32_t number)
{
	struct key key;

	memset(&key, 0, sizeof(key));
	key.number = number * 2654435761u;
	key.filler[6] = (uint8_t)number;
	return key;
}

static void check_against(const struct map *m, const uint64_t *model)
{
	size_t cursor = 0, count = 0, seen = 0;
	struct key *key;
	uint64_t *value;

	for (uint32_t n = 0; n < KEYS; n++) {
		struct key wanted = key_of(n);

		value = map_find(m, &wanted);
		assert_int_equal(value ? *value : 0, model[n]);
		count += model[n] != 0;
	}
	while (map_next(m, &cursor, &key, &value)) {
		assert_int_equal(*value, model[key->number * 244002641u]); /* the inverse factor */
		seen++;
	}
	assert_int_equal(seen, count);
	assert_int_equal(m->count, count);
}

static void step(struct map *m, uint64_t *model, uint32_t n, long r)
{
	struct key key = key_of(n);
	uint64_t *value = NULL;

	if (r % 16 < 7) {
		assert_int_equal(map_add(m, &key, &value), model[n] == 0);
		assert_int_equal(*value, model[n]);
		*value = model[n] = (uint64_t)r + 1;
	} else if (r % 16 < 15) {
		assert_int_equal(map_del(m, &key), model[n] != 0);
		model[n] = 0;
	} else if (r % 4096 == 15) {
		map_clear(m);
		memset(model, 0, KEYS * sizeof(*model));
	}
}

static void test_random_operations_match_model(void **state)
{
	uint64_t model[KEYS] = { 0 };
	struct map m;

	srandom(12345);
	map_init(&m, sizeof(struct key), sizeof(uint64_t), KEYS);
	for (int i = 0; i < STEPS; i++) {
		/* Phases of many and of few keys: long probe runs, and an almost empty map. */
		uint32_t range = i / 5000 % 2 ? KEYS : 12;

		step(&m, model, (uint32_t)random() % range, random());
		if (i % 500 == 0)
			check_against(&m, model);
	}
	check_against(&m, model);
	map_fini(&m);
}

static void test_bound(void **state)
{
	struct map m;
	uint32_t key;

	map_init(&m, sizeof(key), 0, 3);
	for (key = 0; key < 3; key++)
		assert_int_equal(map_add(&m, &key, NULL), 1);
	assert_int_equal(map_add(&m, &key, NULL), -ENOSPC);
	key = 1;
	assert_int_equal(map_add(&m, &key, NULL), 0);
	assert_true(map_del(&m, &key));
	key = 9;
	assert_int_equal(map_add(&m, &key, NULL), 1);
	map_fini(&m);
}

static void test_new_values_are_zero(void **state)
{
	uint32_t key = 5;
	uint64_t *value;
	struct map m;

	map_init(&m, sizeof(key), sizeof(*value), 10);
	assert_int_equal(map_add(&m, &key, &value), 1);
	*value = 77;
	assert_true(map_del(&m, &key));
	assert_int_equal(map_add(&m, &key, &value), 1);
	assert_int_equal(*value, 0);
	map_fini(&m);
}

static void test_empty_map(void **state)
{
	uint32_t key = 0;
	size_t cursor = 0;
	struct map m;

	map_init(&m, sizeof(key), 8, 10);
	assert_null(map_find(&m, &key));
	assert_false(map_del(&m, &key));
	assert_false(map_next(&m, &cursor, NULL, NULL));
	map_clear(&m);
	map_fini(&m);
	assert_int_equal(map_add(&m, &key, NULL), 1); /* usable again after map_fini */
	map_fini(&m);
}

static void test_hash_sees_every_byte_and_the_length(void **state)
{
	uint8_t bytes[24] = { 0 };

	for (size_t len = 1; len < sizeof(bytes); len++) {
		uint64_t before = hash_bytes(bytes, len);

		assert_true(before != hash_bytes(bytes, len + 1));
		for (size_t i = 0; i < len; i++) {
			bytes[i] ^= 1;
			assert_true(before != hash_bytes(bytes, len));
			bytes[i] ^= 1;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_operations_match_model),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_new_values_are_zero),
		cmocka_unit_test(test_empty_map),
		cmocka_unit_test(test_hash_sees_every_byte_and_the_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
