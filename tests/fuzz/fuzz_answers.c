/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: what a store answers. First byte: sink; two bytes: status; the rest: the body. */
#include <assert.h>
#include <string.h>

#include "agent/export/sink.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct {
		const struct sink_type *sink;
		const char *type;
	} answers[] = {
		{ &sink_otlp, "application/x-protobuf" },
		{ &sink_otlp, "text/plain" },
		{ &sink_pyroscope, "application/json" },
		{ &sink_pyroscope, "application/proto" },
		{ &sink_parca, "application/grpc-web+proto" },
	};
	enum { HEAD = 3, COUNT = sizeof(answers) / sizeof(answers[0]) };
	struct http_response r = { .grpc_status = -1 };
	char why[HTTP_ERROR_BYTES] = "";
	enum verdict verdict;
	size_t i;

	if (size < HEAD)
		return 0;
	i = data[0] % COUNT;
	r.status = 1 + (data[1] << 8 | data[2]) % 999;
	strcpy(r.content_type, answers[i].type);
	buf_init(&r.body, HTTP_ANSWER_BYTES);
	buf_put(&r.body, data + HEAD, size - HEAD);
	if (!buf_error(&r.body)) {
		verdict = answers[i].sink->judge(&r, why, sizeof(why));
		assert(verdict < VERDICT_COUNT);
		/* Nothing counts as sent that is no success; every failure has a reason. */
		assert(verdict != VERDICT_SENT || r.status == 200);
		assert(verdict == VERDICT_SENT || why[0]);
		assert(memchr(why, 0, sizeof(why)));
	}
	buf_fini(&r.body);
	return 0;
}
