/* SPDX-License-Identifier: Apache-2.0 */
/* See pieces.h. */
#include "agent/export/pieces.h"

#include <errno.h>
#include <string.h>

#include "proto/compress.h"
#include "proto/merge.h"
#include "proto/pprof.h"

struct cutter {
	const struct export_batch *batch;
	const struct series *series;
	bool say_labels;
	export_piece_fn fn;
	void *context;
};

/* -EFBIG if it passes the limit of one profile. */
static int hand_out(const struct cutter *c, const struct profile *p, size_t first)
{
	struct export_piece piece = { c->batch, c->series, p, .first = first };
	struct buf plain, packed;
	int err;

	buf_init(&plain, c->batch->limits.profile_bytes);
	buf_init(&packed, c->batch->limits.profile_bytes + 1024);
	err = pprof_write(p, buf_sink(&plain));
	if (err == -ENOSPC)
		err = -EFBIG;
	if (!err)
		err = compress_put(COMPRESS_GZIP, plain.data, plain.len, &packed);
	if (!err) {
		piece.pprof = packed.data;
		piece.len = packed.len;
		err = c->fn(c->context, &piece);
	}
	buf_fini(&plain);
	buf_fini(&packed);
	return err;
}

static int add_labels(const struct cutter *c, struct profile *p)
{
	struct export_piece piece = { c->batch, c->series, p };
	struct push_label labels[EXPORT_MAX_LABELS];
	char service[SERIES_SERVICE_BYTES];
	size_t count = export_labels(&piece, service, labels);
	int err = 0;

	for (size_t i = 1; !err && i < count; i++)
		err = profile_add_comment(p, "%s: %s", labels[i].name, labels[i].text);
	return err;
}

static int cut(const struct cutter *c, size_t first, size_t count)
{
	const struct export_batch *b = c->batch;
	struct profile *p = NULL;
	size_t half = count / 2;
	int err = -EFBIG;

	if (count <= b->limits.profile_samples || count == 1) {
		err = profile_extract(b->p, b->series->order + first, count, "", SIZE_MAX / 4, &p);
		if (!err && c->say_labels)
			err = add_labels(c, p);
		if (!err)
			err = hand_out(c, p, first);
		profile_free(p);
	}
	if (err != -EFBIG || count == 1)
		return err;
	err = cut(c, first, half);
	return err ? err : cut(c, first + half, count - half);
}

int export_pieces(const struct export_batch *batch, bool say_labels, export_piece_fn fn,
		  void *context)
{
	const struct series_list *list = batch->series;
	int err = 0;

	for (size_t i = series_at(list, batch->first);
	     !err && i < list->count && list->series[i].first < batch->end; i++) {
		const struct series *s = &list->series[i];
		struct cutter c = { batch, s, say_labels, fn, context };
		size_t first = s->first > batch->first ? s->first : batch->first;
		size_t end = s->first + s->count < batch->end ? s->first + s->count : batch->end;

		err = end > first ? cut(&c, first, end - first) : 0;
	}
	return err;
}

const char *export_profile_name(const struct profile *p)
{
	static const struct {
		const char *type, *name;
	} names[] = {
		{ "cpu", "process_cpu" },
		{ "delay", "mutex" },
	};
	const char *type = p->type_count ? profile_text(p, p->types[p->type_count - 1].type) : "";

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(type, names[i].type) == 0)
			return names[i].name;
	}
	return type;
}

size_t export_labels(const struct export_piece *piece, char service[SERIES_SERVICE_BYTES],
		     struct push_label labels[EXPORT_MAX_LABELS])
{
	const struct export_identity *identity = piece->batch->identity;
	const struct profile *p = piece->batch->p;
	size_t n = 0;

	labels[n++] = (struct push_label){ "__name__", export_profile_name(p) };
	labels[n++] =
		(struct push_label){ "service_name", series_service(p, piece->series, service) };
	labels[n++] = (struct push_label){ "node", identity->node };
	for (int i = 0; i < SERIES_LABEL_COUNT; i++) {
		if (piece->series->labels[i])
			labels[n++] =
				(struct push_label){ series_label_name(i),
						     profile_text(p, piece->series->labels[i]) };
	}
	for (size_t i = 0; i < identity->label_count; i++)
		labels[n++] = identity->labels[i];
	return n;
}

struct push {
	enum push_dialect dialect;
	struct buf *body;
};

static int push_piece(void *context, const struct export_piece *piece)
{
	struct push_label labels[EXPORT_MAX_LABELS];
	char service[SERIES_SERVICE_BYTES];
	const struct push *push = context;
	size_t count = export_labels(piece, service, labels);

	push_put_series(push->body, push->dialect, labels, count, piece->pprof, piece->len);
	return buf_error(push->body) == -ENOSPC ? -EFBIG : buf_error(push->body);
}

int export_push(const struct export_batch *batch, enum push_dialect dialect, struct buf *body)
{
	struct push push = { dialect, body };

	return export_pieces(batch, false, push_piece, &push);
}
