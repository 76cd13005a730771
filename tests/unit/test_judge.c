/* SPDX-License-Identifier: Apache-2.0 */
/* What answers mean, sink by sink: one row each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/export/judge.h"

struct row {
	const struct sink_type *sink;
	int status;
	const char *type, *body;
	size_t len; /* 0: strlen */
	enum verdict want;
	const char *says; /* in the reason */
};

#define PB          "application/x-protobuf"
#define JSON        "application/json"
#define WEB         "application/grpc-web+proto"
#define BYTES(text) text, sizeof(text) - 1

static const struct row rows[] = {
	{ &sink_otlp, 200, PB, "", 0, VERDICT_SENT, NULL },
	{ &sink_otlp, 200, "", "", 0, VERDICT_SENT, NULL },
	/* partial_success { rejected_profiles: 2, error_message: "no" } */
	{ &sink_otlp, 200, PB, BYTES("\x0a\x06\x08\x02\x12\x02no"), VERDICT_SENT,
	  "2 profiles refused: no" },
	{ &sink_otlp, 200, PB, BYTES("\x0a\x7f"), VERDICT_DOUBT, "no OTLP answer" },
	{ &sink_otlp, 200, "text/html", "<html>", 0, VERDICT_DOUBT, "text/html" },
	{ &sink_otlp, 204, PB, "", 0, VERDICT_DOUBT, "HTTP 204" },
	{ &sink_otlp, 301, "text/html", "", 0, VERDICT_HOLD, "HTTP 301" },
	/* google.rpc.Status { code: 3, message: "bad" } */
	{ &sink_otlp, 400, PB,
	  BYTES("\x08\x03\x12\x03"
		"bad"),
	  VERDICT_REJECT, "HTTP 400: bad" },
	{ &sink_otlp, 400, "text/plain", "what\nnow\x1b[", 0, VERDICT_REJECT,
	  "HTTP 400: what\\x0anow\\x1b[" },
	{ &sink_otlp, 401, "", "", 0, VERDICT_HOLD, "HTTP 401" },
	{ &sink_otlp, 403, "", "", 0, VERDICT_HOLD, NULL },
	{ &sink_otlp, 404, "", "", 0, VERDICT_HOLD, NULL },
	{ &sink_otlp, 408, "", "", 0, VERDICT_RETRY, NULL },
	{ &sink_otlp, 413, "", "", 0, VERDICT_SPLIT, NULL },
	{ &sink_otlp, 415, "", "", 0, VERDICT_PLAIN, NULL },
	{ &sink_otlp, 422, "", "nope", 0, VERDICT_REJECT, NULL },
	{ &sink_otlp, 422, JSON, "{\"code\":\"resource_exhausted\"}", 0, VERDICT_RETRY, NULL },
	{ &sink_otlp, 429, "", "", 0, VERDICT_RETRY, NULL },
	{ &sink_otlp, 500, "", "", 0, VERDICT_DOUBT, NULL },
	{ &sink_otlp, 500, "", "rpc error: code = ResourceExhausted", 0, VERDICT_RETRY, NULL },
	{ &sink_otlp, 502, "", "", 0, VERDICT_RETRY, NULL },
	{ &sink_otlp, 503, "", "", 0, VERDICT_RETRY, NULL },
	{ &sink_otlp, 504, "", "", 0, VERDICT_RETRY, NULL },
	{ &sink_otlp, 599, "", "", 0, VERDICT_DOUBT, NULL },
	{ &sink_otlp, 700, "", "", 0, VERDICT_DOUBT, NULL },

	{ &sink_pyroscope, 200, "application/proto", "", 0, VERDICT_SENT, NULL },
	{ &sink_pyroscope, 200, "text/html", "hi", 0, VERDICT_DOUBT, "no Connect server" },
	{ &sink_pyroscope, 400, JSON, "{\"code\":\"invalid_argument\",\"message\":\"a \\\"b\"}", 0,
	  VERDICT_REJECT, "invalid_argument: a \"b" },
	{ &sink_pyroscope, 429, JSON, "{\"code\":\"resource_exhausted\"}", 0, VERDICT_RETRY, NULL },
	/* The code decides, not the status. */
	{ &sink_pyroscope, 400, JSON, "{ \"code\" : \"unavailable\" }", 0, VERDICT_RETRY, NULL },
	{ &sink_pyroscope, 401, JSON, "{\"code\":\"unauthenticated\"}", 0, VERDICT_HOLD, NULL },
	{ &sink_pyroscope, 500, JSON, "{\"code\":\"internal\"}", 0, VERDICT_DOUBT, NULL },
	{ &sink_pyroscope, 501, JSON, "{\"code\":\"unimplemented\"}", 0, VERDICT_HOLD, NULL },
	{ &sink_pyroscope, 503, JSON, "{\"code\":\"never heard of\"}", 0, VERDICT_RETRY,
	  "HTTP 503" },
	{ &sink_pyroscope, 503, JSON, "{\"code\":\"unav", 0, VERDICT_RETRY, "HTTP 503" },
	{ &sink_pyroscope, 404, "text/plain", "404 page not found", 0, VERDICT_HOLD, NULL },
	{ &sink_pyroscope, 413, JSON, "{\"code\":\"x\"}", 0, VERDICT_SPLIT, NULL },

	{ &sink_parca, 200, WEB,
	  BYTES("\x80\0\0\0\x10"
		"grpc-status: 0\r\n"),
	  VERDICT_SENT, NULL },
	{ &sink_parca, 200, WEB,
	  BYTES("\0\0\0\0\0\x80\0\0\0\x10"
		"grpc-status: 0\r\n"),
	  VERDICT_SENT, NULL },
	{ &sink_parca, 200, WEB,
	  BYTES("\x80\0\0\0\x23"
		"Grpc-Status:3\r\nGrpc-Message: broken\r\n"),
	  VERDICT_REJECT, "invalid_argument: broken" },
	{ &sink_parca, 200, WEB,
	  BYTES("\x80\0\0\0\x11"
		"grpc-status: 14\r\n"),
	  VERDICT_RETRY, NULL },
	{ &sink_parca, 200, WEB,
	  BYTES("\x80\0\0\0\x3c"
		"grpc-status: 8\r\ngrpc-message: message larger than max (70 MB)\r\n"),
	  VERDICT_SPLIT, NULL },
	{ &sink_parca, 200, WEB,
	  BYTES("\x80\0\0\0\x11"
		"grpc-status: 99\r\n"),
	  VERDICT_DOUBT, "unknown code" },
	{ &sink_parca, 200, WEB,
	  BYTES("\x80\0\0\xff\x10"
		"grpc-status: 0\r\n"),
	  VERDICT_DOUBT, NULL },
	{ &sink_parca, 200, WEB, BYTES("\0\0\0\0"), VERDICT_DOUBT, NULL },
	{ &sink_parca, 200, "text/html", "grpc-status: 0", 0, VERDICT_DOUBT, NULL },
	{ &sink_parca, 503, "text/plain", "", 0, VERDICT_RETRY, NULL },
};

static void test_rows(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		struct http_response r = { .status = row->status, .grpc_status = -1 };
		char why[HTTP_ERROR_BYTES] = "";
		enum verdict got;

		snprintf(r.content_type, sizeof(r.content_type), "%s", row->type);
		buf_init(&r.body, HTTP_ANSWER_BYTES);
		buf_put(&r.body, row->body, row->len ? row->len : strlen(row->body));
		got = row->sink->judge(&r, why, sizeof(why));
		if (got != row->want || (row->says && !strstr(why, row->says)))
			fail_msg("row %zu: %s %d '%s': verdict %d, reason '%s'", i, row->sink->name,
				 row->status, row->body, got, why);
		if (got != VERDICT_SENT)
			assert_true(why[0]);
		buf_fini(&r.body);
	}
}

/* Without a body, as a server says it that refuses at once. */
static void test_grpc_status_in_the_headers(void **state)
{
	struct http_response r = { .status = 200, .grpc_status = 16, .grpc_message = "who?" };
	char why[HTTP_ERROR_BYTES] = "";

	buf_init(&r.body, HTTP_ANSWER_BYTES);
	assert_int_equal(sink_parca.judge(&r, why, sizeof(why)), VERDICT_HOLD);
	assert_string_equal(why, "unauthenticated: who?");
	r.grpc_status = 0;
	assert_int_equal(sink_parca.judge(&r, why, sizeof(why)), VERDICT_SENT);
	buf_fini(&r.body);
}

static void test_codes_have_names(void **state)
{
	assert_int_equal(grpc_code("ok"), 0);
	assert_int_equal(grpc_code("unauthenticated"), 16);
	assert_int_equal(grpc_code("UNAVAILABLE"), -1);
	assert_string_equal(grpc_name(14), "unavailable");
	assert_string_equal(grpc_name(17), "unknown code");
	assert_string_equal(grpc_name(-1), "unknown code");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_grpc_status_in_the_headers),
		cmocka_unit_test(test_codes_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
