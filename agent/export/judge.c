/* SPDX-License-Identifier: Apache-2.0 */
/* See judge.h. */
#include "agent/export/judge.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"

enum { SAID_BYTES = 200, CODE_RESOURCE_EXHAUSTED = 8 };

/*
 * 500 is in doubt: OTLP forbids to try it again, as a receiver may say it of a profile that it
 * cannot take; stores say it when they are in trouble, too, and then data must not be lost.
 */
static const struct status_row http_rows[] = {
	{ 200, 299, VERDICT_DOUBT }, /* a success is judged by its content before */
	{ 300, 399, VERDICT_HOLD },  { 400, 400, VERDICT_REJECT }, { 401, 407, VERDICT_HOLD },
	{ 408, 408, VERDICT_RETRY }, { 413, 413, VERDICT_SPLIT },  { 415, 415, VERDICT_PLAIN },
	{ 421, 421, VERDICT_HOLD },  { 425, 425, VERDICT_RETRY },  { 429, 429, VERDICT_RETRY },
	{ 499, 499, VERDICT_RETRY }, { 400, 499, VERDICT_REJECT }, { 500, 500, VERDICT_DOUBT },
	{ 501, 501, VERDICT_HOLD },  { 502, 504, VERDICT_RETRY },  { 505, 599, VERDICT_DOUBT },
	{ 1, 0, VERDICT_DOUBT },
};

static const struct {
	const char *name;
	enum verdict verdict;
} grpc_codes[] = {
	{ "ok", VERDICT_SENT },
	{ "canceled", VERDICT_RETRY },
	{ "unknown", VERDICT_DOUBT },
	{ "invalid_argument", VERDICT_REJECT },
	{ "deadline_exceeded", VERDICT_RETRY },
	{ "not_found", VERDICT_HOLD },
	{ "already_exists", VERDICT_REJECT },
	{ "permission_denied", VERDICT_HOLD },
	{ "resource_exhausted", VERDICT_RETRY },
	{ "failed_precondition", VERDICT_REJECT },
	{ "aborted", VERDICT_RETRY },
	{ "out_of_range", VERDICT_REJECT },
	{ "unimplemented", VERDICT_HOLD },
	{ "internal", VERDICT_DOUBT },
	{ "unavailable", VERDICT_RETRY },
	{ "data_loss", VERDICT_DOUBT },
	{ "unauthenticated", VERDICT_HOLD },
};

enum { GRPC_CODES = sizeof(grpc_codes) / sizeof(grpc_codes[0]) };

enum verdict judge_status(const struct status_row *rows, int code, enum verdict otherwise)
{
	for (; rows->from <= rows->to; rows++) {
		if (code >= rows->from && code <= rows->to)
			return rows->verdict;
	}
	return otherwise;
}

void judge_say(char *why, size_t why_size, const char *text, size_t len)
{
	size_t at = strlen(why);
	struct buf clean;
	const char *said;

	while (len && (text[len - 1] == '\n' || text[len - 1] == '\r' || text[len - 1] == ' '))
		len--;
	if (len == 0 || at >= why_size)
		return;
	buf_init(&clean, 4 * SAID_BYTES);
	text_escape(&clean, text, len < SAID_BYTES ? len : SAID_BYTES);
	said = buf_cstr(&clean);
	if (said)
		snprintf(why + at, why_size - at, ": %s", said);
	buf_fini(&clean);
}

/* Servers say "too many" with other codes, too, and the name of gRPC's in the body. */
static bool says_exhausted(const struct http_response *r)
{
	static const char word[] = "resource_exhausted", other[] = "ResourceExhausted";

	return r->body.len && (memmem(r->body.data, r->body.len, word, strlen(word)) ||
			       memmem(r->body.data, r->body.len, other, strlen(other)));
}

enum verdict judge_http(const struct http_response *r, char *why, size_t why_size)
{
	enum verdict verdict = judge_status(http_rows, r->status, VERDICT_DOUBT);

	snprintf(why, why_size, "HTTP %d", r->status);
	if (r->body.len)
		judge_say(why, why_size, (const char *)r->body.data, r->body.len);
	if ((verdict == VERDICT_REJECT || verdict == VERDICT_DOUBT) && r->status >= 400 &&
	    says_exhausted(r))
		return VERDICT_RETRY;
	return verdict;
}

int grpc_code(const char *name)
{
	for (int code = 0; code < GRPC_CODES; code++) {
		if (strcmp(grpc_codes[code].name, name) == 0)
			return code;
	}
	return -1;
}

const char *grpc_name(int code)
{
	return code >= 0 && code < GRPC_CODES ? grpc_codes[code].name : "unknown code";
}

enum verdict judge_grpc(int code, const char *message)
{
	/* The same code means a rate limit, and a message over the server's bound. */
	if (code == CODE_RESOURCE_EXHAUSTED && strstr(message, "larger than max"))
		return VERDICT_SPLIT;
	return code >= 0 && code < GRPC_CODES ? grpc_codes[code].verdict : VERDICT_DOUBT;
}
