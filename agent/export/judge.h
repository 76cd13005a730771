/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer means, as tables of status codes, one for HTTP and one for each sink's own. */
#ifndef AGENT_EXPORT_JUDGE_H
#define AGENT_EXPORT_JUDGE_H

#include <stddef.h>

#include "agent/export/sink.h"

/* The first row that holds the code counts; the last row of a table has from > to. */
struct status_row {
	int from, to;
	enum verdict verdict;
};

enum verdict judge_status(const struct status_row *rows, int code, enum verdict otherwise);

/* By the HTTP status alone, with "HTTP 503: <start of the body>" in `why`. */
enum verdict judge_http(const struct http_response *r, char *why, size_t why_size);

/* By a status code of gRPC, whose numbers Connect's names stand for as well. */
enum verdict judge_grpc(int code, const char *message);

/* "unavailable" -> 14; -1 for what is no such name. */
int grpc_code(const char *name);
const char *grpc_name(int code);

/* Appends ": " and the start of `text`, made clean. */
void judge_say(char *why, size_t why_size, const char *text, size_t len);

#endif
