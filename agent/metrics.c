/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus text; see metrics.h. */
#include "agent/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/*
 * Clean UTF-8, with what the format escapes: backslash, newline, and quotes in label values. A byte
 * that is not clean shows as \xNN, whose backslash is escaped too.
 */
static void put_escaped(struct buf *out, const char *text, const char *special)
{
	struct buf clean;

	buf_init(&clean, 4 * strlen(text) + 1);
	for (size_t n; *text; text += n) {
		n = strcspn(text, special);
		buf_reset(&clean);
		text_escape(&clean, text, n);
		for (size_t i = 0; i < clean.len; i++) {
			if (clean.data[i] == '\\')
				buf_put_byte(out, '\\');
			buf_put_byte(out, clean.data[i]);
		}
		if (n)
			continue;
		buf_put_byte(out, '\\');
		buf_put_byte(out, *text == '\n' ? 'n' : (uint8_t)*text);
		n = 1;
	}
	if (buf_error(&clean) && !out->err)
		out->err = buf_error(&clean);
	buf_fini(&clean);
}

/* Shortest of the usual forms that reads back as the same number. */
static void put_value(struct buf *out, double value)
{
	char text[32];

	if (isnan(value)) {
		buf_put_str(out, "NaN");
		return;
	}
	if (isinf(value)) {
		buf_put_str(out, value < 0 ? "-Inf" : "+Inf");
		return;
	}
	snprintf(text, sizeof(text), "%.15g", value);
	if (strtod(text, NULL) != value)
		snprintf(text, sizeof(text), "%.17g", value);
	buf_put_str(out, text);
}

void metric_family(struct buf *out, const char *name, enum metric_type type, const char *help)
{
	static const char *const types[] = {
		[METRIC_COUNTER] = "counter",
		[METRIC_GAUGE] = "gauge",
		[METRIC_HISTOGRAM] = "histogram",
	};

	buf_printf(out, "# HELP %s ", name);
	put_escaped(out, help, "\\\n");
	buf_printf(out, "\n# TYPE %s %s\n", name, types[type]);
}

void metric_labelled(struct buf *out, const char *name, const struct metric_label *labels,
		     size_t count, double value)
{
	buf_put_str(out, name);
	for (size_t i = 0; i < count; i++) {
		buf_printf(out, "%c%s=\"", i ? ',' : '{', labels[i].name);
		put_escaped(out, labels[i].value, "\\\n\"");
		buf_put_byte(out, '"');
	}
	buf_put_str(out, count ? "} " : " ");
	put_value(out, value);
	buf_put_byte(out, '\n');
}

void metric_sample(struct buf *out, const char *name, const char *label, const char *label_value,
		   double value)
{
	struct metric_label one = { label, label_value };

	metric_labelled(out, name, &one, label ? 1 : 0, value);
}

void metric_single(struct buf *out, const char *name, enum metric_type type, const char *help,
		   double value)
{
	metric_family(out, name, type, help);
	metric_sample(out, name, NULL, NULL, value);
}
