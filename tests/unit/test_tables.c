/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeding unwind tables with a budget: which table goes when room is needed, and that none is
 * lost or freed twice. Collecting and resolving are simulated here: room for a few rows.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/tables.h"
#include "symbolizer/unwind.h"

enum { FILES = 300, QUEUE = 300 };

/* Files are numbered from 1 on; this is one's id. */
#define ID(number) (SONDE_FILE_ID_BIT | (number))

static struct world {
	size_t room;              /* in rows */
	size_t dropped_rows;      /* free again at the next drain */
	size_t loaded[FILES];     /* rows, 0: not loaded */
	uint32_t age[FILES];      /* in drains */
	int forgotten[FILES], answered_none[FILES], drops[FILES];
	struct {
		uint64_t file;
		struct unwind_table *table;
	} queue[QUEUE];
	size_t queue_first, queue_end;
	int fail_with;
	uint64_t vdso_rows;
} w;

static struct table_feeder feeder;

static uint64_t number_of(uint64_t id)
{
	assert_true(id & SONDE_FILE_ID_BIT);
	assert_in_range(id & ~SONDE_FILE_ID_BIT, 1, FILES - 1);
	return id & ~SONDE_FILE_ID_BIT;
}

/* ---- collecting ---- */

int collect_add_table(struct collect *c, uint64_t id, const struct table_rows *rows)
{
	uint64_t file = number_of(id);

	if (!rows) {
		w.answered_none[file]++;
		return 0;
	}
	if (w.fail_with)
		return w.fail_with;
	if (w.loaded[file]) /* built twice */
		return 0;
	for (size_t i = 0; i < rows->row_count; i++) {
		assert_int_equal(rows->rows[i].off, i * 16);
		assert_int_equal(rows->rules[rows->rows[i].rule].cfa,
				 i + 1 < rows->row_count ? SONDE_CFA_SP : SONDE_CFA_NONE);
	}
	if (rows->row_count > w.room)
		return -ENOSPC;
	w.room -= rows->row_count;
	w.loaded[file] = rows->row_count;
	return 0;
}

int collect_add_vdso_table(struct collect *c, const struct table_rows *rows)
{
	w.vdso_rows = rows->row_count;
	return 0;
}

size_t collect_drop_table(struct collect *c, uint64_t id)
{
	uint64_t file = number_of(id);
	size_t rows = w.loaded[file];

	assert_int_not_equal(rows, 0);
	w.dropped_rows += rows;
	w.loaded[file] = 0;
	w.drops[file]++;
	return rows;
}

bool collect_next_table(const struct collect *c, size_t *cursor, uint64_t *ret_file)
{
	if (*cursor == 0) { /* the vDSO's is among them */
		*cursor = 1;
		*ret_file = SONDE_FRAME_VDSO;
		if (w.vdso_rows)
			return true;
	}
	for (; *cursor < FILES; ++*cursor) {
		if (w.loaded[*cursor]) {
			*ret_file = ID((*cursor)++);
			return true;
		}
	}
	return false;
}

void collect_forget(struct collect *c, enum collect_thing thing, uint64_t id)
{
	assert_int_equal(thing, COLLECT_FILE);
	w.forgotten[number_of(id)]++;
}

/* ---- resolving ---- */

bool resolver_next_table(struct resolver *r, uint64_t *ret_file, struct unwind_table **ret_table)
{
	if (w.queue_first == w.queue_end)
		return false;
	*ret_file = w.queue[w.queue_first].file;
	*ret_table = w.queue[w.queue_first++].table;
	return true;
}

uint32_t resolver_file_age(const struct resolver *r, uint64_t file)
{
	return file == SONDE_FRAME_VDSO ? UINT32_MAX : w.age[number_of(file)];
}

/* ---- the lab ---- */

static struct unwind_table *table_of(size_t rows)
{
	struct unwind_table *table = calloc(1, sizeof(*table));

	table->rows = calloc(rows ? rows : 1, sizeof(*table->rows));
	table->rules = calloc(2, sizeof(*table->rules));
	table->rule_count = 2;
	table->rules[1] = (struct unwind_rule){ .cfa = UNWIND_SP, .cfa_off = 8 };
	table->row_count = rows;
	for (size_t i = 0; i < rows; i++)
		table->rows[i] = (struct unwind_row){ i * 16, i + 1 < rows };
	return table;
}

static void built(uint64_t file, size_t rows)
{
	assert_true(w.queue_end < QUEUE);
	w.queue[w.queue_end].file = ID(file);
	w.queue[w.queue_end++].table = rows ? table_of(rows) : NULL;
}

static void feed(void)
{
	tables_feed(&feeder, NULL, NULL);
	assert_int_equal(w.queue_first, w.queue_end);
	w.queue_first = w.queue_end = 0;
}

/* A grace period has passed: what was dropped before is free. */
static void drain(void)
{
	w.room += w.dropped_rows;
	w.dropped_rows = 0;
	for (size_t i = 0; i < FILES; i++)
		w.age[i]++;
	tables_tick(&feeder, NULL, NULL);
}

static int setup(void **state)
{
	memset(&w, 0, sizeof(w));
	w.room = 1000;
	feeder = (struct table_feeder){ 0 };
	return 0;
}

static int teardown(void **state)
{
	tables_fini(&feeder);
	return 0;
}

/* ---- tests ---- */

static void test_loads_what_was_built(void **state)
{
	built(1, 100);
	built(2, 0);
	built(3, 200);
	feed();
	assert_int_equal(w.loaded[1], 100);
	assert_int_equal(w.loaded[3], 200);
	assert_int_equal(w.answered_none[2], 1);
	assert_int_equal(feeder.waiting_count, 0);
}

/* A table without rows is told as "none". */
static void test_empty_table(void **state)
{
	w.queue[w.queue_end].file = ID(4);
	w.queue[w.queue_end++].table = table_of(0);
	feed();
	assert_int_equal(w.answered_none[4], 1);
}

static void test_unused_for_longest_goes(void **state)
{
	built(1, 300);
	built(2, 300);
	built(3, 300);
	feed();
	w.age[1] = 10;
	w.age[2] = 30;
	w.age[3] = 20;
	built(4, 300);
	feed();
	assert_int_equal(w.drops[2], 1);
	assert_int_equal(w.loaded[4], 0); /* only after the grace period */
	assert_int_equal(feeder.waiting_count, 1);
	drain();
	assert_int_equal(w.loaded[4], 300);
	assert_int_equal(feeder.waiting_count, 0);
	assert_int_equal(w.drops[1] + w.drops[3], 0);
}

static void test_several_go_for_a_large_one(void **state)
{
	for (uint64_t file = 1; file <= 10; file++) {
		built(file, 100);
		w.age[file] = 100 - (uint32_t)file;
	}
	feed();
	built(20, 450);
	feed();
	drain();
	assert_int_equal(w.loaded[20], 450);
	for (uint64_t file = 1; file <= 10; file++)
		assert_int_equal(w.drops[file], file <= 5);
}

/* Drains until file 2 is asked for again; file 1 is used all the time. */
static int drains_until_asked(int asked_before)
{
	int n = 0;

	while (w.forgotten[2] == asked_before) {
		w.age[1] = 0;
		drain();
		n++;
	}
	return n;
}

/* What is in use stays; who finds no room is asked for again soon, then later and later. */
static void test_all_in_use(void **state)
{
	static const int waits[] = { 3, 6, 12, 24, 48, 60, 60 };

	built(1, 900);
	for (int i = 0; i < (int)(sizeof(waits) / sizeof(waits[0])); i++) {
		w.age[1] = 0;
		built(2, 200);
		feed();
		assert_int_equal(w.loaded[2], 0);
		assert_int_equal(feeder.given_up, i + 1);
		assert_int_equal(drains_until_asked(i), waits[i]);
	}
	assert_int_equal(w.drops[1], 0);
	assert_int_equal(feeder.waiting_count, 0);
}

/* All libraries of a program that others took over from: none waits for long. */
static void test_all_change(void **state)
{
	for (uint64_t file = 1; file <= 9; file++)
		built(file, 100);
	feed();
	for (uint64_t file = 11; file <= 19; file++)
		built(file, 100);
	feed();
	assert_int_equal(feeder.given_up, 8); /* one found the rest of the room */
	for (int i = 0; i < 3; i++)
		drain(); /* ages those of the first, too */
	for (uint64_t file = 12; file <= 19; file++) {
		assert_int_equal(w.forgotten[file], 1);
		built(file, 100);
	}
	feed();
	drain();
	for (uint64_t file = 11; file <= 19; file++)
		assert_int_equal(w.loaded[file], 100);
}

static void test_vdso_stays(void **state)
{
	w.vdso_rows = 20;
	built(1, 990);
	feed();
	w.age[1] = 0;
	built(2, 200);
	feed();
	assert_int_equal(feeder.given_up, 1);
}

/* More than can wait: those are asked for again at once, nothing leaks. */
static void test_too_many_wait(void **state)
{
	built(1, 990);
	feed();
	w.age[1] = 5;
	for (uint64_t file = 2; file < 2 + TABLES_MAX_WAITING + 30; file++)
		built(file, 50);
	feed();
	assert_int_equal(feeder.waiting_count, TABLES_MAX_WAITING);
	for (uint64_t file = 2 + TABLES_MAX_WAITING; file < 2 + TABLES_MAX_WAITING + 30; file++)
		assert_int_equal(w.forgotten[file], 1);
}

/* Errors other than a lack of room: the table is let go, nothing waits for ever. */
static void test_other_errors(void **state)
{
	w.fail_with = -ENOMEM;
	built(1, 10);
	feed();
	assert_int_equal(feeder.waiting_count, 0);
	assert_int_equal(feeder.given_up, 1); /* said, and answered: no table */
}

/* Files come and go: the budget holds, no room is lost. */
static void test_churn(void **state)
{
	for (int round = 0; round < 400; round++) {
		for (int i = 0; i < 3; i++) {
			uint64_t file = 3 + (uint64_t)(random() % (FILES - 3));
			size_t waiting = 0;

			for (size_t k = 0; k < feeder.waiting_count; k++)
				waiting += feeder.waiting[k].file == ID(file);
			if (!w.loaded[file] && !waiting)
				built(file, 5 + (size_t)(random() % 60));
			w.age[file] = 0;
		}
		feed();
		drain();
	}
	for (uint64_t file = 3; file < FILES; file++)
		w.room += w.loaded[file];
	assert_int_equal(w.room + w.dropped_rows, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_loads_what_was_built, setup, teardown),
		cmocka_unit_test_setup_teardown(test_empty_table, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unused_for_longest_goes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_several_go_for_a_large_one, setup, teardown),
		cmocka_unit_test_setup_teardown(test_all_in_use, setup, teardown),
		cmocka_unit_test_setup_teardown(test_all_change, setup, teardown),
		cmocka_unit_test_setup_teardown(test_vdso_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_churn, setup, teardown),
	};

	srandom(6);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
