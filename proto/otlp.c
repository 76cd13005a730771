/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of OTLP profiles: resources and profiles; see otlp.h. */
#include "proto/otlp.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "proto/otlp_fields.h"
#include "proto/otlp_private.h"
#include "proto/wire.h"

static const char SCHEMA_URL[] = "https://opentelemetry.io/schemas/1.37.0";

enum { RESOURCE_PROFILES_SCHEMA_URL = 3 };

int otlp_request_new(size_t max_bytes, struct otlp_request **ret_request)
{
	struct otlp_request *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	buf_init(&r->body, max_bytes);
	err = otlp_dictionary_init(&r->dictionary, max_bytes);
	if (err)
		otlp_request_free(r);
	else
		*ret_request = r;
	return err;
}

void otlp_request_free(struct otlp_request *r)
{
	if (!r)
		return;
	buf_fini(&r->body);
	otlp_dictionary_fini(&r->dictionary);
	free(r);
}

size_t otlp_request_profiles(const struct otlp_request *r)
{
	return r->profiles;
}

/* ---- one profile ---- */

/* The parts of a message that are built from the inside out. */
struct encoder {
	struct otlp_request *request;
	struct otlp_intake intake;
	struct buf profile, message, part;
};

static void put_text(struct buf *out, uint32_t field, const char *text)
{
	if (*text)
		wire_put_bytes(out, field, text, strlen(text));
}

static void move(struct buf *out, uint32_t field, struct buf *from)
{
	wire_put_bytes(out, field, from->data, from->len);
	if (buf_error(from))
		out->err = buf_error(from);
	else
		buf_reset(from);
}

static void put_fixed64(struct buf *out, uint32_t field, uint64_t value)
{
	wire_put_varint(out, (uint64_t)field << 3 | WIRE_FIXED64);
	for (unsigned i = 0; i < 8; i++)
		buf_put_byte(out, (uint8_t)(value >> (8 * i)));
}

/* Written also when empty: receivers look into it without asking. */
static int put_value_type(struct encoder *e, uint32_t field, struct profile_type type)
{
	int64_t name = otlp_intake_string(&e->intake, type.type);
	int64_t unit = otlp_intake_string(&e->intake, type.unit);

	if (name < 0 || unit < 0)
		return (int)(name < 0 ? name : unit);
	wire_put_uint(&e->part, OTLP_VALUE_TYPE_TYPE, (uint64_t)name);
	wire_put_uint(&e->part, OTLP_VALUE_TYPE_UNIT, (uint64_t)unit);
	move(&e->profile, field, &e->part);
	return 0;
}

static int put_sample_attributes(struct encoder *e, const struct profile_sample *sample)
{
	const struct profile *p = e->intake.p;

	for (size_t i = 0; i < sample->label_count; i++) {
		const struct profile_label *label = &sample->labels[i];
		int64_t number;

		if (!label->str || strcmp(profile_text(p, label->key), "thread") != 0)
			continue;
		number =
			otlp_add_attribute(e->intake.d, "thread.name", profile_text(p, label->str));
		if (number < 0)
			return (int)number;
		wire_put_varint(&e->part, (uint64_t)number);
		break; /* keys of one sample are unique */
	}
	if (e->part.len)
		move(&e->message, OTLP_SAMPLE_ATTRIBUTES, &e->part);
	return 0;
}

static int put_sample(struct encoder *e, const struct profile_sample *sample, int64_t value)
{
	int64_t stack = otlp_intake_stack(&e->intake, sample);
	int err;

	if (stack < 0)
		return (int)stack;
	wire_put_uint(&e->message, OTLP_SAMPLE_STACK, (uint64_t)stack);
	err = put_sample_attributes(e, sample);
	if (err)
		return err;
	wire_put_varint(&e->part, (uint64_t)value);
	move(&e->message, OTLP_SAMPLE_VALUES, &e->part);
	move(&e->profile, OTLP_PROFILE_SAMPLES, &e->message);
	return 0;
}

/* The id of the n-th profile under a resource: its own, counted on in the last bytes. */
static void put_id(struct encoder *e, const struct otlp_resource *resource, size_t n)
{
	uint8_t id[sizeof(resource->profile_id)];

	memcpy(id, resource->profile_id, sizeof(id));
	id[sizeof(id) - 1] = (uint8_t)(id[sizeof(id) - 1] + n);
	wire_put_bytes(&e->profile, OTLP_PROFILE_ID, id, sizeof(id));
}

static int put_profile(struct encoder *e, const struct otlp_resource *resource, size_t type)
{
	const struct profile *p = e->intake.p;
	int err = put_value_type(e, OTLP_PROFILE_SAMPLE_TYPE, p->types[type]);
	size_t head = e->profile.len;

	for (size_t i = 0; !err && i < p->sample_count; i++) {
		int64_t value = p->samples[i].values[type];

		err = value ? put_sample(e, &p->samples[i], value) : 0;
	}
	if (err || e->profile.len == head) {
		buf_reset(&e->profile); /* no sample has this type */
		return err;
	}
	put_fixed64(&e->profile, OTLP_PROFILE_TIME, (uint64_t)p->time_ns);
	wire_put_uint(&e->profile, OTLP_PROFILE_DURATION, (uint64_t)p->duration_ns);
	err = put_value_type(e, OTLP_PROFILE_PERIOD_TYPE, p->period_type);
	wire_put_uint(&e->profile, OTLP_PROFILE_PERIOD, (uint64_t)p->period);
	put_id(e, resource, type);
	move(&e->message, OTLP_SCOPE_PROFILES_PROFILES, &e->profile);
	e->request->profiles++;
	return err;
}

/* ---- a resource with its profiles ---- */

static bool is(const struct profile *p, struct profile_type type, const char *name,
	       const char *unit)
{
	return strcmp(profile_text(p, type.type), name) == 0 &&
	       strcmp(profile_text(p, type.unit), unit) == 0;
}

/* Whether the type says nothing that the first one and the period do not say. */
static bool is_implied(const struct profile *p, size_t type)
{
	return type > 0 && p->period > 0 && is(p, p->types[0], "samples", "count") &&
	       is(p, p->types[type], "cpu", "nanoseconds") &&
	       is(p, p->period_type, "cpu", "nanoseconds");
}

static void put_resource(struct buf *out, const struct otlp_resource *resource)
{
	struct buf attributes, pair, value;

	buf_init(&attributes, out->max);
	buf_init(&pair, out->max);
	buf_init(&value, out->max);
	for (size_t i = 0; i < resource->attribute_count; i++) {
		put_text(&pair, OTLP_KEY_VALUE_KEY, resource->attributes[i].key);
		put_text(&value, OTLP_ANY_STRING, resource->attributes[i].text);
		move(&pair, OTLP_KEY_VALUE_VALUE, &value);
		move(&attributes, OTLP_RESOURCE_ATTRIBUTES, &pair);
	}
	move(out, OTLP_RESOURCE_PROFILES_RESOURCE, &attributes);
	buf_fini(&attributes);
	buf_fini(&pair);
	buf_fini(&value);
}

static void put_scope(struct buf *out, struct buf *scratch, const struct otlp_resource *resource)
{
	put_text(scratch, OTLP_SCOPE_NAME, resource->scope_name);
	put_text(scratch, OTLP_SCOPE_VERSION, resource->scope_version);
	move(out, OTLP_SCOPE_PROFILES_SCOPE, scratch);
}

/* Each profile is put into `scope` whole; samples are built in e->message meanwhile. */
static int put_profiles(struct encoder *e, const struct otlp_resource *resource, struct buf *scope)
{
	const struct profile *p = e->intake.p;
	int err = 0;

	for (size_t type = 0; !err && type < p->type_count; type++) {
		if (is_implied(p, type))
			continue;
		err = put_profile(e, resource, type);
		buf_put(scope, e->message.data, e->message.len);
		if (!buf_error(&e->message))
			buf_reset(&e->message);
	}
	return err;
}

static int encode(struct encoder *e, const struct otlp_resource *resource)
{
	struct buf scope, whole;
	int err;

	buf_init(&scope, e->request->body.max);
	buf_init(&whole, e->request->body.max);
	put_scope(&scope, &e->part, resource);
	err = put_profiles(e, resource, &scope);
	put_resource(&whole, resource);
	move(&whole, OTLP_RESOURCE_PROFILES_SCOPES, &scope);
	put_text(&whole, RESOURCE_PROFILES_SCHEMA_URL, SCHEMA_URL);
	move(&e->request->body, OTLP_DATA_RESOURCE_PROFILES, &whole);
	if (!err)
		err = buf_error(&e->request->body);
	if (!err)
		err = buf_error(&e->message) ?: buf_error(&e->profile) ?: buf_error(&e->part);
	buf_fini(&scope);
	buf_fini(&whole);
	return err;
}

int otlp_request_add(struct otlp_request *r, const struct otlp_resource *resource,
		     const struct profile *p)
{
	struct encoder e = { .request = r };
	int err;

	if (p->sample_count == 0)
		return 0;
	buf_init(&e.profile, r->body.max);
	buf_init(&e.message, r->body.max);
	buf_init(&e.part, r->body.max);
	err = otlp_intake_init(&e.intake, &r->dictionary, p);
	if (!err)
		err = encode(&e, resource);
	otlp_intake_fini(&e.intake);
	buf_fini(&e.profile);
	buf_fini(&e.message);
	buf_fini(&e.part);
	return err == -ENOSPC ? -EFBIG : err;
}
