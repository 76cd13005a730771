/* SPDX-License-Identifier: Apache-2.0 */
/* The table of `sonde report`, column for column as perf report --stdio has it. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/report_private.h"

enum {
	PERCENT_WIDTH = 8,
	SAMPLES_WIDTH = 12,
	MAX_COLUMNS = REPORT_MAX_KEYS + 3,
	LAST_WIDTH = 60, /* of the last column's dots; nothing stands behind its cells */
};

enum source { FROM_TOTAL, FROM_SELF, FROM_SAMPLES, FROM_VALUE, FROM_CELL };

struct column {
	enum source source;
	size_t cell; /* of FROM_CELL */
	const char *heading;
	size_t width;
	bool right;
};

struct table {
	const struct report *r;
	struct column columns[MAX_COLUMNS];
	size_t column_count;
	size_t row_count; /* rows shown: the first ones */
	struct buf text;  /* scratch: one cell */
};

static const struct {
	const char *unit;
	double scale; /* to the first name's unit */
	struct {
		double from;
		const char *name;
	} steps[5];
} UNITS[] = {
	{ "nanoseconds", 1, { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 1, "ns" } } },
	{ "microseconds", 1e3, { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 1, "ns" } } },
	{ "milliseconds", 1e6, { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 1, "ns" } } },
	{ "seconds", 1e9, { { 1e9, "s" } } },
	{ "bytes", 1,
	  { { 1 << 30, "GiB" }, { 1 << 20, "MiB" }, { 1 << 10, "KiB" }, { 1, "B" } } },
};

void report_put_value(struct buf *out, int64_t value, const char *unit)
{
	for (size_t i = 0; i < sizeof(UNITS) / sizeof(UNITS[0]); i++) {
		double scaled = (double)value * UNITS[i].scale;

		if (strcmp(UNITS[i].unit, unit) != 0)
			continue;
		for (size_t j = 0; UNITS[i].steps[j].name; j++) {
			if (scaled < UNITS[i].steps[j].from && UNITS[i].steps[j + 1].name)
				continue;
			buf_printf(out, "%.2f %s", scaled / UNITS[i].steps[j].from,
				   UNITS[i].steps[j].name);
			return;
		}
	}
	buf_printf(out, "%" PRId64, value);
	if (unit[0] && strcmp(unit, "count") != 0)
		buf_printf(out, " %s", unit);
}

/* The line without blanks at its end. */
static void end_line(struct buf *out)
{
	while (!buf_error(out) && out->len && out->data[out->len - 1] == ' ')
		out->len--;
	buf_put_byte(out, '\n');
}

/* Characters, as a terminal counts most of them. */
static size_t display_width(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static void put_cell(struct buf *out, const char *text, const struct column *column)
{
	size_t width = display_width(text);
	size_t blanks = column->width > width ? column->width - width : 0;

	if (column->right)
		buf_printf(out, "%*s%s", (int)blanks, "", text);
	else
		buf_printf(out, "%s%*s", text, (int)blanks, "");
}

static const char *cell_text(struct table *t, const struct report_row *row,
			     const struct column *column)
{
	const struct report *r = t->r;

	buf_reset(&t->text);
	switch (column->source) {
	case FROM_TOTAL:
		buf_printf(&t->text, "%.2f%%", report_percent(r, row->total));
		break;
	case FROM_SELF:
		buf_printf(&t->text, "%.2f%%", report_percent(r, row->self));
		break;
	case FROM_SAMPLES:
		buf_printf(&t->text, "%" PRId64, row->self_samples);
		break;
	case FROM_VALUE:
		report_put_value(&t->text, report_row_value(r, row),
				 profile_text(r->p, r->p->types[r->type].unit));
		break;
	case FROM_CELL:
		return report_cell(r, row, column->cell);
	}
	return buf_cstr(&t->text) ? (const char *)t->text.data : "";
}

static void add_column(struct table *t, struct column column)
{
	size_t width = display_width(column.heading);

	if (width > column.width)
		column.width = width;
	t->columns[t->column_count++] = column;
}

static void choose_columns(struct table *t)
{
	const struct report *r = t->r;
	struct column percent = { FROM_SELF, 0, "Overhead", PERCENT_WIDTH, true };
	struct column count = { FROM_SAMPLES, 0, "Samples", SAMPLES_WIDTH, true };

	if (r->options->children) {
		add_column(t, (struct column){ FROM_TOTAL, 0, "Children", PERCENT_WIDTH, true });
		percent.heading = "Self";
	}
	add_column(t, percent);
	if (r->samples_type == REPORT_NO_TYPE) {
		count.source = FROM_VALUE;
		count.heading = profile_text(r->p, r->p->types[r->type].type);
	}
	add_column(t, count);
	for (size_t i = 0; i < r->key_count; i++)
		add_column(t, (struct column){ FROM_CELL, i, r->keys[i]->heading, 0,
					       r->keys[i]->right });
}

static void fit_columns(struct table *t)
{
	for (size_t i = 0; i < t->column_count; i++) {
		struct column *column = &t->columns[i];

		for (size_t row = 0; row < t->row_count; row++) {
			size_t width = display_width(cell_text(t, &t->r->rows[row], column));

			if (width > column->width)
				column->width = width;
		}
	}
	if (t->columns[t->column_count - 1].width > LAST_WIDTH)
		t->columns[t->column_count - 1].width = LAST_WIDTH;
}

static void print_heading(struct table *t, struct buf *out)
{
	for (size_t i = 0; i < t->column_count; i++) {
		buf_put_str(out, i ? "  " : "# ");
		put_cell(out, t->columns[i].heading, &t->columns[i]);
	}
	end_line(out);
	for (size_t i = 0; i < t->column_count; i++) {
		buf_put_str(out, i ? "  " : "# ");
		for (size_t dot = 0; dot < t->columns[i].width; dot++)
			buf_put_byte(out, '.');
	}
	buf_put_str(out, "\n#\n");
}

static void print_row(struct table *t, size_t row, struct buf *out)
{
	for (size_t i = 0; i < t->column_count; i++) {
		buf_put_str(out, "  ");
		put_cell(out, cell_text(t, &t->r->rows[row], &t->columns[i]), &t->columns[i]);
	}
	end_line(out);
	report_trees_print(t->r, row, out);
}

static size_t rows_over_limit(const struct report *r)
{
	size_t count = 0;

	while (count < r->row_count && report_percent(r, report_row_value(r, &r->rows[count])) >=
					       r->options->percent_limit)
		count++;
	return count;
}

/* What the limit hides, so that the shares still add up. */
static void print_rest(const struct table *t, struct buf *out)
{
	const struct report *r = t->r;
	size_t rest = r->row_count - t->row_count;
	int64_t self = 0, samples = 0;

	if (!rest)
		return;
	for (size_t i = t->row_count; i < r->row_count; i++) {
		self = report_add(self, r->rows[i].self);
		samples = report_add(samples, r->rows[i].self_samples);
	}
	buf_printf(out, "#\n# %.2f%%%s", report_percent(r, self),
		   r->options->children ? " self" : "");
	if (r->samples_type != REPORT_NO_TYPE)
		buf_printf(out, ", %" PRId64 " samples", samples);
	buf_printf(out, ", in %zu more row%s below --percent-limit %g\n", rest,
		   rest == 1 ? "" : "s", r->options->percent_limit);
}

void report_print_table(struct report *r, struct buf *out)
{
	struct table t = { .r = r, .row_count = rows_over_limit(r) };

	buf_init(&t.text, out->max);
	choose_columns(&t);
	fit_columns(&t);
	if (r->options->call_graph && report_trees_build(r, t.row_count))
		out->err = -ENOMEM;
	print_heading(&t, out);
	for (size_t i = 0; i < t.row_count; i++)
		print_row(&t, i, out);
	if (r->row_count == 0)
		buf_printf(out, "# No samples%s.\n", r->total ? " pass the filters" : "");
	print_rest(&t, out);
	if (buf_error(&t.text))
		out->err = -ENOMEM;
	buf_fini(&t.text);
}
