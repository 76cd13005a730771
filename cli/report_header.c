/* SPDX-License-Identifier: Apache-2.0 */
/* The lines about the file above the table: its comments, type, totals, time and filters. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/report_private.h"

static void print_types(const struct report *r, struct buf *out)
{
	const struct profile *p = r->p;

	buf_printf(out, "# Sample type: %s (%s)", profile_text(p, p->types[r->type].type),
		   profile_text(p, p->types[r->type].unit));
	for (size_t i = 0, shown = 0; i < p->type_count; i++) {
		if (i == r->type)
			continue;
		buf_printf(out, "%s %s (%s)", shown++ ? "," : "; also in the file:",
			   profile_text(p, p->types[i].type), profile_text(p, p->types[i].unit));
	}
	buf_put_byte(out, '\n');
}

static void put_total(const struct report *r, struct buf *out, int64_t value, int64_t samples)
{
	if (r->samples_type != REPORT_NO_TYPE)
		buf_printf(out, "%" PRId64 " samples", samples);
	if (r->samples_type == (int)r->type)
		return;
	if (r->samples_type != REPORT_NO_TYPE)
		buf_put_str(out, ", ");
	report_put_value(out, value, profile_text(r->p, r->p->types[r->type].unit));
}

/* UTC, so that two people who look at one file see the same. */
static void print_time(const struct profile *p, struct buf *out)
{
	time_t seconds = (time_t)(p->time_ns / (int64_t)NSEC_PER_SEC);
	char text[64];
	struct tm tm;

	if (p->time_ns > 0 && gmtime_r(&seconds, &tm) &&
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm))
		buf_printf(out, "# Start: %s\n", text);
	if (p->duration_ns > 0) {
		buf_put_str(out, "# Duration: ");
		report_put_value(out, p->duration_ns, "nanoseconds");
		buf_put_byte(out, '\n');
	}
}

static void print_period(const struct profile *p, struct buf *out)
{
	if (p->period <= 0 || !p->period_type.type)
		return;
	buf_put_str(out, "# Period: ");
	report_put_value(out, p->period, profile_text(p, p->period_type.unit));
	buf_printf(out, " of %s\n", profile_text(p, p->period_type.type));
}

static void print_filter(const char *name, const char *list, size_t *active, struct buf *out)
{
	if (!list)
		return;
	buf_printf(out, "%s%s ", (*active)++ ? ", " : "# Filters: ", name);
	text_escape(out, list, strlen(list));
}

static void print_filters(const struct report *r, struct buf *out)
{
	size_t active = 0;

	for (const struct report_filter *f = report_filters; f->name; f++)
		print_filter(f->name, report_filter_list(r, f), &active, out);
	print_filter("dso", r->options->dso, &active, out);
	print_filter("sym", r->options->sym, &active, out);
	if (r->hides_idle)
		buf_printf(out, "%s without waits of idle workers (--idle shows them)",
			   active++ ? "," : "# Filters:");
	if (!active)
		return;
	buf_printf(out, "\n# Total after filters: ");
	put_total(r, out, r->shown, r->shown_samples);
	buf_printf(out, " (%.2f%% of all)\n", report_percent(r, r->shown));
}

/* A counter of sonde's that stayed 0 is no news. */
static void print_comment(const char *text, struct buf *out)
{
	size_t len = strlen(text);

	if (strncmp(text, "sonde.", 6) == 0 && len > 2 && strcmp(text + len - 2, "=0") == 0)
		return;
	buf_printf(out, "# %s\n", text);
}

void report_print_header(struct report *r, struct buf *out)
{
	const struct profile *p = r->p;

	for (size_t i = 0; i < p->comment_count; i++)
		print_comment(profile_text(p, p->comments[i]), out);
	if (p->comment_count)
		buf_put_str(out, "#\n");
	print_time(p, out);
	print_types(r, out);
	print_period(p, out);
	buf_put_str(out, "# Total: ");
	put_total(r, out, r->total, r->total_samples);
	buf_put_byte(out, '\n');
	print_filters(r, out);
	buf_put_str(out, "#\n");
}
