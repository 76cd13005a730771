/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parca's WriteRaw by gRPC-Web over HTTP/1.1, which Parca serves on the same port as gRPC: the same
 * message in a frame, and the status in a last frame of the body, where no trailers are needed.
 */
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "agent/export/judge.h"
#include "agent/export/pieces.h"
#include "base/parse.h"

enum { FRAME_HEAD = 5, FLAG_TRAILER = 0x80, MAX_MESSAGE = 128 };

static const char *const headers[] = { "Content-Type: application/grpc-web+proto",
				       "Accept: application/grpc-web+proto", "X-Grpc-Web: 1",
				       NULL };

static int encode(const struct export_batch *batch, struct buf *body)
{
	size_t start = body->len;
	uint8_t head[FRAME_HEAD] = { 0 };
	uint32_t len;
	int err;

	buf_put(body, head, sizeof(head));
	err = export_push(batch, PUSH_PARCA, body);
	if (err)
		return err;
	len = htobe32((uint32_t)(body->len - start - sizeof(head)));
	memcpy(head + 1, &len, sizeof(len));
	memcpy(body->data + start, head, sizeof(head));
	return 0;
}

/* The text of a trailer in lines "name: text\r\n"; names may come in either case. */
static bool find_trailer(const char *lines, size_t len, const char *name, char *ret_text,
			 size_t size)
{
	size_t name_len = strlen(name);

	for (size_t at = 0; at + name_len < len; at++) {
		size_t n = 0;

		if ((at > 0 && lines[at - 1] != '\n') ||
		    strncasecmp(lines + at, name, name_len) != 0 || lines[at + name_len] != ':')
			continue;
		at += name_len + 1;
		while (at < len && lines[at] == ' ')
			at++;
		for (; at < len && lines[at] != '\r' && lines[at] != '\n' && n + 1 < size; at++)
			ret_text[n++] = lines[at];
		ret_text[n] = 0;
		return true;
	}
	return false;
}

/* The status in the trailer frame: its code, or -1. */
static int read_frames(const struct buf *body, char message[MAX_MESSAGE])
{
	char text[16];
	uint64_t code;

	for (size_t at = 0; body->len - at >= FRAME_HEAD;) {
		const uint8_t *frame = body->data + at;
		uint32_t len;

		memcpy(&len, frame + 1, sizeof(len));
		len = be32toh(len);
		at += FRAME_HEAD;
		if (len > body->len - at)
			return -1;
		if (frame[0] & FLAG_TRAILER) {
			const char *lines = (const char *)body->data + at;

			find_trailer(lines, len, "grpc-message", message, MAX_MESSAGE);
			if (!find_trailer(lines, len, "grpc-status", text, sizeof(text)) ||
			    parse_u64(text, 10, &code) || code > 1000)
				return -1;
			return (int)code;
		}
		at += len;
	}
	return -1;
}

static enum verdict judge(const struct http_response *r, char *why, size_t why_size)
{
	char message[MAX_MESSAGE] = "";
	int code = r->grpc_status;

	if (r->status == 200 && code < 0 &&
	    strncmp(r->content_type, "application/grpc-web", strlen("application/grpc-web")) == 0)
		code = read_frames(&r->body, message);
	else if (code >= 0)
		snprintf(message, sizeof(message), "%s", r->grpc_message);
	if (code == 0 && r->status == 200)
		return VERDICT_SENT;
	if (code > 0) {
		snprintf(why, why_size, "%s", grpc_name(code));
		judge_say(why, why_size, message, strlen(message));
		return judge_grpc(code, message);
	}
	if (r->status == 200) {
		snprintf(why, why_size, "HTTP 200 with content '%.60s' and no gRPC status",
			 r->content_type);
		return VERDICT_DOUBT;
	}
	return judge_http(r, why, why_size);
}

const struct sink_type sink_parca = {
	.name = "parca",
	.path = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw",
	.headers = headers,
	.encode = encode,
	.judge = judge,
};
