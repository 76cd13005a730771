/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP profiles over HTTP: one resource with one scope for each series. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/export/judge.h"
#include "agent/export/sink.h"
#include "base/map.h"
#include "proto/compress.h"
#include "proto/merge.h"
#include "proto/otlp.h"
#include "proto/wire.h"

enum { MAX_ATTRIBUTES = 40, RESPONSE_PARTIAL_SUCCESS = 1 };
enum { PARTIAL_REJECTED = 1, PARTIAL_MESSAGE = 2, STATUS_MESSAGE = 2 };

static const char *const headers[] = { "Content-Type: application/x-protobuf", NULL };

static size_t attributes_of(const struct export_batch *b, const struct series *series,
			    char service[SERIES_SERVICE_BYTES], struct otlp_attribute *attributes)
{
	const struct export_identity *identity = b->identity;
	size_t n = 0;

	attributes[n++] =
		(struct otlp_attribute){ "service.name", series_service(b->p, series, service) };
	attributes[n++] = (struct otlp_attribute){ "host.name", identity->node };
	attributes[n++] = (struct otlp_attribute){ "os.type", "linux" };
	for (int i = 0; i < SERIES_LABEL_COUNT; i++) {
		if (series->labels[i])
			attributes[n++] =
				(struct otlp_attribute){ series_label_attribute(i),
							 profile_text(b->p, series->labels[i]) };
	}
	for (size_t i = 0; i < identity->label_count; i++)
		attributes[n++] = (struct otlp_attribute){ identity->labels[i].name,
							   identity->labels[i].text };
	return n;
}

/*
 * The same for the same samples, so that a receiver may know what came twice: from the node, what
 * goes together (its time, kind and number of samples) and the place in that. The last byte is
 * counted on by the writer. All ids of a request begin alike, which is what makes them cheap: a
 * container that does next to nothing is little more than an id.
 */
static void make_id(const struct export_batch *b, size_t first, uint8_t id[16])
{
	const struct profile *p = b->p;
	const char *node = b->identity->node, *type = profile_text(p, p->types[0].type);
	uint64_t words[] = {
		hash_bytes(node, strlen(node)), (uint64_t)p->time_ns, (uint64_t)p->duration_ns,
		hash_bytes(type, strlen(type)), p->sample_count,
	};
	uint64_t hash[2];

	hash[0] = hash_bytes(words, sizeof(words));
	words[0] ^= hash[0];
	hash[1] = hash_bytes(words, sizeof(words));
	memcpy(id, hash, 16);
	for (size_t i = 11; i < 15; i++)
		id[i] = (uint8_t)(first >> (8 * (14 - i)));
	id[15] = 1; /* never all zero */
}

static int add_series(struct otlp_request *request, const struct export_batch *b,
		      const struct series *s)
{
	size_t first = s->first > b->first ? s->first : b->first;
	size_t end = s->first + s->count < b->end ? s->first + s->count : b->end;
	struct otlp_attribute attributes[MAX_ATTRIBUTES];
	char service[SERIES_SERVICE_BYTES];
	struct otlp_resource resource = {
		.attributes = attributes,
		.attribute_count = attributes_of(b, s, service, attributes),
		.scope_name = "sonde",
		.scope_version = b->identity->version,
	};
	struct profile *p;
	int err = profile_extract(b->p, b->series->order + first, end - first, "thread",
				  SIZE_MAX / 4, &p);

	if (err)
		return err;
	make_id(b, first, resource.profile_id);
	err = otlp_request_add(request, &resource, p);
	profile_free(p);
	return err;
}

static int encode(const struct export_batch *batch, struct buf *body)
{
	const struct series_list *list = batch->series;
	struct otlp_request *request;
	int err = otlp_request_new(body->max, &request);

	if (err)
		return err;
	for (size_t i = series_at(list, batch->first);
	     !err && i < list->count && list->series[i].first < batch->end; i++)
		err = add_series(request, batch, &list->series[i]);
	if (!err)
		err = otlp_request_write(request, buf_sink(body));
	otlp_request_free(request);
	return err == -ENOSPC ? -EFBIG : err;
}

/* A message's varint and text fields: what an answer and an error have in common. */
static int read_message(struct wire_reader r, uint32_t text_field, uint64_t *ret_number, char *text,
			size_t text_size)
{
	struct wire_field field;
	int got;

	text[0] = 0;
	while ((got = wire_next(&r, &field)) > 0) {
		if (field.number == text_field && field.type == WIRE_BYTES)
			judge_say(text, text_size, (const char *)field.bytes.pos,
				  (size_t)(field.bytes.end - field.bytes.pos));
		else if (field.number == PARTIAL_REJECTED && field.type == WIRE_VARINT)
			*ret_number = field.value;
	}
	return got;
}

/* Of a success: what was refused must not come again, so it counts as sent, with a word. */
static enum verdict judge_success(const struct http_response *r, char *why, size_t why_size)
{
	struct wire_reader reader = { r->body.data, r->body.data + r->body.len };
	struct wire_field field;
	uint64_t rejected = 0;
	char text[HTTP_ERROR_BYTES] = "";
	int got;

	if (strncmp(r->content_type, headers[0] + strlen("Content-Type: "),
		    strlen("application/x-protobuf")) != 0 &&
	    r->body.len) {
		snprintf(why, why_size, "HTTP %d with content '%.60s', no OTLP receiver", r->status,
			 r->content_type);
		return VERDICT_DOUBT;
	}
	while ((got = wire_next(&reader, &field)) > 0) {
		if (field.number == RESPONSE_PARTIAL_SUCCESS && field.type == WIRE_BYTES)
			got = read_message(field.bytes, PARTIAL_MESSAGE, &rejected, text,
					   sizeof(text));
		if (got < 0)
			break;
	}
	if (got < 0) {
		snprintf(why, why_size, "HTTP %d with a body that is no OTLP answer", r->status);
		return VERDICT_DOUBT;
	}
	if (rejected || text[0])
		snprintf(why, why_size, "%llu profiles refused%s", (unsigned long long)rejected,
			 text);
	return VERDICT_SENT;
}

static enum verdict judge(const struct http_response *r, char *why, size_t why_size)
{
	struct wire_reader reader = { r->body.data, r->body.data + r->body.len };
	char text[HTTP_ERROR_BYTES] = "";
	enum verdict verdict;
	uint64_t code;

	if (r->status == 200)
		return judge_success(r, why, why_size);
	verdict = judge_http(r, why, why_size);
	/* An error's body is a google.rpc.Status. */
	if (r->body.len && read_message(reader, STATUS_MESSAGE, &code, text, sizeof(text)) == 0 &&
	    text[0])
		snprintf(why, why_size, "HTTP %d%s", r->status, text);
	return verdict;
}

const struct sink_type sink_otlp = {
	.name = "otlp",
	.path = "/v1development/profiles",
	.headers = headers,
	.gzip = true,
	.encode = encode,
	.judge = judge,
};
