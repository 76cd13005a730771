/* SPDX-License-Identifier: Apache-2.0 */
/* Pyroscope's push API: Connect's unary protocol over HTTP/1.1, pprof profiles in protobuf. */
#include <stdio.h>
#include <string.h>

#include "agent/export/judge.h"
#include "agent/export/pieces.h"
#include "base/clock.h"

/* Limits that a tenant has by default. */
enum { MAX_SAMPLES = 16000 };
static const uint64_t MAX_AGE = 3600 * NSEC_PER_SEC;

static const char *const headers[] = { "Content-Type: application/proto",
				       "Connect-Protocol-Version: 1", NULL };

static int encode(const struct export_batch *batch, struct buf *body)
{
	return export_push(batch, PUSH_PYROSCOPE, body);
}

/*
 * The text of a member of the error's object, {"code":"...","message":"..."}: enough of JSON for
 * what Connect writes. What it does not understand is judged by the HTTP status.
 */
static bool find_member(const struct buf *body, const char *member, char *ret_text, size_t size)
{
	const char *at = memmem(body->data, body->len, member, strlen(member));
	const char *end = (const char *)body->data + body->len;
	size_t n = 0;

	if (!at)
		return false;
	at += strlen(member);
	while (at < end && (*at == ' ' || *at == ':'))
		at++;
	if (at == end || *at++ != '"')
		return false;
	for (; at < end && *at != '"' && n + 1 < size; at++) {
		if (*at == '\\' && at + 1 < end)
			at++;
		ret_text[n++] = *at;
	}
	ret_text[n] = 0;
	return at < end;
}

static enum verdict judge(const struct http_response *r, char *why, size_t why_size)
{
	char code[32], message[200] = "";
	int number;

	if (r->status == 200 && strcmp(r->content_type, "application/proto") == 0)
		return VERDICT_SENT; /* the message has no fields that matter */
	if (r->status == 200) {
		snprintf(why, why_size, "HTTP 200 with content '%.60s', no Connect server",
			 r->content_type);
		return VERDICT_DOUBT;
	}
	if (r->status == 413 || r->status == 415 || !r->body.len ||
	    strncmp(r->content_type, "application/json", strlen("application/json")) != 0 ||
	    !find_member(&r->body, "\"code\"", code, sizeof(code)))
		return judge_http(r, why, why_size);
	number = grpc_code(code);
	if (number < 0)
		return judge_http(r, why, why_size);
	find_member(&r->body, "\"message\"", message, sizeof(message));
	snprintf(why, why_size, "%s", code);
	judge_say(why, why_size, message, strlen(message));
	return judge_grpc(number, message);
}

const struct sink_type sink_pyroscope = {
	.name = "pyroscope",
	.path = "/push.v1.PusherService/Push",
	.headers = headers,
	.max_age_ns = MAX_AGE,
	.max_samples = MAX_SAMPLES,
	.encode = encode,
	.judge = judge,
};
