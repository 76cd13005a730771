/* SPDX-License-Identifier: Apache-2.0 */
/* Feeding unwind tables to the kernel side; see tables.h. */
#include "agent/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* In drains: what was used more recently is not dropped; when a table given up is tried again. */
enum { DROP_AGE = 2, RETRY_FIRST = DROP_AGE + 1, RETRY_LAST = 60 };

/* The two sides name the same things; rows and rules are taken as they are. */
_Static_assert(sizeof(struct unwind_rule) == sizeof(struct sonde_rule), "rules differ");
_Static_assert(sizeof(struct unwind_row) == sizeof(struct table_row), "rows differ");
#define SAME(a, b) _Static_assert((int)(a) == (int)(b), "rules differ")
SAME(UNWIND_NONE, SONDE_CFA_NONE);
SAME(UNWIND_UNSUPPORTED, SONDE_CFA_UNSUPPORTED);
SAME(UNWIND_END, SONDE_CFA_END);
SAME(UNWIND_SP, SONDE_CFA_SP);
SAME(UNWIND_FP, SONDE_CFA_FP);
SAME(UNWIND_SP_DEREF, SONDE_CFA_SP_DEREF);
SAME(UNWIND_FP_DEREF, SONDE_CFA_FP_DEREF);
SAME(UNWIND_REG, SONDE_CFA_REG);
SAME(UNWIND_PLT, SONDE_CFA_PLT);
SAME(UNWIND_SIGNAL, SONDE_CFA_SIGNAL);
SAME(UNWIND_FP_SWITCH, SONDE_CFA_FP_SWITCH);
SAME(UNWIND_GO_STACK, SONDE_CFA_GO_STACK);
SAME(UNWIND_BARE, SONDE_CFA_BARE);
SAME(offsetof(struct unwind_rule, cfa_reg), offsetof(struct sonde_rule, reg));
SAME(UNWIND_FP_SAME, SONDE_FP_SAME);
SAME(UNWIND_FP_UNDEFINED, SONDE_FP_UNDEFINED);
SAME(UNWIND_FP_AT_CFA, SONDE_FP_AT_CFA);
SAME(UNWIND_FP_AT_FP, SONDE_FP_AT_FP);
SAME(UNWIND_BX_LOST, SONDE_BX_LOST);
SAME(UNWIND_BX_SAME, SONDE_BX_SAME);
SAME(offsetof(struct unwind_rule, bx), offsetof(struct sonde_rule, bx));
SAME(offsetof(struct unwind_rule, cfa_off), offsetof(struct sonde_rule, off));
SAME(offsetof(struct unwind_rule, cfa_add), offsetof(struct sonde_rule, add));
SAME(offsetof(struct unwind_rule, fp_off), offsetof(struct sonde_rule, fp_off));
SAME(offsetof(struct unwind_row, off), offsetof(struct table_row, off));
SAME(offsetof(struct unwind_row, rule), offsetof(struct table_row, rule));

static int load(struct collect *c, uint64_t file, const struct unwind_table *table)
{
	struct table_rows rows;

	if (!table || !table->row_count)
		return collect_add_table(c, file, NULL);
	rows = (struct table_rows){
		.rows = (const struct table_row *)table->rows,
		.row_count = table->row_count,
		.rules = (const struct sonde_rule *)table->rules,
		.rule_count = table->rule_count,
	};
	return file == SONDE_FRAME_VDSO ? collect_add_vdso_table(c, &rows)
					: collect_add_table(c, file, &rows);
}

/* Drops the table that was unused for longest, and returns its rows; 0 if all are in use. */
static size_t drop_oldest(struct collect *c, struct resolver *r)
{
	uint32_t oldest_age = DROP_AGE;
	uint64_t file, oldest = 0;
	size_t cursor = 0;

	while (collect_next_table(c, &cursor, &file)) {
		uint32_t age = resolver_file_age(r, file);

		if (file != SONDE_FRAME_VDSO && age > oldest_age) {
			oldest_age = age;
			oldest = file;
		}
	}
	return oldest ? collect_drop_table(c, oldest) : 0;
}

/* Drops as many tables as hold so many rows, or all that are not in use; false if none is. */
static bool make_room(struct collect *c, struct resolver *r, size_t rows)
{
	size_t freed = 0, one;

	while (freed < rows && (one = drop_oldest(c, r)))
		freed += one;
	return freed > 0;
}

/* Takes over `table`. Without a place to wait the kernel shall simply ask again. */
static void wait_for_room(struct table_feeder *f, struct collect *c, uint64_t file,
			  struct unwind_table *table, uint32_t retry_at)
{
	if (f->waiting_count == TABLES_MAX_WAITING) {
		unwind_table_free(table);
		collect_forget(c, COLLECT_FILE, file);
		return;
	}
	f->waiting[f->waiting_count++] = (struct waiting_table){ file, table, retry_at };
}

/*
 * Without room, and all that is loaded in use. What others have just ceased to use becomes free soon,
 * so the first retry is early; the further ones are later and later, since each reads the file again.
 */
static void give_up(struct table_feeder *f, struct collect *c, uint64_t file)
{
	if (!f->patience)
		f->patience = RETRY_FIRST;
	else if (f->patience_at != f->drains)
		f->patience = f->patience * 2 < RETRY_LAST ? f->patience * 2 : RETRY_LAST;
	f->patience_at = f->drains;
	f->given_up++;
	wait_for_room(f, c, file, NULL, f->drains + f->patience);
}

/* Takes over `table`. */
static void feed(struct table_feeder *f, struct collect *c, struct resolver *r, uint64_t file,
		 struct unwind_table *table)
{
	int err = load(c, file, table);

	if (err != -ENOSPC) {
		/* A table that cannot be loaded at all is none. */
		if (err) {
			f->given_up++;
			collect_add_table(c, file, NULL);
		}
		unwind_table_free(table);
		return;
	}
	if (make_room(c, r, table->row_count)) {
		f->patience = 0;
		wait_for_room(f, c, file, table, 0);
		return;
	}
	unwind_table_free(table);
	give_up(f, c, file);
}

void tables_feed(struct table_feeder *f, struct collect *c, struct resolver *r)
{
	struct unwind_table *table;
	uint64_t file;

	while (resolver_next_table(r, &file, &table))
		feed(f, c, r, file, table);
}

void tables_tick(struct table_feeder *f, struct collect *c, struct resolver *r)
{
	struct table_feeder now = *f;

	f->drains++;
	f->waiting_count = 0;
	for (size_t i = 0; i < now.waiting_count; i++) {
		struct waiting_table *w = &now.waiting[i];

		if (w->table)
			feed(f, c, r, w->file, w->table);
		else if (f->drains >= w->retry_at)
			collect_forget(c, COLLECT_FILE, w->file);
		else
			f->waiting[f->waiting_count++] = *w;
	}
}

void tables_add_vdso(struct collect *c)
{
	struct unwind_table *table;

	if (unwind_table_build_vdso(&table))
		return;
	load(c, SONDE_FRAME_VDSO, table);
	unwind_table_free(table);
}

void tables_fini(struct table_feeder *f)
{
	for (size_t i = 0; i < f->waiting_count; i++)
		unwind_table_free(f->waiting[i].table);
	f->waiting_count = 0;
}
