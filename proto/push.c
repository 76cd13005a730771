/* SPDX-License-Identifier: Apache-2.0 */
/* See push.h. */
#include "proto/push.h"

#include <string.h>

#include "proto/wire.h"

enum { REQUEST_SERIES_PYROSCOPE = 1, REQUEST_SERIES_PARCA = 2 };
enum { SERIES_LABELS = 1, SERIES_SAMPLES = 2, LABEL_SET_LABELS = 1 };
enum { LABEL_NAME = 1, LABEL_VALUE = 2, SAMPLE_RAW_PROFILE = 1 };

static void put_label(struct buf *out, struct buf *scratch, const struct push_label *label)
{
	buf_reset(scratch);
	wire_put_bytes(scratch, LABEL_NAME, label->name, strlen(label->name));
	wire_put_bytes(scratch, LABEL_VALUE, label->text, strlen(label->text));
	/* The same number in both: a label in the series, or in the set of labels. */
	_Static_assert((int)SERIES_LABELS == (int)LABEL_SET_LABELS, "one field for both");
	wire_put_bytes(out, SERIES_LABELS, scratch->data, scratch->len);
	if (buf_error(scratch))
		out->err = buf_error(scratch);
}

static void put_sample(struct buf *series, const void *pprof, size_t len)
{
	size_t inner = 1 + wire_varint_size(len) + len; /* a tag of one byte */

	wire_put_head(series, SERIES_SAMPLES, inner);
	wire_put_bytes(series, SAMPLE_RAW_PROFILE, pprof, len);
}

void push_put_series(struct buf *out, enum push_dialect dialect, const struct push_label *labels,
		     size_t label_count, const void *pprof, size_t len)
{
	uint32_t field = dialect == PUSH_PARCA ? REQUEST_SERIES_PARCA : REQUEST_SERIES_PYROSCOPE;
	struct buf set, scratch, series;

	buf_init(&set, out->max);
	buf_init(&scratch, out->max);
	buf_init(&series, out->max);
	for (size_t i = 0; i < label_count; i++)
		put_label(&set, &scratch, &labels[i]);
	if (dialect == PUSH_PARCA)
		wire_put_bytes(&series, SERIES_LABELS, set.data, set.len);
	else
		buf_put(&series, set.data, set.len);
	put_sample(&series, pprof, len);
	if (!buf_error(out))
		out->err = buf_error(&set) ?: buf_error(&series);
	wire_put_bytes(out, field, series.data, series.len);
	buf_fini(&set);
	buf_fini(&scratch);
	buf_fini(&series);
}
